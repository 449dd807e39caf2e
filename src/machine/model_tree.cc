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

// What a rank passes on of its subtree: one vector, or a block of each rank.
enum class Carries : std::uint8_t { kVector, kBlocks };

class Tree {
 public:
  Tree(const Machine& machine, const ModelCall& call, std::int32_t radix, std::int64_t bytes,
       Carries carries = Carries::kVector)
      : way_(machine, call), bytes_(bytes), carries_(carries), radix_(radix) {
    whole_.size = call.ranks;
    while (whole_.reach < call.ranks) whole_.reach *= radix;
  }

  // Everything down the tree from a root that is ready: when the last of the others has ended.
  std::int64_t spread(Host* root, From from) {
    std::int64_t last = 0;
    const std::vector<Subtree> children = children_of(whole_);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      const std::int64_t bytes = message_bytes(*child);
      Host host;
      way_.receive(&host, way_.send(root, bytes, from), bytes);
      last = std::max(last, host.cpu_ps + down(*child));
    }
    return last;
  }

  // From where the sum of a rank and those below it goes up.
  void sum_in(From from) { sum_ = from; }

  // The root of a reduction once it has everybody's contribution.
  Host reduced() { return gathered(whole_); }
  // The root of a gather once it has everybody's block, but for its output's staging.
  Host collected() {
    Host root;
    way_.begin(&root, bytes_);
    way_.copy(&root, bytes_);
    for (const auto& [seen, bytes] : arrive(&root, whole_)) {
      way_.take(&root, seen, bytes);
      way_.copy(&root, bytes);
    }
    return root;
  }
  [[nodiscard]] bool overtaken() const { return way_.overtaken(); }

 private:
  [[nodiscard]] std::int64_t message_bytes(const Subtree& tree) const {
    return carries_ == Carries::kVector ? bytes_ : bytes_ * tree.size;
  }

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
      const std::int64_t bytes = message_bytes(*child);
      const std::int64_t arrival = way_.send(&host, bytes, From::kSlot);
      const std::int64_t seen = way_.arrive(&below, arrival, bytes);
      last = std::max(last, seen + way_.taken_ps(bytes) + down(*child));
    }
    way_.copy(&host, bytes_);
    way_.end(&host, bytes_);
    return down_[tree] = std::max(last, host.cpu_ps);
  }

  // When the subtree's sum can be in the NIC of the rank above it.
  std::int64_t up(const Subtree& tree) {
    if (const auto known = up_.find(tree); known != up_.end()) return known->second;
    if (carries_ == Carries::kBlocks) return up_[tree] = up_blocks(tree);
    Host host = gathered(tree);
    return up_[tree] = way_.send(&host, bytes_, tree.size > 1 ? sum_ : From::kInput);
  }

  // The rank's own block and what has come go on as one list. It can be read where it is only if
  // all of it can: slots always are, so the input decides.
  std::int64_t up_blocks(const Subtree& tree) {
    Host host;
    way_.begin(&host, bytes_);
    const auto messages = arrive(&host, tree);
    for (const auto& [seen, bytes] : messages) way_.take(&host, seen, bytes);
    return way_.send(&host, message_bytes(tree), From::kInput,
                     1 + static_cast<std::int32_t>(messages.size()));
  }

  // The subtree's root when it has reduced all of it. Children come in as they come, and are taken
  // up in the order of ranks.
  Host gathered(const Subtree& tree) {
    Host host;
    way_.begin(&host, bytes_);
    for (const auto& [seen, bytes] : arrive(&host, tree)) {
      way_.take(&host, seen, bytes);
      way_.reduce(&host, bytes);
    }
    return host;
  }

  // The messages of the subtree root's children: when each can be seen, and its length. They come
  // in as they come.
  std::vector<std::pair<std::int64_t, std::int64_t>> arrive(Host* host, const Subtree& tree) {
    const std::vector<Subtree> children = children_of(tree);
    std::vector<std::pair<std::int64_t, std::size_t>> arrivals;
    arrivals.reserve(children.size());
    for (std::size_t i = 0; i < children.size(); ++i) arrivals.emplace_back(up(children[i]), i);
    std::sort(arrivals.begin(), arrivals.end());
    std::vector<std::pair<std::int64_t, std::int64_t>> seen(children.size());
    for (const auto& [arrival, i] : arrivals) {
      const std::int64_t bytes = message_bytes(children[i]);
      seen[i] = {way_.arrive(host, arrival, bytes), bytes};
    }
    return seen;
  }

  Way way_;
  std::int64_t bytes_;
  Carries carries_;
  From sum_ = From::kOutput;
  std::int64_t radix_;
  Subtree whole_;
  std::map<Subtree, std::int64_t> down_, up_;
};

std::int64_t bcast_ps(const Machine& machine, const ModelCall& call, std::int32_t radix) {
  Host root;
  Way(machine, call).begin(&root, call.bytes);
  const std::int64_t last = Tree(machine, call, radix, call.bytes).spread(&root, From::kInput);
  return std::max(last, root.cpu_ps);
}

// Up a tree, and down again.
std::int64_t up_and_down_ps(const Machine& machine, const ModelCall& call, std::int64_t bytes) {
  Tree tree(machine, call, call.k + 1, bytes);
  Host root = tree.reduced();
  const std::int64_t last = tree.spread(&root, From::kOutput);
  Way(machine, call).end(&root, bytes);
  return std::max(last, root.cpu_ps);
}

// Blocks of all ranks, up a tree and down one.
std::int64_t gather_ps(const Machine& machine, const ModelCall& call, std::int32_t radix) {
  Tree tree(machine, call, radix, call.bytes, Carries::kBlocks);
  Host root = tree.collected();
  Way(machine, call).end(&root, call.bytes * call.ranks);
  return tree.overtaken() ? -1 : root.cpu_ps;
}

std::int64_t scatter_ps(const Machine& machine, const ModelCall& call, std::int32_t radix) {
  const Way way(machine, call);
  Host root;
  way.begin(&root, call.bytes * call.ranks);
  Tree tree(machine, call, radix, call.bytes, Carries::kBlocks);
  const std::int64_t last = tree.spread(&root, From::kInput);
  way.copy(&root, call.bytes);
  way.end(&root, call.bytes);
  return std::max(last, root.cpu_ps);
}

}  // namespace

std::int64_t barrier_degree_k_ps(const Machine& machine, const ModelCall& call) {
  return up_and_down_ps(machine, call, 0);
}

std::int64_t bcast_binomial_ps(const Machine& machine, const ModelCall& call) {
  return bcast_ps(machine, call, 2);
}

std::int64_t bcast_knomial_ps(const Machine& machine, const ModelCall& call) {
  return bcast_ps(machine, call, call.k);
}

std::int64_t reduce_degree_k_ps(const Machine& machine, const ModelCall& call) {
  Tree tree(machine, call, call.k + 1, call.bytes);
  tree.sum_in(From::kScratch);
  Host root = tree.reduced();
  Way(machine, call).end(&root, call.bytes);
  return root.cpu_ps;
}

std::int64_t allreduce_degree_k_ps(const Machine& machine, const ModelCall& call) {
  return up_and_down_ps(machine, call, call.bytes);
}

std::int64_t gather_binomial_ps(const Machine& machine, const ModelCall& call) {
  return gather_ps(machine, call, 2);
}

std::int64_t gather_knomial_ps(const Machine& machine, const ModelCall& call) {
  return gather_ps(machine, call, call.k);
}

std::int64_t scatter_binomial_ps(const Machine& machine, const ModelCall& call) {
  return scatter_ps(machine, call, 2);
}

std::int64_t scatter_knomial_ps(const Machine& machine, const ModelCall& call) {
  return scatter_ps(machine, call, call.k);
}

}  // namespace carillon::machine
