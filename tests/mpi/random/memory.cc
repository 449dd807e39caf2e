// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "operation.h"

namespace mpi_test {
namespace {

using Number = Basic::Number;
constexpr std::int64_t kMargin = 64;

void write_float(std::uint8_t* at, int bytes, int value) {
  const auto single = static_cast<float>(value);
  const auto twice = static_cast<double>(value);
  const auto most = static_cast<long double>(value);
  if (bytes == 4) std::memcpy(at, &single, 4);
  if (bytes == 8) std::memcpy(at, &twice, 8);
  if (bytes == 10 || bytes == 16) std::memcpy(at, &most, 10);
}

// Sums and products of few are exact; `tiny`: of integers, too, which else differ where they
// overflow.
void write(Random& random, const Basic& basic, bool tiny, std::uint8_t* at) {
  if (basic.number_bytes == 0) {  // a value and an index
    if (basic.runs[0].second == 2) {
      const auto value = static_cast<short>(random.between(-3, 3));
      std::memcpy(at, &value, 2);
    } else {
      write_float(at, basic.runs[0].second, random.between(-3, 3));
    }
    const int index = random.below(5);
    std::memcpy(at + basic.runs[1].first, &index, 4);
    return;
  }
  const int bytes = basic.number_bytes;
  for (std::int64_t offset = 0; offset < basic.extent; offset += bytes) {
    const std::uint64_t any = random.next();
    const std::int64_t some = tiny ? random.below(3) : random.between(-3, 3);
    const auto flag = static_cast<std::int64_t>(any & 1);
    const bool small = random.chance(50) || tiny;
    switch (basic.number) {
      case Number::kFloat: write_float(at + offset, bytes, static_cast<int>(some)); break;
      case Number::kBool: std::memcpy(at + offset, &flag, static_cast<std::size_t>(bytes)); break;
      default:
        if (small) {
          std::memcpy(at + offset, &some, static_cast<std::size_t>(bytes));
        } else {
          std::memcpy(at + offset, &any, static_cast<std::size_t>(bytes));
        }
    }
  }
}

}  // namespace

void Memory::add(const Layout& layout, std::int64_t offset, int elements) {
  if (elements == 0 || layout.map.empty()) return;
  parts_.push_back({layout, offset, elements});
  const auto [first, last] = layout.span();
  for (const std::int64_t step : {std::int64_t{0}, (elements - 1) * layout.extent}) {
    begin_ = std::min(begin_, offset + step + first);
    end_ = std::max(end_, offset + step + last);
  }
}

template <typename Visit>
void Memory::for_each_entry(Visit visit) const {
  for (const Part& part : parts_) {
    for (int i = 0; i < part.elements; ++i) {
      for (const Entry& entry : part.layout.map) {
        visit(part.offset + i * part.layout.extent + entry.offset,
              basics()[static_cast<std::size_t>(entry.basic)]);
      }
    }
  }
}

void Memory::fill(Random& random, bool exact, bool tiny) {
  exact_ = exact;
  ours_.assign(static_cast<std::size_t>(end_ - begin_ + 3 * kMargin), 0xa5);
  std::uint8_t* const at = base(ours_);
  for_each_entry(
      [&](std::int64_t offset, const Basic& basic) { write(random, basic, tiny, at + offset); });
  for_each_entry([&](std::int64_t offset, const Basic& basic) {  // which may overlap
    packed_.insert(packed_.end(), at + offset, at + offset + basic.extent);
  });
  packed_.push_back(0);  // there is an address
  theirs_ = ours_;
  std::copy_n(at + begin_ - kMargin, end_ - begin_ + 2 * kMargin, base(theirs_) + begin_ - kMargin);
}

std::uint8_t* Memory::base(const Bytes& raw) const {
  const auto at = reinterpret_cast<std::uintptr_t>(raw.data());
  const auto first = (at + kMargin - 1) / kMargin * kMargin;
  return reinterpret_cast<std::uint8_t*>(first + static_cast<std::uintptr_t>(kMargin - begin_));
}

void* Memory::address(By by) const {
  if (by == By::kCarillon) return base(ours_);
  return exact_ ? base(theirs_) : const_cast<std::uint8_t*>(packed_.data());
}

bool Memory::same(std::int64_t defined) const {
  if (ours_.empty()) return true;
  Bytes expected = theirs_, any(ours_.size(), 0);
  std::copy_n(base(theirs_) + begin_ - kMargin, end_ - begin_ + 2 * kMargin,
              base(expected) + begin_ - kMargin);
  const std::uint8_t* next = packed_.data();
  std::int64_t seen = 0;
  std::uint8_t* const may_differ = any.data() + kMargin - begin_;
  for_each_entry([&](std::int64_t offset, const Basic& basic) {
    if (!exact_) std::copy_n(next, basic.extent, base(expected) + offset);
    next += basic.extent;
    std::fill_n(may_differ + offset, basic.extent, 1);
    const std::size_t of_element = parts_[0].layout.map.size();
    const bool counted = seen++ / static_cast<std::int64_t>(of_element) < defined;
    for (const auto& [place, bytes] : basic.runs) {
      if (counted) std::fill_n(may_differ + offset + place, bytes, 0);
    }
  });
  for (std::int64_t i = begin_ - kMargin; i < end_ + kMargin; ++i) {
    if (may_differ[i] == 0 && base(ours_)[i] != base(expected)[i]) return false;
  }
  return true;
}

}  // namespace mpi_test
