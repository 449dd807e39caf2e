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
// nodes, one of 8 R^2 bytes and one of R^2 blocks for each, in place of the (N-1) R of pairwise
// exchange; and 3 within its node, of C R lengths or blocks. Each short block is copied three
// times. Restrictions: none; where no node has several ranks, or there is one, it is
// alltoallv.pairwise. Parameters: k, the longest block that is merged, in bytes. For short blocks
// on several nodes.
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/carriers.h"
#include "algorithms/common/told_lengths.h"

namespace carillon {
namespace {

// One rank's part. As a carrier it knows, for each node that it carries for and in either
// direction, a number for every pair of a sender and a receiver, sender by sender.
class Merged {
 public:
  Merged(const Call& call, Builder& b)
      : call_(call), b_(b), tables_(call.local.tables), carriers_("alltoallv.merged", call, b) {
    carriers_.for_nodes_of(carriers_.place(), [&](std::int32_t node) {
      const auto receivers = static_cast<std::int64_t>(carriers_.members(node).size());
      const std::int64_t pairs = carriers_.size() * receivers;
      carried_.push_back({.node = node, .out = numbers_, .in = numbers_ + pairs});
      numbers_ += 2 * pairs;
    });
  }

  void emit_lengths() {
    const std::int64_t row_bytes = call_.shared.ranks * kNumberBytes;
    const Range row = b_.allocate_scratch(row_bytes);
    const Range all = b_.allocate_scratch(numbers_ * kNumberBytes);
    b_.phase("lengths");
    b_.copy(b_.scratch(row), b_.counts({0, row_bytes}));
    bring(
        [&](Rank to) {
          return b_.scratch(row.sub({to * kNumberBytes, kNumberBytes}));
        },
        [&](std::int64_t first, std::int64_t count) {
          return b_.scratch(all.sub({first * kNumberBytes, count * kNumberBytes}));
        });
    b_.next_stage(carried_.empty() ? row : all);  // who learns nothing has no next stage
  }

  void emit_blocks() {
    std::vector<std::int64_t> starts{0};
    for (const std::int64_t bytes : call_.learned.first(static_cast<std::size_t>(numbers_))) {
      if (bytes < 0) return b_.fail({Code::kMismatch, "alltoallv.merged: a block of no length"});
      starts.push_back(starts.back() + (is_short(bytes) ? bytes : 0));
    }
    const Range room = b_.allocate_scratch(starts.back());
    const auto carried = [&](std::int64_t first, std::int64_t count) {
      const std::int64_t start = starts[static_cast<std::size_t>(first)];
      const std::int64_t end = starts[static_cast<std::size_t>(first + count)];
      return b_.scratch(room.sub({start, end - start}));
    };
    b_.phase("blocks");
    bring([&](Rank to) { return is_short(sent(to).length) ? b_.input(sent(to)) : Buffer{}; },
          carried);
    check_lengths();
    give_out(carried);
    exchange_straight();
  }

 private:
  struct Carried {
    std::int32_t node;
    std::int64_t out, in;  // the first number of what goes there, and of what comes from there
  };

  [[nodiscard]] bool is_short(std::int64_t bytes) const { return bytes <= call_.params.k; }
  [[nodiscard]] Range sent(Rank to) const {
    const auto entry = static_cast<std::size_t>(to);
    return {tables_.send_offsets[entry], tables_.send_bytes[entry]};
  }
  [[nodiscard]] Range received(Rank from) const {
    const auto entry = static_cast<std::size_t>(from);
    return {tables_.recv_offsets[entry], tables_.recv_bytes[entry]};
  }

  // Messages that may wait for one another are given by a strand of their own.
  template <typename Give, typename Take>
  void in_strands(Give give_all, Take take_all) {
    b_.enter(call_, Members::all(call_.shared.ranks), b_.input({}), b_.output({}));
    bool any_long = false;
    give_all([&](Rank to, const BufferList& list) {
      any_long = any_long || list.length() > call_.limits.inline_bytes;
      if (list.length() > 0) b_.send(to, list);
    });
    if (any_long) b_.strand();
    take_all();
    b_.leave();
  }
  void receive(Rank from, const BufferList& list) {
    if (list.length() > 0) b_.recv(from, list);
  }
  // For each place of the node what is given to who is there, and where what that gives belongs.
  template <typename Given, typename Taken>
  void within_node(Given given, Taken taken) {
    const Rank size = carriers_.size(), place = carriers_.place();
    in_strands(
        [&](auto give_to) {
          for (Rank distance = 1; distance < size; ++distance) {
            const Rank to = (place + distance) % size;
            give_to(carriers_.at(to), given(to));
          }
        },
        [&] {
          b_.copy(taken(place), given(place));
          for (Rank distance = 1; distance < size; ++distance) {
            const Rank from = (place - distance + size) % size;
            receive(carriers_.at(from), taken(from));
          }
        });
  }

  // own(to), what this rank has for other nodes' ranks, to the carriers, and what these have to
  // each other; at place(first, count) they have that of the numbers from the first one on.
  template <typename Own, typename Place>
  void bring(Own own, Place place) {
    within_node(
        [&](Rank carrier) {
          BufferList list;
          carriers_.for_nodes_of(carrier, [&](std::int32_t node) {
            for (const Rank to : carriers_.members(node)) list.add(own(to));
          });
          return list;
        },
        [&](Rank sender) {
          BufferList list;
          for (const Carried& each : carried_) {
            const auto receivers = static_cast<std::int64_t>(carriers_.members(each.node).size());
            list.add(place(each.out + sender * receivers, receivers));
          }
          return list;
        });
    in_strands(
        [&](auto give_to) {
          for (const Carried& each : carried_) {
            give_to(carriers_.partner(each.node), place(each.out, each.in - each.out));
          }
        },
        [&] {
          // What a node sends first, to the next one, is what that receives first.
          for (auto each = carried_.rbegin(); each != carried_.rend(); ++each) {
            receive(carriers_.partner(each->node), place(each->in, each->in - each->out));
          }
        });
  }

  // What the carriers have for the ranks of the node.
  template <typename Place>
  void give_out(Place place) {
    within_node(
        [&](Rank receiver) {
          BufferList list;
          for_senders([&](std::int64_t first, Rank) { list.add(place(first + receiver, 1)); });
          return list;
        },
        [&](Rank carrier) {
          BufferList list;
          carriers_.for_nodes_of(carrier, [&](std::int32_t node) {
            for (const Rank from : carriers_.members(node)) {
              if (is_short(received(from).length)) list.add(b_.output(received(from)));
            }
          });
          return list;
        });
  }
  // Of what comes by this rank itself; by another one it comes as a message, whose length is
  // checked.
  void check_lengths() {
    for_senders([&](std::int64_t first, Rank from) {
      const auto number = static_cast<std::size_t>(first + carriers_.place());
      check_told(call_, b_, from, call_.learned[number]);
    });
  }
  // Calls body(first, from) for all ranks elsewhere that this one carries for: the first number of
  // what comes from them.
  template <typename Body>
  void for_senders(Body body) const {
    for (const Carried& each : carried_) {
      std::int64_t first = each.in;
      for (const Rank from : carriers_.members(each.node)) {
        body(first, from);
        first += carriers_.size();
      }
    }
  }

  // Long blocks, and those within the node.
  void exchange_straight() {
    const Rank ranks = call_.shared.ranks;
    const auto is_straight = [&](Rank peer, std::int64_t bytes) {
      return !is_short(bytes) || call_.limits.share_node(peer, call_.rank);
    };
    b_.phase("straight");
    b_.enter(call_, Members::all(ranks), b_.input({}), b_.output({}));
    for (Rank step = 1; step < ranks; ++step) {
      const Rank to = wrap(std::int64_t{call_.rank} + step, ranks);
      if (is_straight(to, sent(to).length)) b_.send(to, b_.input(sent(to)));
    }
    b_.strand();
    b_.copy(b_.output(received(call_.rank)), b_.input(sent(call_.rank)));
    for (Rank step = 1; step < ranks; ++step) {
      const Rank from = wrap(call_.rank - step, ranks);
      if (is_straight(from, received(from).length)) b_.recv(from, b_.output(received(from)));
    }
    b_.leave();
  }

  const Call& call_;
  Builder& b_;
  const Tables& tables_;
  Carriers carriers_;
  std::vector<Carried> carried_;
  std::int64_t numbers_ = 0;
};

}  // namespace

void emit_alltoallv_merged(const Call& call, Builder& b) {
  const bool merges = !call.limits.one_node() && call.limits.nodes->largest() > 1;
  if (!merges) return emit_alltoallv_pairwise(call, b);
  Merged merged(call, b);
  call.stage == 0 ? merged.emit_lengths() : merged.emit_blocks();
}

}  // namespace carillon
