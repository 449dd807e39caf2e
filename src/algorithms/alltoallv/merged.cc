// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.merged: the short blocks from one node's ranks to another's go as one message, long
// ones straight. One rank of each node, its *carrier* for the other one, is given the node's blocks
// for there, sends them to that node's carrier and gives out what comes from it. No rank knows what
// others send, so in a first phase the lengths take the same way, to both carriers.
//
// Source: Sistare, vandeVaart, Loh, "Optimization of MPI collectives on clusters of large-scale
// SMPs", 1999, for one message from node to node; Fan et al., HPDC 2022, for the lengths
// beforehand.
//
// 5 ranks on nodes 3, 2 (03: from rank 0 to rank 3); carriers are 0 and 3:
//            0                   1        2      |  3                   4
//   start    03 04               13 14    23 24     30 31 32            40 41 42
//   node     03 04 13 14 23 24                      30 31 32 40 41 42
//   nodes    30 31 32 40 41 42                      03 04 13 14 23 24
//   node     30 40               31 41    32 42     03 13 23            04 14 24
//
// Cost: of N nodes of R ranks, at a carrier of C = ceil((N-1) / R) nodes: 2 C messages between
// nodes, of 8 R^2 bytes and of R^2 blocks, in place of (N-1) R of pairwise exchange; 3 within
// its node, of C R lengths or blocks. Each short block is copied three times.
// Restrictions: none; on one node, or on nodes of one rank, it is alltoallv.pairwise.
// Parameters: k, the longest block that is merged, in bytes. For short blocks on several nodes.
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/carried_exchange.h"
#include "algorithms/common/pairwise_exchange.h"
#include "algorithms/common/told_lengths.h"

namespace carillon {
namespace {

void emit_carried_lengths(const Call& call, CarriedExchange& exchange, Builder& b) {
  const std::int64_t row_bytes = call.shared.ranks * kNumberBytes;
  const Range row = b.allocate_scratch(row_bytes);
  const Range all = b.allocate_scratch(exchange.numbers() * kNumberBytes);
  b.phase("lengths");
  b.copy(b.scratch(row), b.counts({0, row_bytes}));
  exchange.bring(
      [&](Rank to) {
        return b.scratch(row.sub({to * kNumberBytes, kNumberBytes}));
      },
      [&](std::int64_t first, std::int64_t count) {
        return b.scratch(all.sub({first * kNumberBytes, count * kNumberBytes}));
      });
  b.next_stage(exchange.numbers() == 0 ? row : all);  // who learns nothing has no next stage
}

class MergedBlocks {
 public:
  MergedBlocks(const Call& call, CarriedExchange& exchange, Builder& b)
      : call_(call), exchange_(exchange), b_(b), tables_(call.local.tables) {}

  void emit() {
    b_.phase("blocks");
    if (!place_carried()) {
      return b_.fail({Code::kMismatch, "alltoallv.merged: a rank has said a length below 0"});
    }
    const auto carried = [&](std::int64_t first, std::int64_t count) {
      const std::int64_t start = starts_[static_cast<std::size_t>(first)];
      const std::int64_t end = starts_[static_cast<std::size_t>(first + count)];
      return b_.scratch(room_.sub({start, end - start}));
    };
    const auto if_short = [&](Range range, const Buffer& buffer) {
      return is_short(range.length) ? buffer : Buffer{};
    };
    exchange_.bring([&](Rank to) { return if_short(sent(to), b_.input(sent(to))); }, carried);
    check_lengths();
    exchange_.give_out(
        carried, [&](Rank from) { return if_short(received(from), b_.output(received(from))); });
    exchange_straight();
  }

 private:
  [[nodiscard]] bool is_short(std::int64_t bytes) const { return bytes <= call_.params.k; }
  [[nodiscard]] Range sent(Rank to) const {
    const auto entry = static_cast<std::size_t>(to);
    return {tables_.send_offsets[entry], tables_.send_bytes[entry]};
  }
  [[nodiscard]] Range received(Rank from) const {
    const auto entry = static_cast<std::size_t>(from);
    return {tables_.recv_offsets[entry], tables_.recv_bytes[entry]};
  }
  // The short blocks that this rank carries, end to end.
  bool place_carried() {
    starts_.push_back(0);
    for (const std::int64_t bytes :
         call_.learned.first(static_cast<std::size_t>(exchange_.numbers()))) {
      if (bytes < 0) return false;
      starts_.push_back(starts_.back() + (is_short(bytes) ? bytes : 0));
    }
    room_ = b_.allocate_scratch(starts_.back());
    return true;
  }
  // Of what comes by this rank itself; by another one it comes as a message, whose length is
  // checked.
  void check_lengths() {
    exchange_.for_senders([&](std::int64_t first, Rank from) {
      const auto number = static_cast<std::size_t>(first + exchange_.place());
      check_told(call_, b_, from, call_.learned[number]);
    });
  }
  // Long blocks, and those within the node.
  void exchange_straight() {
    const auto is_straight = [&](Rank peer, std::int64_t bytes) {
      return !is_short(bytes) || call_.limits.share_node(peer, call_.rank);
    };
    b_.phase("straight");
    b_.enter(call_, Members::all(call_.shared.ranks), b_.input({}), b_.output({}));
    pairwise_steps(
        call_, b_, steps_at_once(call_),
        [&](Rank to) {
          if (is_straight(to, sent(to).length)) b_.send(to, b_.input(sent(to)));
        },
        [&] { b_.copy(b_.output(received(call_.rank)), b_.input(sent(call_.rank))); },
        [&](Rank from) {
          if (is_straight(from, received(from).length)) b_.recv(from, b_.output(received(from)));
        });
    b_.leave();
  }

  const Call& call_;
  CarriedExchange& exchange_;
  Builder& b_;
  const Tables& tables_;
  std::vector<std::int64_t> starts_;  // in room_, by number, and the end
  Range room_;
};

}  // namespace

void emit_alltoallv_merged(const Call& call, Builder& b) {
  const bool merges = !call.limits.one_node() && call.limits.nodes->largest() > 1;
  if (!merges) return emit_alltoallv_pairwise(call, b);
  CarriedExchange exchange("alltoallv.merged", call, b);
  if (call.stage == 0) return emit_carried_lengths(call, exchange, b);
  MergedBlocks(call, exchange, b).emit();
}

}  // namespace carillon
