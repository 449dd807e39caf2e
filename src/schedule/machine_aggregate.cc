// SPDX-License-Identifier: Apache-2.0
//
// The op aggregate on the abstract machine: leaders come with operands, the last one to come
// combines them as switches do, and each leaves with the result.
#include "schedule/machine_impl.h"

namespace carillon {

Status Machine::aggregate(std::size_t id, const Op& op, Block* block) {
  StrandState& strand = strands_[id];
  std::int64_t& turn = rank_of(strand).aggregates;
  const std::int64_t number = op.message.index;
  if (number < turn) return error(strand, "the aggregate is done a second time");
  const Nodes& nodes = *call_.limits.nodes;
  Aggregation& all = aggregations_[number];
  if (all.operands.empty()) {
    all.operands.resize(static_cast<std::size_t>(nodes.count()));
    all.missing = all.inside = nodes.count();
  }
  const auto node = static_cast<std::size_t>(nodes.node_of(strand.rank));
  if (number == turn && !all.operands[node].arrived) {
    if (Status status = enter(strand, all); !status.ok()) return status;
    if (all.missing == 0) {
      if (Status status = combine(all); !status.ok()) return at(strand, status);
      wake(all.blocked);
    }
  }
  if (number > turn || all.missing > 0) {
    all.blocked.push_back(id);
    *block = number > turn ? Block::kTurn : Block::kLeaders;
    return {};
  }
  if (Status status = leave(strand, all); !status.ok()) return status;
  ++turn;
  const auto next = aggregations_.find(turn);
  if (next != aggregations_.end()) wake(next->second.blocked);
  if (--all.inside > 0) return {};
  memory_.discard(all.operands.front().payload);
  aggregations_.erase(number);
  return {};
}

// Who has no operand gives a message, too: who leaves has heard of all.
Status Machine::enter(StrandState& strand, Aggregation& all) {
  for (const std::vector<Piece>* list : {&src_, &dst_}) {
    if (list->empty()) continue;
    const std::int64_t length = list->front().length;
    if (all.length < 0) all.length = length;
    if (all.length == length) continue;
    return error(strand, "an aggregate of " + std::to_string(length) +
                             " bytes; another leader has one of " + std::to_string(all.length));
  }
  const auto node = static_cast<std::size_t>(call_.limits.nodes->node_of(strand.rank));
  Aggregation::Operand& operand = all.operands[node];
  operand = {.arrived = true, .present = !src_.empty()};
  Status status = memory_.capture({strand.rank, strand.index}, src_, &operand.payload);
  if (!status.ok()) return at(strand, status);
  --all.missing;
  ++stats_.messages;
  if (operand.present) stats_.message_bytes += all.length;
  return {};
}

// As switches do: nodes 0 with 1, 2 with 3, ...; then those; what is not there is passed over.
Status Machine::combine(Aggregation& all) {
  std::vector<Aggregation::Operand>& operands = all.operands;
  for (std::size_t apart = 1; apart < operands.size(); apart *= 2) {
    for (std::size_t i = 0; i + apart < operands.size(); i += 2 * apart) {
      Aggregation::Operand& left = operands[i];
      const Aggregation::Operand right = operands[i + apart];
      if (left.present && right.present) {
        Status status = memory_.combine(left.payload, right.payload);
        if (!status.ok()) return status;
        memory_.discard(right.payload);
        continue;
      }
      const bool swaps = right.present;
      const Payload kept = swaps ? right.payload : left.payload;
      const Payload gone = swaps ? left.payload : right.payload;
      memory_.follow(kept, gone);
      memory_.discard(gone);
      left = {.arrived = true, .present = left.present || right.present, .payload = kept};
    }
  }
  return {};
}

Status Machine::leave(StrandState& strand, Aggregation& all) {
  const Aggregation::Operand& result = all.operands.front();
  const Site site{strand.rank, strand.index};
  if (dst_.empty()) return at(strand, memory_.arrive(site, result.payload));
  if (!result.present) return error(strand, "an aggregate that no leader gives anything to");
  return at(strand, memory_.deliver(site, dst_, result.payload));
}

}  // namespace carillon
