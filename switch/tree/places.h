// SPDX-License-Identifier: Apache-2.0
//
// Which switches a tree has, and what is below each: hosts that follow one another are at one
// switch, and so are such switches, up to the root.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace carillon::tree {

/// Of a switch: its parent, and its number there; its children, hosts or switches.
struct Place {
  std::size_t parent = 0, child = 0;
  std::size_t first_child = 0, children = 0;
  std::size_t first_host = 0, hosts_of_child = 1;  ///< below it; below each child
  bool of_hosts = false, is_root = false;
};

class Places {
 public:
  struct Level {
    std::size_t first = 0, switches = 0;
  };

  Places(std::size_t hosts, std::size_t radix) {
    std::size_t children = hosts, first_child = 0, hosts_of_child = 1;
    do {
      const Level level = {all_.size(), (children + radix - 1) / radix};
      for (std::size_t child = 0; child < children; child += radix) {
        all_.push_back({.first_child = first_child + child,
                        .children = std::min(radix, children - child),
                        .first_host = child * hosts_of_child,
                        .hosts_of_child = hosts_of_child,
                        .of_hosts = levels_.empty()});
        add_to_children(all_.size() - 1);
      }
      levels_.push_back(level);
      children = level.switches;
      first_child = level.first;
      hosts_of_child *= radix;
    } while (children > 1);
    all_.back().is_root = true;
  }

  /// The lowest level first; the root is the last.
  [[nodiscard]] const std::vector<Place>& all() const { return all_; }
  [[nodiscard]] const std::vector<Level>& levels() const { return levels_; }

  /// The child of a switch that leads to the host; none: it is not below.
  [[nodiscard]] std::optional<std::size_t> child_towards(std::size_t at, std::size_t host) const {
    const Place& place = all_[at];
    if (host < place.first_host) return std::nullopt;
    const std::size_t child = (host - place.first_host) / place.hosts_of_child;
    return child < place.children ? std::optional(child) : std::nullopt;
  }

 private:
  void add_to_children(std::size_t at) {
    const Place& place = all_[at];
    for (std::size_t child = 0; child < place.children && !place.of_hosts; ++child) {
      all_[place.first_child + child].parent = at;
      all_[place.first_child + child].child = child;
    }
  }

  std::vector<Place> all_;
  std::vector<Level> levels_;
};

}  // namespace carillon::tree
