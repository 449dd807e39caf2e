// SPDX-License-Identifier: Apache-2.0
//
// The op aggregate: a leader's operand goes to the team's switch from where it stands, and the
// result comes straight to where it is wanted.
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

bool Run::aggregate(const Instruction& in, Strand& strand) {
  TeamAggregation& group = *team_->aggregation();
  if (strand.stream == 0) {
    const aggregate::Operation operation = {
        .op = binding_.reduction.switch_op,
        .type = binding_.reduction.switch_type,
        .input = in.first_piece != 0 ? at(in.a, strand) : nullptr,
        .output = in.piece_count != 0 ? at(in.dst, strand) : nullptr,
        .count = static_cast<std::uint64_t>(in.count)};
    std::uint64_t ticket = 0;
    if (!group.post(number_of(in, strand), operation, &ticket)) return false;
    strand.stream = static_cast<std::int64_t>(ticket) + 1;
  }
  if (!group.done(static_cast<std::uint64_t>(strand.stream - 1))) return false;
  strand.stream = 0;
  return true;
}

}  // namespace carillon
