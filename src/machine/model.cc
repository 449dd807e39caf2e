// SPDX-License-Identifier: Apache-2.0
#include "machine/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "machine/model_way.h"

namespace carillon::machine {
namespace {

std::int64_t whole(const ModelCall& call) { return call.bytes; }
std::int64_t segment(const ModelCall& call) { return std::min(call.bytes, call.segment_bytes); }
std::int64_t block(const ModelCall& call) { return call.bytes / call.ranks; }
// Of so many blocks of whole elements.
std::int64_t longest_block(const ModelCall& call, std::int64_t blocks) {
  return (call.bytes / call.element_bytes + blocks - 1) / blocks * call.element_bytes;
}
// Of the subtrees of a binomial tree, and of the blocks: the first ones may be an element longer.
std::int64_t half_of_blocks(const ModelCall& call) {
  return std::min(call.bytes, longest_block(call, call.ranks) * ((call.ranks + 1) / 2));
}
std::int64_t piece(const ModelCall& call) { return longest_block(call, call.ranks); }
std::int64_t piece_of_others(const ModelCall& call) { return longest_block(call, call.ranks - 1); }
bool is_folded(const ModelCall& call) { return power_of_two_below(call.ranks) != call.ranks; }
// By halves of blocks, of which the first ones may be longer; folded all at first.
std::int64_t half(const ModelCall& call) {
  return is_folded(call) ? call.bytes : BlockBytes(call, call.ranks)(0, call.ranks / 2);
}

std::int64_t none(const ModelCall& /*call*/) { return 0; }
std::int64_t half_of_ranks(const ModelCall& call) { return call.bytes * (call.ranks / 2); }
std::int64_t half_around(const ModelCall& call) { return block(call) * (call.ranks / 2); }
std::int64_t all_blocks(const ModelCall& call) { return call.bytes * call.ranks; }
std::int64_t half_of_blocks_or_all(const ModelCall& call) {
  return is_folded(call) ? all_blocks(call) : half_of_ranks(call);
}
// The largest subtree of a binomial tree.
std::int64_t subtree(const ModelCall& call) {
  const std::int32_t below = power_of_two_below(call.ranks);
  return call.bytes * (below == call.ranks ? below / 2 : std::max(below / 2, call.ranks - below));
}

std::int64_t subtree_of_k(const ModelCall& call) {
  std::int64_t below = 1;  // the largest power of k that is less than the ranks
  while (below * call.k < call.ranks) below *= call.k;
  return call.bytes * std::max(std::min(below, call.ranks - below), below / call.k);
}

// Of a vector in blocks, around the ring and up a tree.
std::int64_t half_around_or_subtree(const ModelCall& call) {
  ModelCall of_block = call;
  of_block.bytes = block(call);
  return std::max(half_around(call), subtree_of_k(of_block));
}

constexpr std::array kModels = {
    ModelRow{"bcast.flat", "(P-1) max(S, G n + g) + F + R + C", 0, bcast_flat_ps, whole},
    ModelRow{"bcast.binomial", "max over ranks of sum over its ancestors: j S + F + R; then C", 0,
             bcast_binomial_ps, whole},
    ModelRow{"bcast.knomial", "max over ranks of sum over its ancestors: j S + F + R; then C", 2,
             bcast_knomial_ps, whole},
    ModelRow{"bcast.chain", "S + (P-1) F + (P-2) (R + S) + R + C; + (n/s - 1) of the slowest stage",
             0, bcast_chain_ps, segment},
    ModelRow{"bcast.scatter_allgather",
             "scatter: sum over i of S + F(n/2^i) + R + C(n/2^i); ring: (P-1) (S + F + R + C)(n/P)",
             0, bcast_scatter_allgather_ps, half_of_blocks},
    ModelRow{"bcast.switch", "as allreduce.switch, where all but one host give packets of nothing",
             0, bcast_switch_ps, none},
    ModelRow{"bcast.scatter_bruck",
             "scatter: as scatter.binomial, of radix 8; sum over i of (k-1) S + F + (k-1) (R + C)"
             "(k^i n/(P-1))",
             2, bcast_scatter_bruck_ps, longest_of_scatter_bruck},
    ModelRow{"bcast.scatter_direct",
             "short blocks, or two ranks: (P-1) S + F + R of the last block, (P-2) S + C, F, "
             "(P-2) (R + C)",
             0, bcast_scatter_direct_ps, piece_of_others},
    ModelRow{"allreduce.flat", "(P-1) S + F + (P-1) (R + A)", 0, allreduce_flat_ps, whole},
    ModelRow{"allreduce.flat_blocks",
             "short vectors, or two ranks: (P-1) S, F, (P-1) (R + A), (P-1) S, F, (P-1) (R + C) "
             "of n/P",
             0, allreduce_flat_blocks_ps, piece},
    ModelRow{
        "allreduce.degree_k",
        "up: sum over levels of S + F + (k-1) max(G n + g, R + A) + R + A; down: bcast.knomial", 1,
        allreduce_degree_k_ps, whole},
    ModelRow{"allreduce.recursive_doubling", "log2(P) (S + F + R + A); folded: 2 more, one with C",
             0, allreduce_recursive_doubling_ps, whole},
    ModelRow{"allreduce.recursive_multiplying",
             "ceil(log_k P) ((k-1) (S + R + A) + F); uneven parts: a message more", 2,
             allreduce_recursive_multiplying_ps, whole},
    ModelRow{"allreduce.circulant",
             "sum over i of 2 (S + F + R)(n_i) + A(n_i) + C(n_i), n_i = n/2, n/4, ... of blocks", 0,
             allreduce_circulant_ps, half_around},
    ModelRow{"allreduce.reduce_scatter_allgather",
             "sum over i of 2 (S + F + R)(n/2^i) + A(n/2^i) + C(n/2^i); folded: 2 more of n", 0,
             allreduce_reduce_scatter_allgather_ps, half},
    ModelRow{"allreduce.ring", "(P-1) (2 (S + F + R) + A + C)(n/P)", 0, allreduce_ring_ps, block},
    ModelRow{"allreduce.switch",
             "S + H + L up, per level T and L, down the same; C; + (packets - 1) of the slowest", 0,
             allreduce_switch_ps, none},
    ModelRow{"barrier.switch", "as allreduce.switch of 0 bytes", 0, barrier_switch_ps, none},
    ModelRow{"barrier.dissemination", "ceil(log2 P) (S + F + R)(0)", 0, barrier_dissemination_ps,
             none},
    ModelRow{"barrier.multiway_dissemination", "ceil(log_k P) ((k-1) S + F + (k-1) R)(0)", 2,
             barrier_multiway_dissemination_ps, none},
    ModelRow{"barrier.flat", "(P-1) S + F + (P-1) R, of 0 bytes", 0, barrier_flat_ps, none},
    ModelRow{"barrier.degree_k", "as allreduce.degree_k of 0 bytes without A and C", 1,
             barrier_degree_k_ps, none},
    ModelRow{"reduce.flat", "S + F + (P-1) max(G n + g, R + A)", 0, reduce_flat_ps, whole},
    ModelRow{"reduce.switch", "as allreduce.switch", 0, allreduce_switch_ps, none},
    ModelRow{"reduce.flat_blocks",
             "short vectors, or two ranks: (P-1) S, F, (P-1) (R + A), S + F, (P-1) (R + C) of n/P",
             0, reduce_flat_blocks_ps, piece},
    ModelRow{"reduce.reduce_scatter_gather",
             "sum over i of 2 (S + F + R)(n/2^i) + A(n/2^i) + C(n/2^i); folded: 1 more of n", 0,
             reduce_reduce_scatter_gather_ps, half},
    ModelRow{"reduce.circulant",
             "sum over i of (S + F + R + A)(n_i), n_i = n/2, n/4, ... of blocks; as gather.knomial",
             2, reduce_circulant_ps, half_around_or_subtree},
    ModelRow{"reduce.degree_k", "sum over levels of S + F + (k-1) max(G n + g, R + A) + R + A", 1,
             reduce_degree_k_ps, whole},
    ModelRow{"allgather.flat", "short blocks, or two ranks: (P-1) S + C, F, (P-1) (R + C)", 0,
             allgather_flat_ps, whole},
    ModelRow{"allgather.ring", "(P-1) (S + F + R + C) + C", 0, allgather_ring_ps, whole},
    ModelRow{"allgather.recursive_doubling",
             "sum over i of (S + F + R + C)(2^i n); C; folded: 2 more", 0,
             allgather_recursive_doubling_ps, half_of_blocks_or_all},
    ModelRow{"allgather.bruck", "sum over i of (k-1) S + F + (k-1) (R + C)(k^i n); C", 2,
             allgather_bruck_ps, longest_of_bruck},
    ModelRow{"gather.flat", "S + F + (P-1) max(G n + g, R + C), at least 2 C + R", 0,
             gather_flat_ps, whole},
    ModelRow{"gather.binomial", "sum over i of (S + F + R)(2^i n), the last with C", 0,
             gather_binomial_ps, subtree},
    ModelRow{"gather.knomial", "sum over i of S + F + (k-1) R of the blocks below, the last with C",
             2, gather_knomial_ps, subtree_of_k},
    ModelRow{"scatter.flat", "(P-1) max(S, G n + g) + F + R + C", 0, scatter_flat_ps, whole},
    ModelRow{"scatter.broadcast", "as scatter.flat", 0, scatter_flat_ps, whole},
    ModelRow{"scatter.binomial",
             "max over ranks of sum over its ancestors: j S + (F + R)(m n), m ranks below; then C",
             0, scatter_binomial_ps, subtree},
    ModelRow{"scatter.knomial",
             "max over ranks of sum over its ancestors: j S + (F + R)(m n), m ranks below; then C",
             2, scatter_knomial_ps, subtree_of_k},
    ModelRow{"scan.chain", "(P-1) (S + F + R + A)", 0, scan_chain_ps, whole},
    ModelRow{"scan.recursive_doubling",
             "ceil(log2 P) (S + F + R + A), and A where both partial result and prefix grow", 0,
             scan_recursive_doubling_ps, whole},
    ModelRow{"exscan.chain", "(P-2) (S + F + R + A); S + F + R + C", 0, exscan_chain_ps, whole},
    ModelRow{"exscan.recursive_doubling",
             "ceil(log2 P) (S + F + R + A), and A or C where both partial result and prefix grow",
             0, exscan_recursive_doubling_ps, whole},
    ModelRow{"reduce_scatter_block.flat", "short blocks, or two ranks: (P-1) S, F, (P-1) (R + A)",
             0, reduce_scatter_block_flat_ps, whole},
    ModelRow{"reduce_scatter_block.pairwise",
             "(P-1) (S + F + R + A); of short blocks (P-1) max(S, G n + g) + F + R + A", 0,
             reduce_scatter_block_pairwise_ps, whole},
    ModelRow{"reduce_scatter_block.recursive_halving",
             "sum over i of (S + F + R + A)(2^i n); folded: 2 more", 0,
             reduce_scatter_block_recursive_halving_ps, half_of_blocks_or_all},
    ModelRow{"reduce_scatter_block.circulant",
             "sum over i of (S + F + R + A)(n_i), n_i = n P/2, n P/4, ...", 0,
             reduce_scatter_block_circulant_ps, half_of_ranks},
    ModelRow{"reduce_scatter_block.lanes", "as reduce_scatter_block.circulant", 0,
             reduce_scatter_block_circulant_ps, half_of_ranks},
    ModelRow{"reduce_scatter_block.through_root",
             "as reduce.degree_k or, of more than 8 KiB, reduce.reduce_scatter_gather of P n; as "
             "scatter.knomial of radix 4",
             0, reduce_scatter_block_through_root_ps, all_blocks},
    ModelRow{"reduce_scatter_block.through_all",
             "as allreduce.recursive_multiplying of P n, k = 3; C", 0,
             reduce_scatter_block_through_all_ps, all_blocks},
    ModelRow{"alltoall.flat", "short blocks, or two ranks: (P-1) S + C, F, (P-1) (R + C)", 0,
             alltoall_flat_ps, whole},
    ModelRow{"alltoall.pairwise", "short blocks: (P-1) S + C, F, (P-1) (R + C)", 0,
             alltoall_pairwise_ps, whole},
};

Status refuse(const ModelCall& call, const std::string& why) {
  return {Code::kUnsupported, fmt::format("no closed form of {} says how long that takes: {}; "
                                          "carillon sim does",
                                          call.algorithm, why)};
}

Status check_numbers(const ModelCall& call) {
  const auto wrong = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (call.ranks < 1) return wrong(fmt::format("{} ranks: there must be 1 or more", call.ranks));
  if (call.bytes < 0 || call.bytes > kMost) {
    return wrong(fmt::format("{} bytes: must be within 0 and 2^40", call.bytes));
  }
  if (call.element_bytes < 1 || call.bytes % call.element_bytes != 0) {
    return wrong(fmt::format("{} bytes are no whole number of elements of {} bytes", call.bytes,
                             call.element_bytes));
  }
  if (call.segment_bytes < call.element_bytes) {
    return wrong(fmt::format("a segment of {} bytes holds no element", call.segment_bytes));
  }
  return {};
}

// By a message from each rank to all others, rank by rank.
bool goes_directly(const ModelRow& row) {
  return row.id.ends_with(".flat_blocks") || row.id == "bcast.scatter_direct";
}

// By a message from each rank to all others, one for all ranks.
bool goes_to_all(const ModelRow& row) {
  return row.id == "allreduce.flat" || row.id == "barrier.flat" || row.id == "allgather.flat" ||
         row.id == "alltoall.flat" || row.id == "reduce_scatter_block.flat";
}

// Of algorithms that move a block for each rank.
Status check_blocks(const ModelRow& row, const ModelCall& call) {
  if (row.id.starts_with("gather.") && row.id.ends_with("nomial") && call.two_sided &&
      call.ranks > 2) {
    return refuse(call, "messages that lie side by side go on as one");
  }
  const bool short_ones = row.id == "alltoall.pairwise" || (goes_to_all(row) && call.ranks > 2);
  const bool is_barrier = row.id == "barrier.flat";
  if (short_ones && !is_barrier && call.bytes > call.inline_bytes) {
    return refuse(call, fmt::format("messages of {} bytes take turns in being put and waited for",
                                    call.bytes));
  }
  const std::int64_t put_at_once = row.id == "bcast.scatter_direct"
                                       ? row.longest(call)
                                       : std::min(call.bytes, call.segment_bytes);
  if (goes_directly(row) && call.ranks > 2 && put_at_once > call.inline_bytes) {
    return refuse(call, fmt::format("strands of a rank share its CPU where {} has {} bytes",
                                    row.id == "bcast.scatter_direct" ? "a block" : "the vector",
                                    put_at_once));
  }
  return {};
}

// Each k takes long for those.
constexpr std::int32_t kMostTriedInRounds = 64;
bool goes_in_rounds(const ModelRow& row) {
  return row.id.ends_with(".recursive_multiplying") || row.id.ends_with(".circulant") ||
         row.id == "reduce.reduce_scatter_gather" || row.id == "reduce_scatter_block.lanes" ||
         row.id.starts_with("reduce_scatter_block.through_") || row.id == "bcast.scatter_bruck" ||
         row.id == "allgather.bruck";
}

// By halving and doubling, where ranks do not all do the same.
bool goes_by_unlike_halves(const ModelRow& row, const ModelCall& call) {
  if (row.id == "allreduce.reduce_scatter_allgather") {
    return !divides(call, power_of_two_below(call.ranks));
  }
  return is_folded(call) && (row.id == "allgather.recursive_doubling" ||
                             row.id == "reduce_scatter_block.recursive_halving");
}

// Of those that are computed rank by rank.
Status check_rounds(const ModelRow& row, const ModelCall& call) {
  const bool in_rounds = goes_in_rounds(row) || goes_by_unlike_halves(row, call);
  constexpr std::int32_t kMost = 4096;
  if (call.ranks > kMost &&
      (in_rounds || goes_to_all(row) || row.id.ends_with("scan.recursive_doubling") ||
       row.id.ends_with(".flat_blocks"))) {
    return refuse(call, fmt::format("of more than {} ranks", kMost));
  }
  constexpr std::int32_t kMostSquare = 512;  // each sends to each, and all of that is kept
  if (call.ranks > kMostSquare && row.id == "bcast.scatter_direct") {
    return refuse(call, fmt::format("of more than {} ranks", kMostSquare));
  }
  if ((row.id == "allreduce.circulant" || row.id == "reduce.circulant" ||
       row.id == "allreduce.ring") &&
      !divides(call, call.ranks)) {
    return refuse(call, "the blocks of the ranks are not equal");
  }
  if (row.id == "bcast.scatter_bruck" && call.bytes / call.element_bytes < call.ranks - 1) {
    return refuse(call, "some ranks have no block");
  }
  return {};
}

bool is_in_switches(std::string_view algorithm) { return algorithm.ends_with(".switch"); }

Status check_switches(const Machine& machine, const ModelCall& call) {
  if (!is_in_switches(call.algorithm)) return {};
  if (call.two_sided) return refuse(call, "it does not send and receive");
  if (machine.in_switch.ports > 0) {
    const std::int64_t count = packets(machine.in_switch, call.bytes);
    if (count <= kMostPackets) return {};
    return {Code::kUnsupported,
            fmt::format("{} bytes are {} packets of machine {}'s switches: more than {} of one "
                        "reduction are neither simulated nor modelled",
                        call.bytes, count, machine.name, kMostPackets)};
  }
  return refuse(call, fmt::format("machine {} has no switches that reduce", machine.name));
}

// Whether this is a case without contention.
Status check_alone(const ModelRow& row, const Machine& machine, const ModelCall& call) {
  const std::int64_t longest = row.longest(call);
  if (longest > call.segment_bytes) {
    return refuse(call, fmt::format("messages of {} bytes go in segments of {}", longest,
                                    call.segment_bytes));
  }
  if (call.two_sided && longest > machine.two_sided.eager_bytes) {
    return refuse(call, fmt::format("messages of {} bytes are not eager", longest));
  }
  const std::int32_t on_host = std::min(call.ranks, machine.node.nodes_per_host);
  if (machine.node.switch_ps > 0 && on_host > machine.node.cores) {
    return refuse(
        call, fmt::format("{} nodes of a host share its {} cores", on_host, machine.node.cores));
  }
  const bool in_switch = is_in_switches(row.id);
  const auto& levels = machine.topology.levels;
  if (!in_switch && !levels.empty() && call.ranks > levels[0].radix) {
    return refuse(
        call, fmt::format("{} nodes are at several switches of {}", call.ranks, levels[0].radix));
  }
  const bool is_short = call.bytes <= call.inline_bytes;
  const bool both_ways =
      in_switch || goes_in_rounds(row) || goes_directly(row) || goes_to_all(row) ||
      row.id == "bcast.scatter_allgather" || row.id == "barrier.multiway_dissemination" ||
      row.id.ends_with("scan.recursive_doubling") || row.id == "alltoall.pairwise" ||
      (row.id == "reduce_scatter_block.pairwise" && is_short) ||
      (row.id == "bcast.chain" && call.bytes > call.segment_bytes) ||
      goes_by_unlike_halves(row, call) || (row.id.starts_with("allreduce.re") && is_folded(call));
  if (machine.bus.half_duplex && both_ways) {
    return refuse(call, "messages in and out wait for one another on the bus");
  }
  if (Status status = check_rounds(row, call); !status.ok()) return status;
  return check_blocks(row, call);
}

// Of a rank that is alone.
std::int64_t time_alone_ps(const Machine& machine, const ModelCall& call) {
  if (call.algorithm.starts_with("barrier.") || call.algorithm.starts_with("bcast.")) return 0;
  Host host;
  const Way way(machine, call);
  way.begin(&host, call.bytes);
  if (call.algorithm.starts_with("exscan.")) return host.cpu_ps;  // it has no output
  way.copy(&host, call.bytes);
  way.end(&host, call.bytes);
  return host.cpu_ps;
}

Status too_long(const ModelCall& call) {
  return {Code::kUnsupported,
          fmt::format("{} of {} bytes takes longer than can be told", call.algorithm, call.bytes)};
}

// Whether 63 bits are enough for what is added up on the way: no rank waits for more messages than
// that, one after the other.
bool can_be_told(const ModelRow& row, const Machine& machine, const ModelCall& call) {
  const Transfer longest{.bytes = row.longest(call)};
  const Occupancy busy = occupancy(machine, longest, 0, true);
  double each_ps = 0;
  for (const std::int64_t ps :
       {busy.wire_ps, busy.receive_ps, busy.bus_ps, busy.bus_ps, put_ps(machine, longest),
        send_ps(machine, longest), recv_ps(machine, longest),
        copy_ps(machine.memory, longest.bytes), reduce_ps(machine.memory, longest.bytes),
        memory_ps(machine.memory, longest.bytes), wire_latency_ps(machine, 0),
        machine.network.gap_ps, wait_ps(machine), 2 * machine.bus.per_message_ps}) {
    each_ps += static_cast<double>(ps);
  }
  const auto segments = call.bytes / call.segment_bytes;
  const double messages = 2.0 * call.ranks + static_cast<double>(segments);
  return each_ps * messages < static_cast<double>(INT64_MAX);
}

}  // namespace

std::span<const ModelRow> models() { return kModels; }

const ModelRow* find_model(std::string_view algorithm) {
  const auto* const found = std::find_if(kModels.begin(), kModels.end(),
                                         [&](const ModelRow& row) { return row.id == algorithm; });
  return found == kModels.end() ? nullptr : found;
}

Result<std::int64_t> model_ps(const Machine& machine, const ModelCall& call) {
  const ModelRow* const row = find_model(call.algorithm);
  if (row == nullptr) {
    std::string known;
    for (const ModelRow& each : kModels)
      known += (known.empty() ? "" : ", ") + std::string(each.id);
    return Status(Code::kUnsupported, fmt::format("there is no closed form of {}; there are {}",
                                                  call.algorithm, known));
  }
  if (Status status = check_numbers(call); !status.ok()) return status;
  if (call.k < row->least_k || (row->least_k == 0 && call.k != 0)) {
    return Status(Code::kInvalidArgument, fmt::format("{} cannot have k = {}", row->id, call.k));
  }
  if (row->id == "allgather.bruck" && call.k > std::max(call.ranks, 2)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} cannot have k = {} with {} ranks", row->id, call.k, call.ranks));
  }
  if (Status status = check_switches(machine, call); !status.ok()) return status;
  const bool is_barrier = call.algorithm.starts_with("barrier.");
  // Bruck's exchange sends messages of nothing.
  const bool is_bruck =
      call.algorithm == "allgather.bruck" || call.algorithm == "bcast.scatter_bruck";
  if (call.bytes == 0 && !is_barrier && !is_bruck) return std::int64_t{0};
  std::int64_t time_ps = 0;
  if (call.ranks == 1) {
    time_ps = time_alone_ps(machine, call);
  } else {
    if (Status status = check_alone(*row, machine, call); !status.ok()) return status;
    if (!is_in_switches(row->id) && !can_be_told(*row, machine, call)) return too_long(call);
    time_ps = row->time_ps(machine, call);
  }
  if (time_ps < 0) return refuse(call, "messages overtake one another");
  if (time_ps > kLastPs) return too_long(call);
  return time_ps;
}

Result<BestK> best_k(const Machine& machine, ModelCall call, std::int32_t most) {
  const ModelRow* const row = find_model(call.algorithm);
  const std::int32_t first = row == nullptr ? 0 : row->least_k;
  // A radix of P and more is the flat tree of radix P, a degree one less.
  const std::int32_t flat = std::max(first, call.ranks - 1 + (first > 1 ? 1 : 0));
  if (row != nullptr && goes_in_rounds(*row)) most = std::min(most, kMostTriedInRounds);
  BestK best;
  for (call.k = first; call.k <= std::min(flat, most); ++call.k) {
    const Result<std::int64_t> time = model_ps(machine, call);
    if (!time.ok()) return time.status();
    if (best.k == 0 || time.value() < best.time_ps) best = {call.k, time.value()};
    if (first == 0) break;
  }
  return best;
}

}  // namespace carillon::machine
