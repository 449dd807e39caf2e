// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/tree.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "transport/aggregate/text.h"

namespace carillon::aggregate {
namespace {

Status bad_ways(const std::string& what) {
  return {Code::kInvalidArgument,
          "the switches that the nodes name in CARILLON_SWITCH are not one tree: " + what};
}

class Planter {
 public:
  explicit Planter(HostTree& tree) : tree_(tree) {}

  Status add(const Endpoint& host, std::span<const Endpoint> up) {
    std::optional<std::size_t> above;
    for (auto at = up.rbegin(); at != up.rend(); ++at) {
      const auto found = std::ranges::find(tree_.switches, *at, &TreeSwitch::at);
      const auto index = static_cast<std::size_t>(found - tree_.switches.begin());
      if (found == tree_.switches.end()) {
        if (!above && index > 0) {
          return bad_ways("both " + text(tree_.switches[0].at) + " and " + text(*at) +
                          " are their root");
        }
        tree_.switches.push_back({.at = *at, .parent = above, .children = {}});
        if (above) tree_.switches[*above].children.push_back(*at);
      } else if (found->parent != above) {
        return bad_ways(text(*at) + " is at different places of it");
      }
      above = index;
    }
    if (!above) return bad_ways("the host at " + text(host) + " names none");
    auto& ports = tree_.switches[*above].children;
    tree_.ports.push_back(static_cast<std::uint16_t>(ports.size()));
    ports.push_back(host);
    return {};
  }

 private:
  HostTree& tree_;
};

// A switch's ports, filled up to a power of two, as wide as its widest child: then what is combined
// first is what its children combine.
class Places {
 public:
  Places(const HostTree& tree, std::span<const Endpoint> hosts)
      : tree_(tree), hosts_(hosts), places_(hosts.size()) {}

  // Nothing: there are more than may be.
  std::optional<std::vector<std::uint32_t>> all() {
    if (width(0) > kMaxPlaces) return {};
    place(0, 0);
    return places_;
  }

 private:
  [[nodiscard]] std::optional<std::size_t> child_switch(std::size_t parent,
                                                        const Endpoint& at) const {
    const auto found = std::ranges::find(tree_.switches, at, &TreeSwitch::at);
    const auto index = static_cast<std::size_t>(found - tree_.switches.begin());
    if (found == tree_.switches.end() || found->parent != parent) return {};
    return index;
  }
  [[nodiscard]] std::uint32_t child_width(std::size_t index) const {
    std::uint32_t widest = 1;
    for (const Endpoint& at : tree_.switches[index].children) {
      if (const auto below = child_switch(index, at)) widest = std::max(widest, width(*below));
    }
    return widest;
  }
  // At most kMaxChildren of each level's: that fits.
  [[nodiscard]] std::uint32_t width(std::size_t index) const {
    const auto ports = static_cast<std::uint32_t>(tree_.switches[index].children.size());
    return std::bit_ceil(ports) * child_width(index);
  }
  void place(std::size_t index, std::uint32_t first) {
    const std::uint32_t each = child_width(index);
    for (const Endpoint& at : tree_.switches[index].children) {
      if (const auto below = child_switch(index, at)) {
        place(*below, first);
      } else {
        places_[static_cast<std::size_t>(std::ranges::find(hosts_, at) - hosts_.begin())] = first;
      }
      first += each;
    }
  }

  const HostTree& tree_;
  std::span<const Endpoint> hosts_;
  std::vector<std::uint32_t> places_;
};

}  // namespace

Result<HostTree> tree_of(std::span<const Endpoint> hosts, std::span<const WayUp> ways) {
  HostTree tree;
  Planter planter(tree);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (ways[host].levels > kMaxLevels) return bad_ways("one has too many levels");
    if (Status status = planter.add(hosts[host], ways[host].switches()); !status.ok()) {
      return status;
    }
  }
  const TreePlan plan = {.switches = tree.switches, .window = 1, .operand_bytes = 8};
  if (Status status = check_plan(plan); !status.ok()) return status;
  auto places = Places(tree, hosts).all();
  if (!places) return bad_ways("they are too uneven");
  tree.places = std::move(*places);
  return tree;
}

}  // namespace carillon::aggregate
