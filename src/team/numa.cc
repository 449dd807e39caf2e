// SPDX-License-Identifier: Apache-2.0
#include "team/numa.h"

#include <dlfcn.h>
#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/status.h"

namespace carillon {
namespace {

// Programs on machines of one domain neither need hwloc nor pay for it.
bool may_have_domains() {
  for (const char* const name : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"}) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): start-up
    if (value != nullptr && *value != '\0') return true;
  }
  std::string nodes;  // "0", "0-1", "0,2"
  std::getline(std::ifstream("/sys/devices/system/node/has_cpu"), nodes);
  return nodes.find_first_of(",-") != std::string::npos;
}

// Processes that may all run on the same cores are all in one domain, or nobody knows in which.
bool may_differ(std::span<const Cores> processes) {
  return std::ranges::any_of(processes,
                             [&](const Cores& each) { return each != processes.front(); });
}

// The functions of hwloc that are not inline in its header.
class Library {
 public:
  static Result<Library> open(const char* name) {
    void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      return Status(Code::kUnsupported, std::string("hwloc is not there (") + dlerror() +
                                            "); install it (Debian: libhwloc15)");
    }
    Library library;
    if (!find(handle, "hwloc_topology_init", &library.init_) ||
        !find(handle, "hwloc_topology_set_flags", &library.set_flags_) ||
        !find(handle, "hwloc_topology_load", &library.load_) ||
        !find(handle, "hwloc_topology_destroy", &library.destroy_) ||
        !find(handle, "hwloc_get_obj_by_depth", &library.object_) ||
        !find(handle, "hwloc_bitmap_isset", &library.has_)) {
      return Status(Code::kUnsupported, std::string(name) + " lacks a function: " + dlerror());
    }
    return library;
  }

  // The cores of each NUMA domain, memory without cores left out.
  [[nodiscard]] Result<std::vector<Cores>> domains() const {
    hwloc_topology_t made = nullptr;
    if (init_(&made) != 0) return Status(Code::kSystem, "hwloc: no topology");
    const std::unique_ptr<hwloc_topology, decltype(destroy_)> topology(made, destroy_);
    // Cores that this process may not use are other processes'. And hwloc is not to bind the thread
    // to one core after another to ask each what it is: other ranks run there.
    constexpr unsigned long kDontChangeBinding = 1UL << 6;  // of hwloc 2.5 and later
    if (set_flags_(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | kDontChangeBinding) != 0 &&
        set_flags_(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) {
      return Status(Code::kSystem, "hwloc takes no flags");
    }
    if (load_(made) != 0) return Status(Code::kSystem, "hwloc cannot read the machine's topology");
    std::vector<Cores> all;
    for (unsigned i = 0;; ++i) {
      const hwloc_obj_t object = object_(made, HWLOC_TYPE_DEPTH_NUMANODE, i);
      if (object == nullptr) return all;
      Cores cores;
      for (std::size_t c = 0; c < kMaxCores; ++c) {
        cores.set(c, has_(object->cpuset, static_cast<unsigned>(c)) != 0);
      }
      if (cores.any()) all.push_back(cores);
    }
  }

 private:
  template <typename Function>
  static bool find(void* handle, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
  }

  decltype(&::hwloc_topology_init) init_ = nullptr;
  decltype(&::hwloc_topology_set_flags) set_flags_ = nullptr;
  decltype(&::hwloc_topology_load) load_ = nullptr;
  decltype(&::hwloc_topology_destroy) destroy_ = nullptr;
  decltype(&::hwloc_get_obj_by_depth) object_ = nullptr;
  decltype(&::hwloc_bitmap_isset) has_ = nullptr;
};

bool is_within(const Cores& part, const Cores& whole) { return (part & ~whole).none(); }

// Memory that is as near to the cores of several domains is none of them.
void leave_outer_out(std::vector<Cores>* domains) {
  const std::vector<Cores> all = *domains;
  std::erase_if(*domains, [&](const Cores& domain) {
    return std::ranges::any_of(
        all, [&](const Cores& other) { return other != domain && is_within(other, domain); });
  });
}

}  // namespace

std::vector<int> numa_domains(std::span<const Cores> processes, const char* library_name) {
  std::vector<int> found(processes.size(), -1);
  if (!may_differ(processes) || !may_have_domains()) return found;
  const Result<Library> library = Library::open(library_name);
  Result<std::vector<Cores>> domains =
      library.ok() ? library.value().domains() : Result<std::vector<Cores>>(library.status());
  if (!domains.ok()) {
    log(LogLevel::kInfo, "NUMA domains are not known: " + std::string(domains.status().message()));
    return found;
  }
  leave_outer_out(&domains.value());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const auto its = std::ranges::find_if(domains.value(), [&](const Cores& domain) {
      return processes[i].any() && is_within(processes[i], domain);
    });
    if (its != domains.value().end()) found[i] = static_cast<int>(its - domains.value().begin());
  }
  return found;
}

}  // namespace carillon
