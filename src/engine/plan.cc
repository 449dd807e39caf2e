// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.h"

#include <algorithm>

namespace carillon {

bool is_brief(const Plan& plan) {
  const bool one_strand = plan.strand_starts.size() == 1 && plan.learned.length == 0;
  if (!one_strand || plan.two_sided || plan.by_tables) return false;
  const bool lines_suffice = std::all_of(plan.uses.begin(), plan.uses.end(), [](const auto& use) {
    return use.table == Table::kNone && use.count <= shm::kWindow && stays_on_node(use.flow);
  });
  const auto fits = [](const Instruction& in) {
    const bool tables = in.dst.table != Table::kNone || in.a.table != Table::kNone;
    switch (in.action) {
      case Action::kPut: return !tables && in.piece_count == 0 && in.gather == 0;
      case Action::kCopy: return !tables;
      case Action::kWait:
      case Action::kReduce:
      case Action::kRelease:
      case Action::kEnd: return true;
      default: return false;
    }
  };
  return lines_suffice && std::all_of(plan.code.begin(), plan.code.end(), fits);
}

}  // namespace carillon
