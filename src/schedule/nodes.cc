// SPDX-License-Identifier: Apache-2.0
#include "schedule/nodes.h"

#include <algorithm>
#include <unordered_map>

namespace carillon {

Nodes::Nodes(std::span<const std::int32_t> node_of) {
  std::unordered_map<std::int32_t, std::int32_t> numbers;
  for (const std::int32_t name : node_of) {
    const auto next = static_cast<std::int32_t>(numbers.size());
    node_of_.push_back(numbers.try_emplace(name, next).first->second);
  }
  first_.assign(numbers.size() + 1, 0);
  for (const std::int32_t node : node_of_) ++first_[static_cast<std::size_t>(node) + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  std::vector<std::size_t> next = first_;
  members_.resize(node_of_.size());
  for (Rank rank = 0; rank < ranks(); ++rank) {
    members_[next[static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank)])]++] = rank;
  }
}

bool Nodes::contiguous() const { return std::is_sorted(members_.begin(), members_.end()); }

}  // namespace carillon
