// SPDX-License-Identifier: Apache-2.0
#include "schedule/nodes.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace carillon {

namespace {

// Numbers from 0 in the order of their first ranks; returns how many there are. Names are usually
// such numbers already.
std::size_t number(std::span<const std::int32_t> names, std::vector<std::int32_t>* numbers) {
  std::int32_t next = 0;
  const auto is_number = [&](std::int32_t name) {
    if (name == next) ++next;
    return name >= 0 && name < next;
  };
  if (std::all_of(names.begin(), names.end(), is_number)) {
    numbers->assign(names.begin(), names.end());
    return static_cast<std::size_t>(next);
  }
  std::unordered_map<std::int32_t, std::int32_t> known;
  numbers->reserve(names.size());
  for (const std::int32_t name : names) {
    const auto unused = static_cast<std::int32_t>(known.size());
    numbers->push_back(known.try_emplace(name, unused).first->second);
  }
  return known.size();
}

}  // namespace

Nodes::Nodes(std::span<const std::int32_t> node_of) {
  const std::size_t nodes = number(node_of, &node_of_);
  if (nodes == node_of.size()) {  // one each, which are numbered as the ranks are
    members_ = leaders_ = node_of_;
    first_.resize(nodes + 1);
    std::iota(first_.begin(), first_.end(), 0U);
    largest_ = smallest_ = std::min(ranks(), 1);
    return;
  }
  first_.assign(nodes + 1, 0);
  for (const std::int32_t node : node_of_) ++first_[static_cast<std::size_t>(node)];
  // Where each node ends, and, when its ranks have taken their places from the last on, begins.
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  members_.resize(node_of_.size());
  for (Rank rank = ranks(); rank-- > 0;) {
    members_[--first_[static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank)])]] = rank;
  }
  smallest_ = ranks();
  leaders_.reserve(static_cast<std::size_t>(count()));
  for (std::int32_t node = 0; node < count(); ++node) {
    const std::span<const Rank> on_it = members(node);
    leaders_.push_back(on_it.front());
    largest_ = std::max(largest_, static_cast<Rank>(on_it.size()));
    smallest_ = std::min(smallest_, static_cast<Rank>(on_it.size()));
  }
  contiguous_ = std::is_sorted(members_.begin(), members_.end());
}

}  // namespace carillon
