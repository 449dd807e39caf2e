// SPDX-License-Identifier: Apache-2.0
#include "select/alltoall_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "algorithms/common/landing.h"

namespace carillon {
namespace {

// Of a message between nodes (machines/edr.toml): the writer's CPU, the reader's, the way, and what
// the NIC takes for it, its header included.
constexpr double kPostNs = 100, kTakeNs = 60, kLatencyNs = 600, kGapNs = 9, kWireNsPerByte = 0.08;
// Up to here a payload is part of the request.
constexpr double kInlineBytes = 64, kInlineNsPerByte = 0.1;
// Within a node: CPU on either side, and the way.
constexpr double kLocalNs = 20, kLocalNsPerByte = 0.0821, kLocalLatencyNs = 80;

// What the layouts differ in.
struct Layout {
  std::string_view id;
  bool lands_whole = false;  // one range per message
  bool grows = false;        // a run more for each round before
  double source_runs = 1;    // for each run of indices
  double rotated_bytes = 0;  // before and after, of P blocks each,
  double rotated_runs = 0;   // and how many of the P blocks are runs of their own
};
constexpr std::array kLayouts = {
    Layout{.id = "alltoall.bruck_inplace", .rotated_bytes = 2, .rotated_runs = 1},
    Layout{.id = "alltoall.bruck_resident",
           .lands_whole = true,
           .grows = true,
           .rotated_bytes = 1,
           .rotated_runs = 1},
    Layout{.id = "alltoall.bruck_reversed", .rotated_bytes = 1, .rotated_runs = 1},
    Layout{.id = "alltoall.bruck_zerocopy", .source_runs = 2},
};

constexpr std::string_view kLanes = "alltoall.lanes";

struct PutMessage {
  double bytes = 0, runs = 1;  // of the list that is put
  double landing_runs = 1;
  double writers = 1;  // of the node, all at once, to other nodes
};

class Model {
 public:
  Model(const Shared& shared, const Limits& limits)
      : limits_(limits), ranks_(shared.ranks), block_(static_cast<double>(shared.block_bytes())) {
    std::size_t largest = 0, smallest = static_cast<std::size_t>(shared.ranks);
    for (std::int32_t node = 0; limits.nodes && node < limits.nodes->count(); ++node) {
      largest = std::max(largest, limits.nodes->members(node).size());
      smallest = std::min(smallest, limits.nodes->members(node).size());
    }
    nodes_ = limits.nodes ? limits.nodes->count() : shared.ranks;
    node_ = static_cast<double>(largest > 0 ? largest : smallest);
    smallest_ = static_cast<double>(smallest);
  }

  [[nodiscard]] double ns(const AlgorithmChoice& choice) const {
    for (const Layout& layout : kLayouts) {
      if (layout.id != choice.algorithm->id) continue;
      return bruck_ns(layout, choice.params.k > 0 ? choice.params.k : 2);
    }
    return choice.algorithm->id == kLanes ? lanes_ns() : pairwise_ns();
  }

  [[nodiscard]] bool shares_nics() const { return node_ > 1; }

  // Of messages that do not ask first, or, on several nodes that are all alike, not long.
  [[nodiscard]] bool has_lanes() const {
    const double shared = is_shared(smallest_) ? smallest_ * sharing(smallest_) : 0;
    const double most = node_ == smallest_ && nodes_ > 3 ? 2 * kCopiedBytes : kCopiedBytes;
    return shares_nics() && std::max(node_, shared) * block_ <= most;
  }
  [[nodiscard]] double lanes_ns() const {
    const double ns = std::max(lanes_ns(node_), lanes_ns(smallest_));
    if (!is_shared(smallest_)) return ns;
    const PutMessage passed{.bytes = smallest_ * block_};
    return ns + (sharing(smallest_) - 1) * near_put_ns(passed) + kLocalLatencyNs +
           near_take_ns(passed);
  }

  // The slowest rank's: of the largest node, where the most share a NIC, or of the smallest, who
  // has the most messages for other nodes.
  [[nodiscard]] double pairwise_ns() const {
    return std::max(pairwise_ns(node_), pairwise_ns(smallest_));
  }

  [[nodiscard]] double bruck_ns(const Layout& layout, Rank radix) const {
    double ns = copy_ns(layout.rotated_bytes * ranks_ * block_, layout.rotated_runs * ranks_);
    // Of rounds that go less far than a node has ranks: what has crossed from one node to the next
    // in one of them goes on within that one, if that is not smaller than they go together.
    double crossing_ns = 0, way = 0, nic = 0;
    int near_rounds = 0;
    std::int64_t weight = 1;
    for (int round = 0; static_cast<double>(weight) < ranks_; ++round, weight *= radix) {
      const auto distance = static_cast<double>(weight);
      nic += round_nic_ns(layout, radix, distance, round);
      const double away_ns = round_ns(layout, radix, distance, round, Way::kBetweenNodes);
      const double farthest = distance * digits_of(radix, distance);
      if (farthest >= node_) {
        ns += away_ns;
        continue;
      }
      const double near_ns = round_ns(layout, radix, distance, round, Way::kWithinNodes);
      ns += near_ns;
      way += farthest;
      ++near_rounds;
      crossing_ns = std::max(crossing_ns, away_ns - near_ns);
    }
    ns += (near_rounds > 1 && way > smallest_ ? 2 : 1) * crossing_ns;
    // Where the NIC is what takes long, a little of what the CPU has to do tells layouts apart.
    constexpr double kAside = 0.001;
    return std::max(ns, nic + kLatencyNs + kAside * ns);
  }

 private:
  enum class Way : std::uint8_t { kBetweenNodes, kWithinNodes };

  [[nodiscard]] double pairwise_ns(double node) const {
    const double slot = static_cast<double>(limits_.slot_bytes);
    const double segments = std::max(1.0, std::ceil(block_ / slot));
    const PutMessage message{.bytes = block_ / segments};
    const double away = segments * (ranks_ - node), near = segments * (node - 1);
    const double copy = copy_ns(message.bytes, 1);
    const double puts =
        away * put_ns(message) + near * (kLocalNs + kLocalNsPerByte * message.bytes);
    const double takes = away * (kTakeNs + copy) + near * (kLocalNs + copy) + copy_ns(block_, 1);
    // Others are put and taken while a message is on its way: short ones are all put before the
    // first is waited for, and longer ones have a strand of their own.
    const double hidden = away > 0 ? std::min(kLatencyNs, takes - kTakeNs - copy) : 0;
    const double nic = node * away * nic_ns(message) + put_ns(message);
    return std::max(puts + takes - hidden, nic) + kLatencyNs;
  }

  // Whether what ranks of a node of so many have for some of the largest one goes by one of these.
  [[nodiscard]] bool is_shared(double node) const { return 2 * node <= node_; }
  [[nodiscard]] double sharing(double node) const { return std::ceil(node_ / node); }
  // To each other rank of a node of so many the blocks for those in whose place it stands, and then
  // to each other node, and from it, one message.
  [[nodiscard]] double lanes_ns(double node) const {
    const double owners = ranks_ / node, most = std::ceil(owners), others = node - 1;
    const double own = copy_ns(block_, 1) + copy_ns((most - 1) * block_, most - 1);
    const double in_node = others * (near_put_ns({.bytes = owners * block_, .runs = owners}) +
                                     near_take_ns({.bytes = most * block_, .landing_runs = most}));
    const double nodes = nodes_ - 1, take = kTakeNs + copy_ns(node_ * block_, 1);
    const double puts = is_shared(node) ? nodes : most - 1;
    const PutMessage put{.bytes = (is_shared(node) ? sharing(node) * node : node) * block_};
    const double cpu = puts * put_ns(put) + nodes * take - std::min(kLatencyNs, (nodes - 1) * take);
    const double leaving = is_shared(node) ? nodes * node : ranks_ - node;
    return own + in_node + (others > 0 ? kLocalLatencyNs : 0) +
           std::max(cpu, leaving * nic_ns(put) + put_ns(put)) + kLatencyNs;
  }

  [[nodiscard]] double digits_of(Rank radix, double weight) const {
    return std::min<double>(radix - 1, std::ceil(ranks_ / weight) - 1);
  }
  struct Round {
    double digits = 0, segments = 1;
    PutMessage message;  // all as if they were like that of digit 1, the longest
  };
  [[nodiscard]] Round round_of(const Layout& layout, Rank radix, double weight, int round) const {
    const double whole = std::floor(ranks_ / (weight * radix));
    const double rest = std::clamp(ranks_ - whole * weight * radix - weight, 0.0, weight);
    const double blocks = whole * weight + rest;
    const double index_runs = whole + (rest > 0 ? 1 : 0);
    const double grown = layout.grows ? 1 + round * (radix - 1) : 1;
    const double runs =
        std::min(blocks, index_runs * (weight > 1 ? layout.source_runs * grown : 1));
    const double segments =
        std::max(1.0, std::ceil(blocks * block_ / static_cast<double>(limits_.slot_bytes)));
    return {
        .digits = digits_of(radix, weight),
        .segments = segments,
        .message = {.bytes = blocks * block_ / segments,
                    .runs = std::max(1.0, runs / segments),
                    .landing_runs = layout.lands_whole ? 1 : std::max(1.0, index_runs / segments),
                    .writers = std::min({node_, weight, ranks_ - weight})}};
  }
  // What the NIC of the largest node has to do in the round.
  [[nodiscard]] double round_nic_ns(const Layout& layout, Rank radix, double weight,
                                    int round) const {
    const auto [digits, segments, message] = round_of(layout, radix, weight, round);
    double writers = 0;
    for (Rank digit = 1; digit <= digits; ++digit) {
      const double distance = digit * weight;
      writers += std::min({node_, distance, ranks_ - distance});
    }
    return segments * writers * nic_ns(message);
  }
  [[nodiscard]] double round_ns(const Layout& layout, Rank radix, double weight, int round,
                                Way way) const {
    const auto [digits, segments, message] = round_of(layout, radix, weight, round);
    const bool near = way == Way::kWithinNodes;
    const double put = near ? near_put_ns(message) : put_ns(message);
    const double nic = near ? 0 : message.writers * nic_ns(message);
    const double latency = near ? kLocalLatencyNs : kLatencyNs;
    const double take =
        near ? near_take_ns(message) : kTakeNs + copy_ns(message.bytes, message.landing_runs);
    const bool is_short = message.bytes <= limits_.inline_bytes;
    const double one_after_another = put + nic + latency + take;
    // Segments take turns with those that come, of one digit after another.
    if (segments > 1) return digits * segments * one_after_another;
    // All short ones are put before the first is taken; those of many ranks of a node hold up one
    // another then, by about as much as is saved.
    const auto count = static_cast<Rank>(digits);
    const bool at_once = is_short && (near || node_ <= 4);
    const Rank ahead = at_once ? count : std::min<Rank>(count, limits_.large_slots);
    return exchange_ns(put, nic, latency, take, count, ahead);
  }

  // So many messages that are put and taken, up to `ahead` of them put before the first is taken.
  // All ranks do the same: a message comes when the rank's own one arrives.
  [[nodiscard]] static double exchange_ns(double put, double nic, double latency, double take,
                                          Rank count, Rank ahead) {
    double now = 0, nic_free = 0;
    std::vector<double> arrivals;
    for (Rank i = 0; i < count + ahead - 1; ++i) {
      if (i < count) {
        now += put;
        nic_free = std::max(nic_free, now) + nic;
        arrivals.push_back(nic_free + latency);
      }
      const Rank taken = i - ahead + 1;
      if (taken >= 0) now = std::max(now, arrivals[static_cast<std::size_t>(taken)]) + take;
    }
    return now;
  }

  [[nodiscard]] double copy_ns(double bytes, double runs) const {
    const ListCosts& costs = limits_.list_costs;
    return bytes == 0 ? 0
                      : static_cast<double>(costs.copy_ps) / 1e3 +
                            runs * static_cast<double>(costs.run_ps) / 1e3 +
                            bytes * static_cast<double>(costs.byte_fs) / 1e6;
  }
  // As Lists (algorithms/common/lists.h) decides.
  [[nodiscard]] bool gathers(const PutMessage& message) const {
    if (message.bytes <= kInlineBytes) return true;
    const double more = further_requests(message);
    const double parts_ns = more * static_cast<double>(limits_.list_costs.part_ps) / 1e3;
    if (limits_.gather_entries <= 1 || (more > 0 && parts_ns == 0)) return false;
    return node_ * (entries_ns(message) + parts_ns) <= copy_ns(message.bytes, message.runs);
  }
  [[nodiscard]] double further_requests(const PutMessage& message) const {
    if (message.bytes <= kInlineBytes) return 0;
    return static_cast<double>(limits_.requests(std::llround(std::ceil(message.runs))) - 1);
  }
  // After the first of each request.
  [[nodiscard]] double entries_ns(const PutMessage& message) const {
    const double entries = message.runs - 1 - further_requests(message);
    return entries * static_cast<double>(limits_.list_costs.entry_ps) / 1e3;
  }
  [[nodiscard]] double put_ns(const PutMessage& message) const {
    if (message.bytes <= kInlineBytes) return kPostNs + kInlineNsPerByte * message.bytes;
    return kPostNs + (gathers(message) ? further_requests(message) * kPostNs
                                       : copy_ns(message.bytes, message.runs));
  }
  [[nodiscard]] double near_put_ns(const PutMessage& message) const {
    const double scattered =
        (message.runs - 1) * static_cast<double>(limits_.list_costs.run_ps) / 1e3;
    const bool is_line = message.bytes <= limits_.inline_bytes;
    return (is_line ? kLocalNs / 2 : kLocalNs + kLocalNsPerByte * message.bytes) + scattered;
  }
  [[nodiscard]] double near_take_ns(const PutMessage& message) const {
    return kLocalNs / 2 + copy_ns(message.bytes, message.landing_runs);
  }
  [[nodiscard]] double nic_ns(const PutMessage& message) const {
    return kGapNs + kWireNsPerByte * message.bytes +
           (gathers(message) ? entries_ns(message) + further_requests(message) * kGapNs : 0);
  }

  const Limits& limits_;
  double ranks_, block_;
  double nodes_;
  double node_, smallest_;  // ranks of the largest node, and of the smallest
};

}  // namespace

double alltoall_model_ns(const AlgorithmChoice& choice, const Shared& shared,
                         const Limits& limits) {
  return Model(shared, limits).ns(choice);
}

AlgorithmChoice alltoall_by_model(const Shared& shared, const Limits& limits) {
  constexpr Rank kMostRadix = 8;
  const Model model(shared, limits);
  AlgorithmChoice best{.algorithm = find_algorithm("alltoall.pairwise")};
  // Where ranks share no NIC, Bruck's exchange has to save a twentieth: hdr's pairwise exchange is
  // the faster of two that are near one another on edr.
  double least = (model.shares_nics() ? 1 : 0.95) * model.pairwise_ns();
  if (model.has_lanes() && model.lanes_ns() < least) {
    best = {.algorithm = find_algorithm(kLanes)};
    least = model.lanes_ns();
  }
  for (const Layout& layout : kLayouts) {
    AlgorithmChoice choice{.algorithm = find_algorithm(layout.id)};
    for (Rank radix = 2; radix <= kMostRadix && radix < shared.ranks; ++radix) {
      choice.params.k = radix;
      const double ns = model.bruck_ns(layout, radix);
      if (ns >= least) continue;
      least = ns;
      best = choice;
    }
  }
  return best;
}

}  // namespace carillon
