// SPDX-License-Identifier: Apache-2.0
//
// Ends of verbs that cannot be reached, and what is said of it: with soft-RoCE in a virtual
// machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "support/calls.h"
#include "support/wire_end.h"
#include "transport/verbs/verbs.h"

namespace carillon::test {
namespace {

constexpr int kNoNetwork = 77;

struct Nobody final : wire::Listener {
  void on_put(std::uint32_t /*immediate*/) override {}
};

std::vector<std::byte> address_of(const wire::Wire& end) {
  return {end.address().begin(), end.address().end()};
}

// Two ends of one process.
struct Ends {
  std::unique_ptr<wire::Wire> one, other;
  std::vector<std::byte> address;  // of the other

  void progress() const {
    Nobody nobody;
    for (wire::Wire* const end : {one.get(), other.get()}) {
      if (end == nullptr) continue;
      const Status status = end->progress(nobody);
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
  // As the first end says of it, or ok: it can be reached.
  [[nodiscard]] Status reach() const {
    const auto peer = one->add_peer(address);
    if (!peer.ok()) return peer.status();
    const Stopwatch watch;
    for (;;) {
      const Result<bool> met = one->meet(peer.value());
      if (!met.ok() || met.value()) return met.status();
      if (watch.seconds() > patience_s()) return {Code::kTimeout, "nothing is said of it"};
      progress();
    }
  }
  // What becomes of it.
  [[nodiscard]] Status put(wire::Wire& from, wire::Peer to,
                           std::span<const wire::Piece> pieces = {},
                           wire::RemoteMemory place = {}) const {
    const Stopwatch watch;
    wire::Operation operation;
    Result<bool> posted = false;
    while (posted.ok() && !posted.value() && watch.seconds() < patience_s()) {
      posted = from.put(to, pieces, place, {}, operation);
      progress();
    }
    while (!operation.done() && watch.seconds() < patience_s()) progress();
    return posted.ok() ? operation.status() : posted.status();
  }
};

class Refusal : public testing::Test {
 protected:
  // In a process of its own, as others may not use what a parent has opened.
  void with_ends(const std::function<void(Ends&)>& body) {
    const auto exits = run_processes(
        1,
        [&](int) {
          auto one = verbs::open_wire({}), other = verbs::open_wire({});
          if (!one.ok() || !other.ok()) _exit(kNoNetwork);
          Ends ends{std::move(one.value()), std::move(other.value()), {}};
          ends.address = address_of(*ends.other);
          body(ends);
        },
        3 * patience_s());
    if (exits[0] == kNoNetwork) GTEST_SKIP() << "there are no verbs here";
    expect_all_ok(exits);
  }
};

TEST_F(Refusal, WhoHasEndedBeforeItWasReachedIsDead) {
  with_ends([](Ends& ends) {
    ends.other.reset();
    const Status status = ends.reach();
    EXPECT_EQ(status.code(), Code::kPeerDead) << status.to_string();
    EXPECT_NE(status.message().find("has ended"), std::string_view::npos) << status.to_string();
  });
}

TEST_F(Refusal, AnotherJobsEndRefuses) {
  with_ends([](Ends& ends) {
    ends.address[8] ^= std::byte{1};  // of the name
    const Status status = ends.reach();
    EXPECT_EQ(status.code(), Code::kUnsupported) << status.to_string();
    EXPECT_NE(status.message().find("another job"), std::string_view::npos) << status.to_string();
    ends.address[8] ^= std::byte{1};
    EXPECT_TRUE(ends.reach().ok());
  });
}

TEST_F(Refusal, WhoHasNoRoomSaysSo) {
  with_ends([](Ends& ends) {
    constexpr int kMost = 2000;
    Status status;
    int connections = 0;
    for (; status.ok() && connections < kMost; ++connections) status = ends.reach();
    EXPECT_GT(connections, 100);
    EXPECT_EQ(status.code(), Code::kUnsupported) << status.to_string();
    EXPECT_NE(status.message().find("no more connections"), std::string_view::npos)
        << status.to_string();
  });
}

// As of a process that ends, or that has given up: whoever writes there may not know yet.
TEST_F(Refusal, WhoHasTakenItsMemoryBackIsDead) {
  with_ends([](Ends& ends) {
    const wire::Peer other = ends.one->add_peer(ends.address).value();
    std::array<std::byte, 256> bytes = {};  // too many to be copied when posted
    auto here = ends.one->register_memory(bytes), there = ends.other->register_memory(bytes);
    ASSERT_TRUE(here.ok() && there.ok());
    const wire::RemoteMemory place = there.value()->remote();
    const wire::Piece piece{bytes.data(), bytes.size(), here.value().get()};
    for (const bool first : {true, false}) {
      const Status status = ends.put(*ends.one, other, {&piece, 1}, place);
      EXPECT_EQ(status.code(), first ? Code::kOk : Code::kPeerDead) << status.to_string();
      there.value().reset();
    }
  });
}

// Each end has a connection of its own. What one does not send any more, the other may wait for.
TEST_F(Refusal, WhoIsCutOffIsRefusedItsOwnPosts) {
  with_ends([](Ends& ends) {
    const wire::Peer other = ends.one->add_peer(ends.address).value();
    const wire::Peer one = ends.other->add_peer(address_of(*ends.one)).value();
    EXPECT_TRUE(ends.put(*ends.one, other).ok());
    EXPECT_TRUE(ends.put(*ends.other, one).ok());
    ends.one->cut_off(other, {Code::kPeerDead, "it has been given up"});
    const Stopwatch watch;
    Status status;
    while (status.ok() && watch.seconds() < patience_s()) status = ends.put(*ends.other, one);
    EXPECT_EQ(status.code(), Code::kPeerDead) << status.to_string();
  });
}

}  // namespace
}  // namespace carillon::test
