// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of trees. A subtree of a k-nomial tree is given by its size: that of a child at
// distance d holds d ranks, or what is left of the team. So a tree of P ranks has about log P
// different subtrees, and each is computed once.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "machine/model_way.h"

namespace carillon::machine {
namespace {

// A subtree: its root's children are at distances below `reach`.
struct Subtree {
  std::int64_t reach = 1;
  std::int64_t size = 1;
  bool operator<(const Subtree& other) const {
    return std::pair(reach, size) < std::pair(other.reach, other.size);
  }
};

class Tree {
 public:
  Tree(const Machine& machine, const ModelCall& call, std::int32_t radix)
      : way_(machine, call), bytes_(call.bytes), radix_(radix) {
    whole_.size = call.ranks;
    while (whole_.reach < call.ranks) whole_.reach *= radix;
  }

  // Everything down the tree from a root that is ready: when the last rank has ended.
  std::int64_t bcast(Host root, From from, std::int64_t root_output_bytes) {
    std::int64_t last = 0;
    const std::vector<Subtree> children = children_of(whole_);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      Host host;
      way_.receive(&host, way_.send(&root, bytes_, from), bytes_);
      last = std::max(last, host.cpu_ps + down(*child));
    }
    way_.end(&root, root_output_bytes);
    return std::max(last, root.cpu_ps);
  }

  // The root of an allreduce once it has everybody's contribution.
  Host reduced() { return gathered(whole_); }

 private:
  // From the smallest subtree to the largest.
  [[nodiscard]] std::vector<Subtree> children_of(const Subtree& tree) const {
    std::vector<Subtree> children;
    for (std::int64_t distance = 1; distance < tree.reach; distance *= radix_) {
      for (std::int64_t at = distance; at < distance * radix_ && at < tree.size; at += distance) {
        children.push_back({distance, std::min(distance, tree.size - at)});
      }
    }
    return children;
  }

  // From when the subtree's root has taken the message up to when all of it have ended.
  std::int64_t down(const Subtree& tree) {
    if (const auto known = down_.find(tree); known != down_.end()) return known->second;
    Host host;
    std::int64_t last = 0;
    const std::vector<Subtree> children = children_of(tree);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      Host below;
      const std::int64_t arrival = way_.send(&host, bytes_, From::kSlot);
      const std::int64_t seen = way_.arrive(&below, arrival, bytes_);
      last = std::max(last, seen + way_.taken_ps(bytes_) + down(*child));
    }
    way_.copy(&host, bytes_);
    way_.end(&host, bytes_);
    return down_[tree] = std::max(last, host.cpu_ps);
  }

  // When the subtree's sum can be in the NIC of the rank above it.
  std::int64_t up(const Subtree& tree) {
    if (const auto known = up_.find(tree); known != up_.end()) return known->second;
    Host host = gathered(tree);
    return up_[tree] = way_.send(&host, bytes_, tree.size > 1 ? From::kOutput : From::kInput);
  }

  // The subtree's root when it has reduced all of it. Children come in as they come, and are taken
  // up in the order of ranks.
  Host gathered(const Subtree& tree) {
    Host host;
    way_.begin(&host, bytes_);
    const std::vector<Subtree> children = children_of(tree);
    std::vector<std::pair<std::int64_t, std::size_t>> arrivals;
    for (std::size_t i = 0; i < children.size(); ++i) arrivals.emplace_back(up(children[i]), i);
    std::sort(arrivals.begin(), arrivals.end());
    std::vector<std::int64_t> seen(children.size());
    for (const auto& [arrival, i] : arrivals) seen[i] = way_.arrive(&host, arrival, bytes_);
    for (const std::int64_t each : seen) {
      way_.take(&host, each, bytes_);
      way_.reduce(&host, bytes_);
    }
    return host;
  }

  Way way_;
  std::int64_t bytes_;
  std::int64_t radix_;
  Subtree whole_;
  std::map<Subtree, std::int64_t> down_, up_;
};

std::int64_t bcast_ps(const Machine& machine, const ModelCall& call, std::int32_t radix) {
  Host root;
  Way(machine, call).begin(&root, call.bytes);
  return Tree(machine, call, radix).bcast(root, From::kInput, 0);
}

}  // namespace

std::int64_t bcast_binomial_ps(const Machine& machine, const ModelCall& call) {
  return bcast_ps(machine, call, 2);
}

std::int64_t bcast_knomial_ps(const Machine& machine, const ModelCall& call) {
  return bcast_ps(machine, call, call.k);
}

std::int64_t allreduce_degree_k_ps(const Machine& machine, const ModelCall& call) {
  Tree tree(machine, call, call.k + 1);
  return tree.bcast(tree.reduced(), From::kOutput, call.bytes);
}

}  // namespace carillon::machine
