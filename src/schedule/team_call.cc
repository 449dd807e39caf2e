// SPDX-License-Identifier: Apache-2.0
//
// TeamCall: whether the parts of a call fit together.
#include <algorithm>
#include <string>

#include "schedule/machine.h"

namespace carillon {
namespace {

Status bad(const std::string& reason) { return {Code::kInvalidArgument, reason}; }

Status check_tables(const TeamCall& call, Rank rank) {
  const Tables tables = call.local(rank).tables;
  const auto ranks = static_cast<std::size_t>(call.shared.ranks);
  for (const auto table :
       {tables.send_bytes, tables.send_offsets, tables.recv_bytes, tables.recv_offsets}) {
    if (table.size() != ranks) {
      return bad("rank " + std::to_string(rank) + ": a table without one entry per rank");
    }
    if (std::any_of(table.begin(), table.end(), [](std::int64_t value) { return value < 0; })) {
      return bad("rank " + std::to_string(rank) + ": a negative table entry");
    }
  }
  return {};
}

Status check_agreement(const TeamCall& call) {
  for (Rank sender = 0; sender < call.shared.ranks; ++sender) {
    for (Rank reader = 0; reader < call.shared.ranks; ++reader) {
      const auto s = static_cast<std::size_t>(sender);
      const auto r = static_cast<std::size_t>(reader);
      const std::int64_t sent = call.locals[s].tables.send_bytes[r];
      const std::int64_t expected = call.locals[r].tables.recv_bytes[s];
      if (sent == expected) continue;
      return bad("rank " + std::to_string(sender) + " sends " + std::to_string(sent) +
                 " bytes to rank " + std::to_string(reader) + ", which expects " +
                 std::to_string(expected));
    }
  }
  return {};
}

}  // namespace

Local TeamCall::local(Rank rank) const {
  return locals.empty() ? Local{} : locals[static_cast<std::size_t>(rank)];
}

Status check_team_call(const TeamCall& call) {
  const Shared& shared = call.shared;
  if (shared.ranks < 1) return bad("a team of no ranks");
  if (shared.count < 0 || shared.element_bytes < 1) return bad("a negative or empty element");
  if (has_root(shared.collective) && (shared.root < 0 || shared.root >= shared.ranks)) {
    return bad("the root is not in the team");
  }
  const Limits& limits = call.limits;
  if (limits.slot_bytes < 1 || limits.window < 1 || limits.large_slots < 1) {
    return bad("limits under which no message can be sent");
  }
  if (limits.nodes && limits.nodes->ranks() != shared.ranks) {
    return bad("nodes of another number of ranks");
  }
  if (limits.domains) {
    if (limits.domains->ranks() != shared.ranks) return bad("domains of another number of ranks");
    for (Rank rank = 0; rank < shared.ranks; ++rank) {
      const Rank first = limits.domains->members(limits.domains->node_of(rank)).front();
      if (!limits.share_node(first, rank)) return bad("a domain that is not of one node");
    }
  }
  if (!call.locals.empty() && call.locals.size() != static_cast<std::size_t>(shared.ranks)) {
    return bad("locals for another number of ranks");
  }
  const bool tables = has_tables(shared.collective);
  if (tables && call.locals.empty())
    return bad(std::string(collective_name(shared.collective)) + " without tables");
  for (Rank rank = 0; rank < shared.ranks; ++rank) {
    if (call.local(rank).in_place && !in_place_allowed(shared, rank)) {
      return bad("rank " + std::to_string(rank) + " may not ask for in place here");
    }
    if (!tables) continue;
    Status status = check_tables(call, rank);
    if (!status.ok()) return status;
  }
  return tables ? check_agreement(call) : Status();
}

}  // namespace carillon
