// SPDX-License-Identifier: Apache-2.0
#include "engine/sparse_plan.h"

#include <algorithm>
#include <cstddef>

namespace carillon {
namespace {

constexpr std::ptrdiff_t kFewest = 8;  // channels to be left out
// Making the part takes about as long as it saves in so many calls.
constexpr int kCalls = 8;

bool is_empty(Table table, std::int32_t entry, const Tables& tables) {
  const auto& bytes = table == Table::kSend ? tables.send_bytes : tables.recv_bytes;
  return bytes[static_cast<std::size_t>(entry)] == 0;
}

bool does_nothing(const Instruction& in, const Tables& tables) {
  if (in.action != Action::kSend && in.action != Action::kRecv) return false;
  const Operand& end = in.action == Action::kSend ? in.a : in.dst;
  return is_empty(end.table, end.entry, tables);
}

// All its uses are sends or recvs by tables, so that it has no other messages.
Plan part_of(const Plan& whole, const Tables& tables) {
  Plan part = whole;
  part.code.clear();
  part.strand_starts.clear();
  part.uses.clear();
  std::vector<std::uint16_t> moved(whole.uses.size());
  for (std::size_t i = 0; i < whole.uses.size(); ++i) {
    moved[i] = static_cast<std::uint16_t>(part.uses.size());
    const ChannelUse& use = whole.uses[i];
    if (!is_empty(use.table, use.entry, tables)) part.uses.push_back(use);
  }
  auto start = whole.strand_starts.begin();
  for (std::size_t i = 0; i < whole.code.size(); ++i) {
    if (start != whole.strand_starts.end() && *start == i) {
      part.strand_starts.push_back(static_cast<std::uint32_t>(part.code.size()));
      ++start;
    }
    if (does_nothing(whole.code[i], tables)) continue;
    part.code.push_back(whole.code[i]);
    part.code.back().use = moved[whole.code[i].use];
  }
  part.code.shrink_to_fit();
  part.uses.shrink_to_fit();
  return part;
}

}  // namespace

// Whether the same entries are empty as in the call before.
bool SparsePlan::note(const Tables& tables) {
  const std::size_t ranks = tables.send_bytes.size();
  bool same = filled_.size() == ranks;
  filled_.resize(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto filled = static_cast<std::uint8_t>((tables.send_bytes[i] != 0 ? 1 : 0) |
                                                  (tables.recv_bytes[i] != 0 ? 2 : 0));
    same = same && filled == filled_[i];
    filled_[i] = filled;
  }
  return same;
}

const std::shared_ptr<const Plan>& SparsePlan::of(const std::shared_ptr<const Plan>& whole,
                                                  const Tables& tables) {
  const bool same_tables = note(tables);
  if (!same_tables || whole != whole_) {
    whole_ = whole;
    part_ = nullptr;
    calls_ = 0;
  }
  if (part_ == nullptr) {
    if (++calls_ <= kCalls) return whole_;
    const auto left_out = std::count_if(
        whole->uses.begin(), whole->uses.end(),
        [&](const ChannelUse& use) { return is_empty(use.table, use.entry, tables); });
    part_ = left_out < kFewest ? whole : std::make_shared<const Plan>(part_of(*whole, tables));
  }
  return part_;
}

}  // namespace carillon
