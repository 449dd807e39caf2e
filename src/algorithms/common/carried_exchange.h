// SPDX-License-Identifier: Apache-2.0
//
// Blocks from node to node by carriers (carriers.h): each has a message for the carrier of each
// node that it carries for, with what all ranks of its node have for all ranks of that one.
#pragma once

#include <vector>

#include "algorithms/common/carriers.h"

namespace carillon {

/// One rank's part. As a carrier it has, for each node that it carries for and in either direction,
/// a number for every pair of a sender and a receiver, sender by sender.
class CarriedExchange {
 public:
  /// Of the algorithm `id`.
  CarriedExchange(std::string_view id, const Call& call, Builder& b)
      : call_(call), b_(b), carriers_(id, call, b) {
    carriers_.for_nodes_of(carriers_.place(), [&](std::int32_t node) {
      const auto receivers = static_cast<std::int64_t>(carriers_.members(node).size());
      const std::int64_t pairs = carriers_.size() * receivers;
      carried_.push_back({.node = node, .out = numbers_, .in = numbers_ + pairs});
      numbers_ += 2 * pairs;
    });
  }

  [[nodiscard]] std::int64_t numbers() const { return numbers_; }
  /// This rank's among those of its node.
  [[nodiscard]] Rank place() const { return carriers_.place(); }

  /// own(to), what this rank has for other nodes' ranks, to the carriers, and what these have to
  /// each other; at place(first, count) they have that of the numbers from the first one on.
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

  /// What the carriers have for the ranks of the node, each number's at place(first, 1), to
  /// target(from).
  template <typename Place, typename Target>
  void give_out(Place place, Target target) {
    within_node(
        [&](Rank receiver) {
          BufferList list;
          for_senders([&](std::int64_t first, Rank) { list.add(place(first + receiver, 1)); });
          return list;
        },
        [&](Rank carrier) {
          BufferList list;
          carriers_.for_nodes_of(carrier, [&](std::int32_t node) {
            for (const Rank from : carriers_.members(node)) list.add(target(from));
          });
          return list;
        });
  }

  /// Calls body(first, from) for all ranks elsewhere that this one carries for: the first number of
  /// what comes from them.
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

 private:
  struct Carried {
    std::int32_t node;
    std::int64_t out, in;  // the first number of what goes there, and of what comes from there
  };

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

  const Call& call_;
  Builder& b_;
  Carriers carriers_;
  std::vector<Carried> carried_;
  std::int64_t numbers_ = 0;
};

}  // namespace carillon
