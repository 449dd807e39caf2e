// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace carillon::shim {

Host g_host;

namespace {

void* g_library = nullptr;  // what the host's symbols are looked up in

int collect_name(dl_phdr_info* info, std::size_t /*size*/, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  return 0;
}

// The library that provides PMPI_Finalize: in the global scope, or in one loaded privately, as
// Python loads its extension modules.
void* find_library() {
  void* const program = dlopen(nullptr, RTLD_LAZY);
  if (dlsym(program, "PMPI_Finalize") != nullptr) return program;
  std::vector<std::string> names;
  dl_iterate_phdr(collect_name, &names);
  for (const std::string& name : names) {
    if (name.empty()) continue;
    void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (dlsym(library, "PMPI_Finalize") != nullptr) return library;
    dlclose(library);
  }
  return nullptr;
}

// An object that is loaded, from its first byte to the one behind its last.
struct Extent {
  std::uintptr_t begin = 0, end = 0;
  [[nodiscard]] bool has(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return begin <= at && at < end;
  }
};

int find_own_extent(dl_phdr_info* info, std::size_t /*size*/, void* found) {
  Extent extent{.begin = UINTPTR_MAX};
  for (const ElfW(Phdr)* part = info->dlpi_phdr; part != info->dlpi_phdr + info->dlpi_phnum;
       ++part) {
    if (part->p_type != PT_LOAD) continue;
    const std::uintptr_t at = info->dlpi_addr + part->p_vaddr;
    extent = {.begin = std::min(extent.begin, at), .end = std::max(extent.end, at + part->p_memsz)};
  }
  if (!extent.has(&g_library)) return 0;
  *static_cast<Extent*>(found) = extent;
  return 1;
}

// To ask dladdr for each symbol would take it through all symbols of the MPI each time: 2 ms.
bool is_own(const void* address) {
  static const Extent own = [] {
    Extent extent;
    dl_iterate_phdr(find_own_extent, &extent);
    return extent;
  }();
  return own.has(address);
}

template <typename Function>
void look_up(Function& function, const char* symbol) {
  void* found = dlsym(g_library, symbol);
  // In the global scope this library, which has some of these, too, comes before the host.
  if (found != nullptr && is_own(found)) found = dlsym(RTLD_NEXT, symbol);
  function = reinterpret_cast<Function>(found);
}

// The file the host's functions come from, e.g. /usr/lib/libmpi.so.40.
std::string library_path() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<void*>(g_host.Get_library_version), &info) != 0;
  return found && info.dli_fname != nullptr ? info.dli_fname : "";
}

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "carillon: %s\n", why);
  _exit(1);
}

// Whether the host has the ABI this file was compiled for: its handles would crash another's. Null,
// or what to say.
#define kRemedy "carillon run and carillon exec choose the right one, without --mpi"
const char* find_misfit() {
  char version[1 << 14] = "";  // the other ABI's text may be longer than this one allows
  int length = 0;
  if (g_host.Get_library_version != nullptr) g_host.Get_library_version(version, &length);
  [[maybe_unused]] const bool open_mpi = std::strstr(version, "Open MPI") != nullptr;
  const bool standard_abi = library_path().find("libmpi_abi") != std::string::npos;
#if defined(OPEN_MPI)
  if (!open_mpi || standard_abi)
    return "LD_PRELOAD has the interposer for Open MPI, but the program's MPI is another; " kRemedy;
#elif defined(MPI_ABI_VERSION) || defined(MPI_ABI)
  if (!standard_abi)
    return "LD_PRELOAD has the interposer for the MPI 5 ABI, but the program's MPI is "
           "another; " kRemedy;
#else
  if (open_mpi || standard_abi)
    return "LD_PRELOAD has the interposer for MPICH, but the program's MPI is another; " kRemedy;
#endif
  return nullptr;
}

}  // namespace

void* host_data(const char* symbol) {
  if (g_library == nullptr) find_host();
  return dlsym(g_library, symbol);
}

bool host_has_begun() {
  void* const library = find_library();
  if (library == nullptr) return false;
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(library, "PMPI_Initialized"));
  int begun = 0;
  return ask != nullptr && ask(&begun) == MPI_SUCCESS && begun != 0;
}

void find_host() {
  static std::mutex mutex;  // a program's first calls of MPI may be sessions of several threads
  const std::lock_guard lock(mutex);
  if (g_host.ready.load(std::memory_order_relaxed)) return;
  g_library = find_library();
  if (g_library == nullptr) {
    give_up(
        "an MPI function was called, but no MPI library is loaded; is the program linked with "
        "one?");
  }
#define CARILLON_LOOK_UP(name) look_up(g_host.name, "PMPI_" #name);
#define CARILLON_COLLECTIVE(name, started, ...) CARILLON_LOOK_UP_BOTH(name, started)
#define CARILLON_LOOK_UP_BOTH(name, started) \
  CARILLON_LOOK_UP(name)                     \
  CARILLON_LOOK_UP(started)
  CARILLON_HOST_FUNCTIONS(CARILLON_LOOK_UP)
  CARILLON_HOST_OWN_FUNCTIONS(CARILLON_LOOK_UP)
  CARILLON_HOST_LARGE_FUNCTIONS(CARILLON_LOOK_UP)
#define CARILLON_LOOK_UP_NEWER(name, parameters) CARILLON_LOOK_UP(name)
  CARILLON_HOST_NEWER_FUNCTIONS(CARILLON_LOOK_UP_NEWER)
#undef CARILLON_LOOK_UP_NEWER
#include "collectives.def"
#undef CARILLON_COLLECTIVE
#undef CARILLON_LOOK_UP_BOTH
#define CARILLON_MAKER(name, ...) CARILLON_LOOK_UP(name)
#include "makers.def"
#undef CARILLON_MAKER
#undef CARILLON_LOOK_UP
#define CARILLON_PERSISTENT(...) CARILLON_LOOK_UP_PERSISTENT(__VA_ARGS__)
#define CARILLON_LOOK_UP_PERSISTENT(name, ...) \
  look_up(g_host.name, "PMPI_" #name);         \
  if (g_host.name == nullptr) look_up(g_host.name, "PMPIX_" #name); /* Open MPI 4 */
#include "persistent.def"
#undef CARILLON_LOOK_UP_PERSISTENT
#undef CARILLON_PERSISTENT
  if (const char* const misfit = find_misfit()) give_up(misfit);
  g_host.comm_world = MPI_COMM_WORLD;
  g_host.comm_self = MPI_COMM_SELF;
  g_host.comm_null = MPI_COMM_NULL;
  g_host.type_null = MPI_DATATYPE_NULL;
  g_host.byte = MPI_BYTE;
  g_host.packed = MPI_PACKED;
  g_host.op_null = MPI_OP_NULL;
  g_host.request_null = MPI_REQUEST_NULL;
  g_host.ready.store(true, std::memory_order_release);  // partner: host
}

}  // namespace carillon::shim
