// SPDX-License-Identifier: Apache-2.0
#include "algorithms/registry.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "algorithms/catalogue.h"

namespace carillon {
namespace {

using enum Collective;

constexpr Algorithm::KRange kRadix{2, INT32_MAX, 2};  // at most the number of ranks, as check says
constexpr Algorithm::KRange kRadixOfFour{2, INT32_MAX, 4};
constexpr Algorithm::Traits kLeftToRight{.left_to_right = true};
constexpr Algorithm::Traits kBruck{.radix = true, .lists = true};

// Columns: id, description, collective, emit, needs_commutative, k (min, max, default), segments,
// traits (registry.h), levels.
// clang-format off
constexpr std::array kAlgorithms = {
    Algorithm{"barrier.dissemination", "signals over distances 1, 2, 4, ...", kBarrier,
              emit_barrier_dissemination},
    Algorithm{"barrier.flat", "everybody signals all, everybody waits for all", kBarrier,
              emit_barrier_flat},
    Algorithm{"barrier.degree_k", "up and down a tree with k children at once; k: children",
              kBarrier, emit_barrier_degree_k, false, {1, 1024, 3}},
    Algorithm{"barrier.hierarchical", "nodes, then their leaders, then nodes", kBarrier,
              emit_barrier_hierarchical, false, {}, false, {},
              {"barrier.flat", "barrier.dissemination", "barrier.flat"}},
    Algorithm{"barrier.multicast", "signals to the first leader, up a tree, then one multicast; k: children",
              kBarrier, emit_barrier_multicast, false, {1, 1024, 3}, false, {.multicast = true}},

    Algorithm{"bcast.flat", "the root writes once, everybody reads", kBcast, emit_bcast_flat,
              false, {}, true},
    Algorithm{"bcast.binomial", "down a binomial tree", kBcast, emit_bcast_binomial, false, {},
              true},
    Algorithm{"bcast.knomial", "down a k-nomial tree; k: radix", kBcast, emit_bcast_knomial, false,
              {2, 1024, 4}, true},
    Algorithm{"bcast.chain", "from rank to rank, pipelined by segments", kBcast, emit_bcast_chain,
              false, {}, true},
    Algorithm{"bcast.scatter_allgather", "binomial scatter, then ring allgather", kBcast,
              emit_bcast_scatter_allgather, false, {}, true},
    Algorithm{"bcast.hierarchical", "to one rank per node, then within the nodes", kBcast,
              emit_bcast_hierarchical, false, {}, true, {}, {"", "bcast.knomial", "bcast.flat"}},
    Algorithm{"bcast.multicast", "one multicast to every process", kBcast, emit_bcast_multicast,
              false, {}, true, {.multicast = true}},
    Algorithm{"bcast.multicast_coroots", "one multicast, and copies to one in k; k: in a co-root's care",
              kBcast, emit_bcast_multicast_coroots, false, {2, 1024, 8}, true,
              {.multicast = true}},
    Algorithm{"bcast.multicast_leader", "one multicast to a process per node, which tells its node",
              kBcast, emit_bcast_multicast_leader, false, {}, true, {.multicast = true}},
    Algorithm{"bcast.multicast_dynamic", "one multicast to the process of each node that comes first",
              kBcast, emit_bcast_multicast_dynamic, false, {}, true, {.multicast = true}},

    Algorithm{"reduce.flat", "the root reads and reduces everything", kReduce, emit_reduce_flat,
              false, {}, true, kLeftToRight},
    Algorithm{"reduce.flat_blocks", "rank r reduces piece r of every segment for the root",
              kReduce, emit_reduce_flat_blocks, false, {}, true, kLeftToRight},
    Algorithm{"reduce.degree_k", "up a tree with k children at once per level; k: children",
              kReduce, emit_reduce_degree_k, false, {1, 1024, 3}, true},
    Algorithm{"reduce.reduce_scatter_gather", "recursive halving, then binomial gather", kReduce,
              emit_reduce_reduce_scatter_gather, false, {}, true},
    Algorithm{"reduce.hierarchical", "within the nodes, then from one rank per node", kReduce,
              emit_reduce_hierarchical, false, {}, true, {},
              {"reduce.flat", "reduce.degree_k", ""}},

    Algorithm{"allreduce.flat", "everybody reads and reduces everything", kAllreduce,
              emit_allreduce_flat, false, {}, true, kLeftToRight},
    Algorithm{"allreduce.flat_blocks", "rank r reduces piece r of every segment for all",
              kAllreduce, emit_allreduce_flat_blocks, false, {}, true, kLeftToRight},
    Algorithm{"allreduce.degree_k", "reduce up, bcast down a degree-k tree; k: children",
              kAllreduce, emit_allreduce_degree_k, false, {1, 1024, 3}, true},
    Algorithm{"allreduce.recursive_doubling", "partners at distances 1, 2, 4, ... exchange sums",
              kAllreduce, emit_allreduce_recursive_doubling, false, {}, true},
    Algorithm{"allreduce.reduce_scatter_allgather", "recursive halving, then recursive doubling",
              kAllreduce, emit_allreduce_reduce_scatter_allgather, false, {}, true},
    Algorithm{"allreduce.ring", "ring reduce-scatter, then ring allgather", kAllreduce,
              emit_allreduce_ring, true, {}, true},
    Algorithm{"allreduce.hierarchical", "reduce in nodes, allreduce of leaders, bcast in nodes",
              kAllreduce, emit_allreduce_hierarchical, false, {}, true, {},
              {"reduce.flat", "allreduce.recursive_doubling", "bcast.flat"}},
    Algorithm{"allreduce.multicast", "reduce in nodes, reduce of leaders, multicast of the result",
              kAllreduce, emit_allreduce_multicast, false, {}, true, {.multicast = true},
              {"reduce.flat", "reduce.degree_k", "bcast.multicast_dynamic"}},
    Algorithm{"allreduce.switch", "reduce in nodes, the switch reduces for the leaders, bcast in nodes",
              kAllreduce, emit_allreduce_switch, true, {}, true, {.in_switch = true},
              {"reduce.flat", "", "bcast.flat"}},

    Algorithm{"allgather.flat", "everybody reads everybody's block", kAllgather,
              emit_allgather_flat, false, {}, true, {.weights = true}},
    Algorithm{"allgather.recursive_doubling", "partners at distances 1, 2, 4, ... exchange blocks",
              kAllgather, emit_allgather_recursive_doubling, false, {}, true, {.weights = true}},
    Algorithm{"allgather.bruck", "logk P steps for any P; k: radix", kAllgather, emit_allgather_bruck,
              false, kRadix, true, {.weights = true, .radix = true}},
    Algorithm{"allgather.ring", "blocks travel around the ring", kAllgather, emit_allgather_ring,
              false, {}, true, {.weights = true}},
    Algorithm{"allgather.hierarchical", "gather in nodes, allgather of leaders, bcast in nodes",
              kAllgather, emit_allgather_hierarchical, false, {}, true, {},
              {"gather.flat", "allgather.bruck", "bcast.flat"}},
    Algorithm{"allgather.multicast", "gather in nodes, a multicast of each leader, bcast in nodes",
              kAllgather, emit_allgather_multicast, false, {}, true, {.multicast = true},
              {"gather.flat", "", "bcast.flat"}},

    Algorithm{"gather.flat", "everybody puts to the root", kGather, emit_gather_flat, false, {},
              true},
    Algorithm{"gather.binomial", "up a binomial tree", kGather, emit_gather_binomial, false, {},
              true},

    Algorithm{"scatter.flat", "the root puts to everybody", kScatter, emit_scatter_flat, false, {},
              true},
    Algorithm{"scatter.broadcast", "the root writes all blocks once, everybody reads its own",
              kScatter, emit_scatter_broadcast, false, {}, true},
    Algorithm{"scatter.binomial", "down a binomial tree", kScatter, emit_scatter_binomial, false,
              {}, true},

    Algorithm{"reduce_scatter_block.flat", "everybody reads and reduces its own block",
              kReduceScatterBlock, emit_reduce_scatter_block_flat, false, {}, true, kLeftToRight},
    Algorithm{"reduce_scatter_block.pairwise", "one partner per step", kReduceScatterBlock,
              emit_reduce_scatter_block_pairwise, true, {}, true},
    Algorithm{"reduce_scatter_block.recursive_halving", "halves go to partners P/2, P/4, ... away",
              kReduceScatterBlock, emit_reduce_scatter_block_recursive_halving, true, {}, true},

    Algorithm{"alltoall.flat", "one message per rank, everybody picks out its blocks", kAlltoall,
              emit_alltoall_flat, false, {}, true},
    Algorithm{"alltoall.pairwise", "one partner per step", kAlltoall, emit_alltoall_pairwise,
              false, {}, true, {.weights = true}},
    Algorithm{"alltoall.bruck_inplace", "log P steps; rotated, exchanged in place, turned; k: radix",
              kAlltoall, emit_alltoall_bruck_inplace, false, kRadix, true, kBruck},
    Algorithm{"alltoall.bruck_resident", "log P steps, blocks stay where they land; k: radix",
              kAlltoall, emit_alltoall_bruck_resident, false, kRadix, true, kBruck},
    Algorithm{"alltoall.bruck_reversed", "log P steps, turned first, no rotation after; k: radix",
              kAlltoall, emit_alltoall_bruck_reversed, false, kRadix, true, kBruck},
    Algorithm{"alltoall.bruck_zerocopy", "log P steps between two buffers, no rotation; k: radix",
              kAlltoall, emit_alltoall_bruck_zerocopy, false, kRadix, true, kBruck},
    Algorithm{"alltoall.hierarchical", "gather in nodes, alltoall of leaders, scatter in nodes",
              kAlltoall, emit_alltoall_hierarchical, false, {}, true, {},
              {"gather.flat", "alltoall.pairwise", "scatter.flat"}},

    Algorithm{"alltoallv.pairwise", "one partner per step, send and receive", kAlltoallv,
              emit_alltoallv_pairwise},
    Algorithm{"alltoallv.bruck_two_phase", "log P steps for lengths, then for short blocks; k: radix",
              kAlltoallv, emit_alltoallv_bruck_two_phase, false, kRadixOfFour, false,
              {.radix = true, .stages = true}},
    Algorithm{"alltoallv.survey", "all learn what the tables are like, then pairwise", kAlltoallv,
              emit_alltoallv_survey, false, {}, false, {.stages = true}},

    Algorithm{"scan.chain", "from rank to rank, pipelined by segments", kScan, emit_scan_chain,
              false, {}, true, kLeftToRight},
    Algorithm{"scan.recursive_doubling", "partners at distances 1, 2, 4, ... exchange sums", kScan,
              emit_scan_recursive_doubling, false, {}, true},

    Algorithm{"exscan.chain", "from rank to rank, pipelined by segments", kExscan,
              emit_exscan_chain, false, {}, true, kLeftToRight},
    Algorithm{"exscan.recursive_doubling", "partners at distances 1, 2, 4, ... exchange sums",
              kExscan, emit_exscan_recursive_doubling, false, {}, true},

    Algorithm{"allgatherv.pairwise", "one partner per step, send and receive", kAllgatherv,
              emit_allgatherv_pairwise},

    Algorithm{"gatherv.flat", "everybody sends to the root", kGatherv, emit_gatherv_flat},

    Algorithm{"scatterv.flat", "the root sends to everybody", kScatterv, emit_scatterv_flat},

    Algorithm{"reduce_scatter.flat", "one block after another, reduced by its rank",
              kReduceScatter, emit_reduce_scatter_flat, false, {}, true, kLeftToRight},
    Algorithm{"reduce_scatter.pairwise", "one partner per step", kReduceScatter,
              emit_reduce_scatter_pairwise, true, {}, true},
};
// clang-format on

constexpr std::array<std::string_view, 2> kTransfers{"put", "sendrecv"};
constexpr std::array<std::string_view, 3> kMemories{"pack", "gather", "selective"};
constexpr std::array<std::string_view, 2> kCopies{"runs", "blocks"};

Status bad(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// "allreduce.flat, allreduce.ring, ..." of the collective the id begins with, else of all.
std::string known_ids(std::string_view id) {
  Collective collective = kBarrier;
  const bool one = collective_from_name(id.substr(0, id.find('.')), &collective);
  std::string list;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (one && algorithm.collective != collective) continue;
    list += (list.empty() ? "" : ", ") + std::string(algorithm.id);
  }
  return list;
}

Status parse_number(std::string_view text, std::string_view name, std::string_view digits,
                    Params* params) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const std::int64_t max = name == "k" ? INT32_MAX : INT64_MAX;
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1 || value > max) {
    return bad(quoted(text) + " does not give a positive number, as in " + std::string(name) +
               (name == "k" ? "=4" : "=8192"));
  }
  if (name == "k") {
    params->k = static_cast<std::int32_t>(value);
  } else {
    params->segment_bytes = value;
  }
  return {};
}

std::string_view name_of(const Algorithm& algorithm) {
  return algorithm.id.substr(algorithm.id.find('.') + 1);
}

// "node=flat" or "leaders=ring".
Status parse_level(std::string_view text, std::string_view value, std::string_view* name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (name_of(algorithm) != value || algorithm.has_levels()) continue;
    *name = name_of(algorithm);
    return {};
  }
  return bad(quoted(text) + ": no collective has an algorithm of that name, as in leaders=flat");
}

// One of the words that the parameter can be.
template <std::size_t N>
Status parse_word(std::string_view text, std::string_view value,
                  const std::array<std::string_view, N>& words, std::string_view* word) {
  std::string known;
  for (const std::string_view each : words) {
    if (each == value) {
      *word = each;
      return {};
    }
    const std::string name(text.substr(0, text.find('=')));
    known += known.empty() ? "" : each == words.back() ? " and " : ", ";
    known += name + "=" + std::string(each);
  }
  return bad(quoted(text) + ": there are " + known);
}

// "k=4", "segment=8192", "node=flat", "leaders=ring", "memory=pack", "copies=blocks" or
// "transfer=sendrecv".
Status parse_param(std::string_view text, Params* params) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  if (name == "k" || name == "segment") return parse_number(text, name, value, params);
  if (name == "node") return parse_level(text, value, &params->node);
  if (name == "leaders") return parse_level(text, value, &params->leaders);
  std::string_view word;
  if (name == "transfer") {
    Status status = parse_word(text, value, kTransfers, &word);
    params->two_sided = word == kTransfers.back();
    return status;
  }
  if (name == "memory") return parse_word(text, value, kMemories, &params->memory);
  if (name == "copies") {
    Status status = parse_word(text, value, kCopies, &word);
    params->copy_blocks = word == kCopies.back();
    return status;
  }
  return bad("unknown parameter " + quoted(text) +
             "; there are k=NUMBER and segment=BYTES, transfer=put and transfer=sendrecv, for "
             "hierarchical algorithms node=NAME and leaders=NAME, and for those with lists "
             "memory=pack|gather|selective and copies=runs|blocks");
}

Status check_k(const Algorithm& algorithm, const Params& params) {
  const std::string id(algorithm.id);
  const Algorithm::KRange& k = algorithm.k;
  if (params.k != 0 && k.max == 0) return bad(id + " has no parameter k; leave it out");
  if (algorithm.traits.radix && params.k != 0 && params.k < k.min) {
    return bad(id + ": k=" + std::to_string(params.k) +
               "; a radix is from 2 to the number of ranks");
  }
  if (params.k != 0 && (params.k < k.min || params.k > k.max)) {
    return bad(id + ": k=" + std::to_string(params.k) + " is not in " + std::to_string(k.min) +
               ".." + std::to_string(k.max));
  }
  return {};
}

Status check_transfer(const Algorithm& algorithm, const Params& params) {
  if (!params.two_sided) return {};
  const std::string id(algorithm.id);
  if (sends_by_tables(algorithm.collective)) {
    return bad(id + " sends and receives as it is; leave transfer out");
  }
  if (algorithm.traits.multicast) return bad(id + " is sent to all at once; leave transfer out");
  if (algorithm.traits.in_switch) return bad(id + " goes through switches; leave transfer out");
  return {};
}

Status check_leaders(const Algorithm& algorithm, const Algorithm& chosen, const Params& params) {
  const std::string id(algorithm.id);
  if (!params.leaders.empty() && name_of(chosen) != params.leaders) {
    return bad(id + ": there is no " + std::string(collective_name(chosen.collective)) + "." +
               std::string(params.leaders) + " for the leaders");
  }
  const bool weighted = algorithm.collective == kAllgather || algorithm.collective == kAlltoall;
  if (weighted && !chosen.traits.weights) {
    return bad(id + ": the leaders cannot do " + std::string(chosen.id) +
               ", whose blocks are all of one length");
  }
  return {};
}

// The names must be those of algorithms of the levels, and k must mean something to one of them.
Status check_levels(const Algorithm& algorithm, const Params& params) {
  const std::string id(algorithm.id);
  bool node_found = params.node.empty();
  bool k_found = params.k == 0;
  for (std::size_t level = 0; level < algorithm.levels.size(); ++level) {
    if (algorithm.levels[level].empty()) continue;
    const AlgorithmChoice choice = level_choice(algorithm, level, params);
    if (choice.algorithm->traits.in_switch ||
        (choice.algorithm->traits.multicast &&
         (!algorithm.traits.multicast || level != Algorithm::kAfter))) {
      return bad(id + ": " + std::string(choice.algorithm->id) + " is for whole teams");
    }
    if (Status status = check_k(*choice.algorithm, choice.params); !status.ok()) return status;
    if (Status status = check_transfer(*choice.algorithm, params); !status.ok()) return status;
    k_found = k_found || choice.params.k != 0;
    if (level != Algorithm::kLeaders) {
      node_found = node_found || name_of(*choice.algorithm) == params.node;
    } else if (Status status = check_leaders(algorithm, *choice.algorithm, params); !status.ok()) {
      return status;
    }
  }
  if (!node_found) {
    return bad(id + ": nothing that is done within a node has an algorithm " + quoted(params.node));
  }
  if (!k_found) return bad(id + " has no parameter k with these levels; leave it out");
  return {};
}

Status check_params(const Algorithm& algorithm, const Params& params) {
  const std::string id(algorithm.id);
  if (params.segment_bytes != 0 && !algorithm.has_segment) {
    return bad(id + " has no parameter segment; leave it out");
  }
  if (params.segment_bytes < 0) return bad(id + ": a segment must have at least one byte");
  if (Status status = check_transfer(algorithm, params); !status.ok()) return status;
  if ((!params.memory.empty() || params.copy_blocks) && !algorithm.traits.lists) {
    return bad(id + " has no parameters memory and copies; leave them out");
  }
  if (algorithm.has_levels()) return check_levels(algorithm, params);
  if (!params.node.empty() || !params.leaders.empty()) {
    return bad(id + " has no levels; leave node and leaders out");
  }
  return check_k(algorithm, params);
}

// A team of one does nothing with it.
bool fits_radix(const AlgorithmChoice& choice, Rank ranks) {
  return !choice.algorithm->traits.radix || choice.params.k <= std::max(ranks, 2);
}

bool lacks_multicast(const Algorithm& algorithm, const Limits& limits) {
  return algorithm.traits.multicast && limits.multicast_bytes == 0;
}

bool lacks_switch(const Algorithm& algorithm, const Shared& shared, const Limits& limits) {
  return algorithm.traits.in_switch && !(limits.aggregates && shared.in_switch);
}

// Whether a reduction is in rank order.
bool keeps_order(const AlgorithmChoice& choice, const Limits& limits) {
  const Algorithm& algorithm = *choice.algorithm;
  if (algorithm.needs_commutative) return false;
  if (!algorithm.has_levels()) return true;
  for (std::size_t level = 0; level < algorithm.levels.size(); ++level) {
    if (algorithm.levels[level].empty()) continue;
    if (level_choice(algorithm, level, choice.params).algorithm->needs_commutative) return false;
  }
  return !limits.nodes || limits.nodes->contiguous();
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(std::string_view id) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.id == id) return &algorithm;
  }
  return nullptr;
}

Result<AlgorithmChoice> parse_choice(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::string id(text.substr(0, colon));
  const std::size_t equals = id.find('=');
  if (equals != std::string::npos) id[equals] = '.';
  AlgorithmChoice choice{.algorithm = find_algorithm(id)};
  if (choice.algorithm == nullptr) {
    return bad("there is no algorithm " + quoted(id) + "; there are " + known_ids(id));
  }
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  while (colon != std::string_view::npos) {
    const std::size_t comma = rest.find(',');
    if (Status status = parse_param(rest.substr(0, comma), &choice.params); !status.ok()) {
      return status;
    }
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  if (Status status = check_params(*choice.algorithm, choice.params); !status.ok()) return status;
  return choice;
}

std::string to_text(const AlgorithmChoice& choice) {
  const Params& params = choice.params;
  std::string list;
  const auto add = [&](const std::string& parameter) {
    list += (list.empty() ? ":" : ",") + parameter;
  };
  if (params.k != 0) add("k=" + std::to_string(params.k));
  if (params.segment_bytes != 0) add("segment=" + std::to_string(params.segment_bytes));
  if (!params.node.empty()) add("node=" + std::string(params.node));
  if (!params.leaders.empty()) add("leaders=" + std::string(params.leaders));
  if (!params.memory.empty()) add("memory=" + std::string(params.memory));
  if (params.copy_blocks) add("copies=blocks");
  if (params.two_sided) add("transfer=sendrecv");
  return std::string(choice.algorithm->id) + list;
}

AlgorithmChoice level_choice(const Algorithm& algorithm, std::size_t level, const Params& params) {
  const Algorithm* chosen = find_algorithm(algorithm.levels.at(level));
  const std::string_view name = level == Algorithm::kLeaders ? params.leaders : params.node;
  for (const Algorithm& other : kAlgorithms) {
    if (other.collective == chosen->collective && name_of(other) == name) chosen = &other;
  }
  AlgorithmChoice choice{.algorithm = chosen};
  if (chosen->k.max > 0) choice.params.k = params.k;
  if (chosen->has_segment) choice.params.segment_bytes = params.segment_bytes;
  return choice;
}

bool suits(const AlgorithmChoice& choice, const Shared& shared, const Limits& limits) {
  if (choice.algorithm->collective != shared.collective) return false;
  if (lacks_multicast(*choice.algorithm, limits)) return false;
  if (lacks_switch(*choice.algorithm, shared, limits)) return false;
  if (!fits_radix(choice, shared.ranks)) return false;
  if (!has_reduction(shared.collective)) return true;
  if (limits.reproducible && !choice.algorithm->traits.left_to_right) return false;
  return shared.commutative || keeps_order(choice, limits);
}

Status check(const Algorithm& algorithm, const Shared& shared, const Params& params,
             const Limits& limits) {
  const std::string id(algorithm.id);
  if (shared.collective != algorithm.collective) {
    return bad(id + " cannot do " + std::string(collective_name(shared.collective)));
  }
  if (shared.ranks < 1) return bad(id + ": a team has at least one rank");
  if (has_root(shared.collective) && (shared.root < 0 || shared.root >= shared.ranks)) {
    return bad(id + ": root " + std::to_string(shared.root) + " is not in 0.." +
               std::to_string(shared.ranks - 1));
  }
  if (shared.count < 0 || shared.element_bytes < 1) {
    return bad(id + ": " + std::to_string(shared.count) + " elements of " +
               std::to_string(shared.element_bytes) + " bytes");
  }
  if (limits.nodes && limits.nodes->ranks() != shared.ranks) {
    return bad(id + ": nodes of " + std::to_string(limits.nodes->ranks()) + " ranks, a team of " +
               std::to_string(shared.ranks));
  }
  if (Status status = check_params(algorithm, params); !status.ok()) return status;
  if (!fits_radix({&algorithm, params}, shared.ranks)) {
    return bad(id + ": k=" + std::to_string(params.k) + " in a team of " +
               std::to_string(shared.ranks) + " ranks; a radix is from 2 to the number of ranks");
  }
  if (suits({&algorithm, params}, shared, limits)) return {};
  const bool unlike = limits.reproducible && !algorithm.traits.left_to_right;
  const std::string why =
      lacks_multicast(algorithm, limits) ? " needs multicast, which the team does not have; use "
      : lacks_switch(algorithm, shared, limits)
          ? " needs a switch that computes this operator on this type; use "
      : unlike ? " does not reduce from left to right, as CARILLON_REPRODUCIBLE asks for; use "
               : " reorders operands and this operator does not commute; use ";
  return {Code::kUnsupported, id + why + std::string(collective_name(shared.collective)) + ".flat"};
}

}  // namespace carillon
