// SPDX-License-Identifier: Apache-2.0
#include "algorithms/registry.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace carillon {
namespace {

using enum Collective;

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
  for (const Algorithm& algorithm : algorithms()) {
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
  for (const Algorithm& algorithm : algorithms()) {
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
  return !choice.algorithm->traits.radix || ranks == 1 || choice.params.k <= std::max(ranks, 2);
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

const Algorithm* find_algorithm(std::string_view id) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.id == id) return &algorithm;
  }
  return nullptr;
}

Result<AlgorithmChoice> parse_choice(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::string id(text.substr(0, colon));
  const std::size_t equals = id.find('=');
  if (equals != std::string::npos) {
    id[equals] = '.';
    const std::string collective = id.substr(0, equals + 1);  // "bcast=bcast.flat" does, too
    if (id.substr(equals + 1).starts_with(collective)) id.erase(0, equals + 1);
  }
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
  for (const Algorithm& other : algorithms()) {
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
