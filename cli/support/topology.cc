// SPDX-License-Identifier: Apache-2.0
#include "support/topology.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <array>
#include <memory>

namespace carillon::cli {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

std::unique_ptr<hwloc_topology, Destroy> load() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nullptr;
  std::unique_ptr<hwloc_topology, Destroy> topology(made);
  return hwloc_topology_load(made) == 0 ? std::move(topology) : nullptr;
}

std::string plural(int number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

Topology find_topology() {
  Topology found;
  const auto topology = load();
  if (topology == nullptr) return found;
  const auto count = [&](hwloc_obj_type_t type) {
    return hwloc_get_nbobjs_by_type(topology.get(), type);
  };
  found.packages = count(HWLOC_OBJ_PACKAGE);
  found.numa_nodes = count(HWLOC_OBJ_NUMANODE);
  found.cores = count(HWLOC_OBJ_CORE);
  found.threads = count(HWLOC_OBJ_PU);
  constexpr std::array kCaches = {std::pair{HWLOC_OBJ_L1CACHE, "L1d"},
                                  std::pair{HWLOC_OBJ_L2CACHE, "L2"},
                                  std::pair{HWLOC_OBJ_L3CACHE, "L3"}};
  for (const auto& [type, name] : kCaches) {
    const hwloc_obj_t cache = hwloc_get_obj_by_type(topology.get(), type, 0);
    if (cache == nullptr) continue;
    found.caches.push_back({name, static_cast<long>(cache->attr->cache.size / 1024),
                            hwloc_bitmap_weight(cache->cpuset)});
  }
  return found;
}

Json to_json(const Topology& topology) {
  Json caches = Json::array();
  for (const Cache& cache : topology.caches) {
    caches.push_back({{"name", cache.name}, {"kib", cache.kib}, {"threads", cache.threads}});
  }
  return {{"packages", topology.packages},
          {"numa_nodes", topology.numa_nodes},
          {"cores", topology.cores},
          {"threads", topology.threads},
          {"caches", caches}};
}

std::string to_text(const Topology& topology) {
  if (topology.threads == 0) return "topology unknown";
  std::string text =
      fmt::format("{}, {}, {}, {}", plural(topology.packages, "package"),
                  plural(topology.numa_nodes, "NUMA node"), plural(topology.cores, "core"),
                  plural(topology.threads, "hardware thread"));
  for (const Cache& cache : topology.caches) {
    text += fmt::format("; {} {} KiB", cache.name, cache.kib);
    if (cache.threads > 1) text += fmt::format(" for {} threads", cache.threads);
  }
  return text;
}

}  // namespace carillon::cli
