// SPDX-License-Identifier: Apache-2.0
//
// What closed forms are made of that are computed rank by rank: ranks that do not all do the same
// (model_rounds.cc, model_direct.cc).
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "machine/model_way.h"

namespace carillon::machine {

/// The ranks, each at a time of its own. When a rank sees a message depends on all that come to it,
/// and those of a later round may come first. So the whole is gone through again and again, by what
/// was seen before, until nothing changes: a message has its right time once all that is earlier
/// has.
class Team {
 public:
  Team(const Machine& machine, const ModelCall& call)
      : way_(machine, call),
        hosts_(static_cast<std::size_t>(call.ranks)),
        sent_(hosts_.size()),
        sorted_(hosts_.size()),
        seen_(hosts_.size()) {}

  /// body(): everything that ranks do, in the order in which each of them does it. When the last
  /// one has ended; negative if that does not come to an end.
  template <typename Body>
  std::int64_t last_ps(Body body) {
    constexpr int kMostPasses = 200;
    for (pass_ = 1; pass_ <= kMostPasses; ++pass_) {
      std::fill(hosts_.begin(), hosts_.end(), Host());
      body();
      if (land_all()) continue;
      std::int64_t last = 0;
      for (const Host& host : hosts_) last = std::max(last, host.cpu_ps);
      return last;
    }
    return -1;
  }

  [[nodiscard]] const Way& way() const { return way_; }
  [[nodiscard]] Host* host(std::int64_t rank) { return &hosts_[static_cast<std::size_t>(rank)]; }

  /// Of all ranks.
  void begin(std::int64_t input_bytes) {
    for (Host& host : hosts_) way_.begin(&host, input_bytes);
  }
  void end(std::int64_t output_bytes) {
    for (Host& host : hosts_) way_.end(&host, output_bytes);
  }
  void send(std::int64_t from, std::int64_t to, std::int64_t bytes, From where,
            std::int32_t entries = 1) {
    const std::int64_t arrival = way_.send(host(from), bytes, where, entries);
    sent_[static_cast<std::size_t>(to)].push_back({arrival, from, bytes});
  }
  /// The rank waits for the next message of that one; in the first pass as if nothing else came,
  /// and for nothing that has not been sent.
  void take(std::int64_t rank, std::int64_t from) {
    const auto at = static_cast<std::size_t>(rank);
    std::vector<Message>& list = pass_ == 1 ? sent_[at] : seen_[at];
    if (pass_ == 1 && sorted_[at] != list.size()) {
      sort_by_sender(list);
      sorted_[at] = list.size();
    }
    auto message = std::lower_bound(
        list.begin(), list.end(), from,
        [](const Message& each, std::int64_t sender) { return each.from < sender; });
    while (message != list.end() && message->taken == pass_) ++message;
    if (message == list.end() || message->from != from) return;
    message->taken = pass_;
    way_.take(host(rank), message->ps, message->bytes);
  }

 private:
  struct Message {
    std::int64_t ps = 0;  // arrival, then when it can be seen
    std::int64_t from = 0;
    std::int64_t bytes = 0;
    int taken = 0;  // in which pass
  };

  static void sort_by_sender(std::vector<Message>& list) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Message& a, const Message& b) { return a.from < b.from; });
  }
  // What has been sent comes in, at each rank in the order of arrival, of several at once in that
  // of the senders. Whether anything is seen at another time than before.
  bool land_all() {
    bool changed = false;
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      std::vector<Message>& list = sent_[to];
      std::stable_sort(list.begin(), list.end(), [](const Message& a, const Message& b) {
        return std::tie(a.ps, a.from) < std::tie(b.ps, b.from);
      });
      Host reader;
      for (Message& each : list) each.ps = way_.arrive(&reader, each.ps, each.bytes);
      sort_by_sender(list);
      changed = changed || !std::equal(list.begin(), list.end(), seen_[to].begin(), seen_[to].end(),
                                       [](const Message& a, const Message& b) {
                                         return a.ps == b.ps && a.from == b.from;
                                       });
      seen_[to] = std::exchange(list, {});
    }
    return changed;
  }

  Way way_;
  std::vector<Host> hosts_;
  std::vector<std::vector<Message>> sent_;  // by reader, in this pass
  std::vector<std::size_t> sorted_;         // how many of them were there when they were sorted
  std::vector<std::vector<Message>> seen_;  // by reader, in the one before; by sender
  int pass_ = 1;
};

/// A team folded to a power of two: the ranks of the first `extras` pairs are a proxy, which is one
/// of the base ranks, and an extra, the one after it.
struct FoldedRanks {
  explicit FoldedRanks(std::int32_t ranks)
      : size(power_of_two_below(ranks)), extras(ranks - size) {}

  std::int64_t size;    ///< base ranks
  std::int64_t extras;  ///< the first so many base ranks have one
  /// The rank of a base index, which is the first that it stands for.
  [[nodiscard]] std::int64_t base(std::int64_t index) const {
    return index < extras ? 2 * index : index + extras;
  }
  /// For how many ranks the group of `count` base ranks stands that the index is in.
  [[nodiscard]] std::int64_t ranks_of(std::int64_t index, std::int64_t count) const {
    const std::int64_t from = index / count * count;
    return base(from + count) - base(from);
  }
};

}  // namespace carillon::machine
