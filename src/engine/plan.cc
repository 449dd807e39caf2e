// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.h"

#include <algorithm>

namespace carillon {
namespace {

bool is_brief(const Plan& plan) {
  const bool one_strand = plan.strand_starts.size() == 1 && plan.learned.length == 0;
  if (!one_strand || plan.two_sided || plan.by_tables) return false;
  const bool lines_suffice = std::all_of(plan.uses.begin(), plan.uses.end(), [](const auto& use) {
    return use.table == Table::kNone && use.count <= shm::kWindow && stays_on_node(use.flow);
  });
  const auto fits = [](const Instruction& in) {
    const bool tables = in.dst.table != Table::kNone || in.a.table != Table::kNone;
    switch (in.action) {
      case Action::kPut: return !tables && in.gather == 0;
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

void find_pairs(Plan& plan) {
  const auto same = [](const Operand& one, const Operand& other) {
    return one.base == other.base && one.table == Table::kNone && other.table == Table::kNone &&
           one.offset == other.offset && one.stride == other.stride;
  };
  // Another strand's instructions stand behind a kEnd.
  for (std::size_t i = 1; i < plan.code.size(); ++i) {
    Instruction& put = plan.code[i - 1];
    Instruction& copy = plan.code[i];
    const bool posts = put.action == Action::kPut || put.action == Action::kSend;
    if (!posts || copy.action != Action::kCopy || put.piece_count != 0) continue;
    const bool is_own = put.a.base < kBaseSlots && copy.dst.table == Table::kNone;
    put.paired = copy.paired = is_own && same(put.a, copy.a) && put.length == copy.length;
  }
}

}  // namespace

void complete(Plan& plan) {
  plan.brief = is_brief(plan);
  find_pairs(plan);
}

}  // namespace carillon
