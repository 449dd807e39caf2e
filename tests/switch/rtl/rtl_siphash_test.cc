// SPDX-License-Identifier: Apache-2.0
//
// The hardware's tags against the library's: the authors' own example, all lengths, keys that
// change, words with gaps between them, and how many cycles it takes. With one round a cycle, and
// with two.
#include <SipHash1.h>
#include <SipHash2.h>
#include <SipHash4.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "base/siphash.h"
#include "switch/rtl/module.h"

namespace carillon::rtl {
namespace {

template <class Module>
class SipHashTest : public testing::Test {
 protected:
  static constexpr std::size_t kWordCycles = std::is_same_v<Module, SipHash1>   ? 1
                                             : std::is_same_v<Module, SipHash2> ? 2
                                                                                : 4;

  SipHashTest() { forget(); }

  void forget() {
    module_->valid_i = 0;
    module_->clear_i = 0;
    reset(*module_);
  }

  void cycle() {
    rise(*module_);
    fall(*module_);
    ++cycles_;
  }

  // Waits gap() cycles before each word. The key is there with the first word only.
  template <class Gap>
  void send(const SipKey& key, std::span<const std::byte> bytes, const Gap& gap) {
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      for (std::uint64_t i = gap(); i > 0; --i) {
        module_->valid_i = 0;
        cycle();
        ASSERT_EQ(module_->tag_valid_o, 0);
      }
      const std::size_t count = std::min<std::size_t>(8, bytes.size() - at);
      std::uint64_t word = random_();  // what does not count is anything
      std::memcpy(&word, bytes.data() + at, count);
      const std::uint64_t other = at == 0 ? 0 : random_();
      const std::uint64_t keys[] = {key.low ^ other, key.high ^ other};
      std::memcpy(module_->key_i.data(), keys, sizeof(keys));
      module_->valid_i = 1;
      module_->word_i = word;
      module_->bytes_i = static_cast<std::uint8_t>(count);
      module_->last_i = at + count == bytes.size();
      for (int i = 0; module_->ready_o == 0; ++i) {
        ASSERT_LT(i, 8) << "is never ready";
        cycle();
      }
      cycle();
    }
    module_->valid_i = 0;
  }

  // After the last word was sent.
  std::uint64_t tag() {
    for (int i = 0; module_->tag_valid_o == 0; ++i) {
      if (i == 24) {
        ADD_FAILURE() << "no tag comes";
        return 0;
      }
      cycle();
    }
    return module_->tag_o;
  }

  std::vector<std::byte> random_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  std::mt19937_64 random_{7};
  ModulePointer<Module> module_ = make_module<Module>();
  std::uint64_t cycles_ = 0;
};

constexpr auto kNoGap = [] { return std::uint64_t{0}; };

using Modules = testing::Types<SipHash1, SipHash2, SipHash4>;
TYPED_TEST_SUITE(SipHashTest, Modules);

// Appendix A of the paper.
TYPED_TEST(SipHashTest, ExampleOfThePaper) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 15; ++i) bytes.push_back(static_cast<std::byte>(i));
  this->send({0x0706050403020100, 0x0f0e0d0c0b0a0908}, bytes, kNoGap);
  EXPECT_EQ(this->tag(), 0xa129ca6149be45e5);
}

TYPED_TEST(SipHashTest, AllLengthsOneAfterTheOther) {
  for (std::size_t count = 1; count <= 300; ++count) {
    const auto bytes = this->random_bytes(count);
    const SipKey key = {this->random_(), this->random_()};
    this->send(key, bytes, kNoGap);
    ASSERT_EQ(this->tag(), siphash(key, bytes)) << count << " bytes";
  }
}

TYPED_TEST(SipHashTest, WordsWithGaps) {
  for (int i = 0; i < 2000; ++i) {
    const auto bytes = this->random_bytes(1 + this->random_() % 60);
    const SipKey key = {this->random_(), this->random_()};
    this->send(key, bytes, [&] { return this->random_() % 4; });
    ASSERT_EQ(this->tag(), siphash(key, bytes)) << bytes.size() << " bytes";
    // The tag is there for one cycle, in which the next stream may begin, or need not.
    if (i % 2 != 0) continue;
    this->cycle();
    ASSERT_EQ(this->module_->tag_valid_o, 0);
  }
}

// A block of 8 bytes: header, operand and length are six words.
TYPED_TEST(SipHashTest, Cycles) {
  const auto bytes = this->random_bytes(40);
  this->send({1, 2}, bytes, kNoGap);
  (void)this->tag();
  // With four cycles a word the first one waits for one, as all do.
  const std::uint64_t waits = TestFixture::kWordCycles == 4 ? 1 : 0;
  EXPECT_EQ(this->cycles_, waits + 1 + (6 + 2) * TestFixture::kWordCycles);
}

// Wherever it is: in its words, in its end, or with its tag.
TYPED_TEST(SipHashTest, ClearEndsAStream) {
  const auto bytes = this->random_bytes(40);
  for (std::size_t later = 0; later <= 4 * TestFixture::kWordCycles; ++later) {
    this->send({3, 4}, bytes, kNoGap);
    for (std::size_t i = 0; i < later; ++i) this->cycle();
    this->module_->clear_i = 1;
    this->cycle();
    this->module_->clear_i = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_EQ(this->module_->tag_valid_o, 0);
      if (later % 2 != 0) this->cycle();
    }
    this->send({5, 6}, bytes, kNoGap);
    EXPECT_EQ(this->tag(), siphash({5, 6}, bytes));
  }
}

TYPED_TEST(SipHashTest, ResetEndsAStream) {
  const auto bytes = this->random_bytes(40);
  for (std::size_t words = 1; words <= 4; ++words) {
    const auto part = std::span<const std::byte>(bytes).first(8 * words);
    this->send({3, 4}, part, kNoGap);
    this->forget();
    this->send({5, 6}, bytes, kNoGap);
    EXPECT_EQ(this->tag(), siphash({5, 6}, bytes));
  }
}

}  // namespace
}  // namespace carillon::rtl
