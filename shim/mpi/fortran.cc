// SPDX-License-Identifier: Apache-2.0
//
// The host's Fortran functions are a library of their own. Each turns its arguments into C's
// (handles, MPI_IN_PLACE and MPI_BOTTOM, LOGICAL, statuses, descriptors of arrays) and calls a C
// function. MPICH's mostly call MPI_Allreduce, which is carillon's. Open MPI's all, and MPICH's for
// mpi_f08 that have no buffer, call PMPI_Allreduce, and carillon would not hear of it.
//
//    mpi_allreduce_         \                       MPI_Allreduce   of carillon
//    mpi_allreduce_f08_      >  arguments of C  -->      |
//    mpi_allreduce_f08ts_   /                       PMPI_Allreduce  of the host
//
// So in the table by which that library finds the functions of others, every PMPI_X becomes
// carillon's MPI_X, if carillon has one. What an argument is in Fortran, under which names the
// compiler looks for a function, and how a descriptor is laid out remains the host's affair.
//
// When? In MPI_Init: carillon's is called then, because its PMPI_Init comes before the host's. A
// library that comes later, with a module of Python, say, is seen by its first call: Open MPI's
// functions get communicators, requests, types, operators, windows and infos of PMPI_X_f2c, which
// are carillon's until then; for MPICH's see fortran_late.cc.
#include "fortran.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "host.h"
#include "process.h"

namespace carillon::shim {
namespace {

constexpr char kPrefix[] = "PMPI";  // or PMPIX_

// What only an MPI's own Fortran functions are called: tools have the names without the p.
constexpr const char* kOwnNames[] = {"pmpi_init_", "pmpi_init_f08_", "pmpi_init", "pmpi_init__",
                                     "PMPI_INIT"};

// A loaded file.
struct Object {
  std::string name;
  ElfW(Addr) base = 0, end = 0;
  const ElfW(Dyn) * dynamic = nullptr;
  // What is made unwritable once it is relocated.
  ElfW(Addr) relro = 0;
  std::size_t relro_bytes = 0;
};

struct Objects {
  unsigned long long loads = 0;  // so far; a number of the loader's
  bool changed = true;
  std::vector<Object> all;
};

int collect_object(dl_phdr_info* info, std::size_t /*size*/, void* arg) {
  Objects& objects = *static_cast<Objects*>(arg);
  if (objects.all.empty() && info->dlpi_adds == objects.loads) {
    objects.changed = false;
    return 1;
  }
  objects.loads = info->dlpi_adds;
  Object object{.name = info->dlpi_name, .base = info->dlpi_addr};
  for (const auto* part = info->dlpi_phdr; part < info->dlpi_phdr + info->dlpi_phnum; ++part) {
    const ElfW(Addr) address = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_DYNAMIC) {
      object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(address);
    } else if (part->p_type == PT_GNU_RELRO) {
      object.relro = address;
      object.relro_bytes = part->p_memsz;
    } else if (part->p_type == PT_LOAD) {
      object.end = std::max(object.end, address + part->p_memsz);
    }
  }
  objects.all.push_back(std::move(object));
  return 0;
}

// The dynamic section of the object that defines the symbol, as `handle` sees it, or null.
const void* find_definer(void* handle, const char* symbol) {
  Dl_info info{};
  link_map* map = nullptr;
  void* const address = dlsym(handle, symbol);
  const bool found = address != nullptr &&
                     dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  return found && map != nullptr ? map->l_ld : nullptr;
}

// All MPIs' are called libmpi-something; to look at the symbols of all objects would take a while.
bool is_fortran_layer(const Object& object) {
  const std::size_t folder = object.name.rfind('/');
  if (object.dynamic == nullptr || folder == std::string::npos ||
      object.name.find("mpi", folder) == std::string::npos) {
    return false;
  }
  void* const handle = dlopen(object.name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const auto defines = [&](const char* symbol) {
    return find_definer(handle, symbol) == object.dynamic;
  };
  const bool found =
      !defines("PMPI_Barrier") && std::any_of(std::begin(kOwnNames), std::end(kOwnNames), defines);
  dlclose(handle);
  return found;
}

// The function that an MPI's Fortran library shall call instead of PMPI_X, or null.
void* replacement(void* carillon, const char* symbol) {
  if (std::strncmp(symbol, kPrefix, sizeof(kPrefix) - 1) != 0) return nullptr;
#ifdef OPEN_MPI
  const std::pair<const char*, void*> own[] = {
      {"PMPI_Comm_f2c", reinterpret_cast<void*>(host().Comm_f2c)},
      {"PMPI_Request_f2c", reinterpret_cast<void*>(host().Request_f2c)},
      {"PMPI_Op_f2c", reinterpret_cast<void*>(host().Op_f2c)},
      {"PMPI_Type_f2c", reinterpret_cast<void*>(host().Type_f2c)},
      {"PMPI_Win_f2c", reinterpret_cast<void*>(host().Win_f2c)},
      {"PMPI_Info_f2c", reinterpret_cast<void*>(host().Info_f2c)}};
  for (const auto& [name, function] : own) {
    if (std::strcmp(symbol, name) == 0) return function;
  }
#endif
  return dlsym(carillon, symbol + 1);
}

struct Relocations {
  const ElfW(Rela) * begin = nullptr;
  std::size_t bytes = 0;
};

// Every slot whose value is a function's address, as the loader would have filled it.
void redirect(const Object& object, void* carillon) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  Relocations eager, lazy;
  for (const auto* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    const auto* const address = reinterpret_cast<const void*>(entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB: symbols = static_cast<const ElfW(Sym)*>(address); break;
      case DT_STRTAB: names = static_cast<const char*>(address); break;
      case DT_RELA: eager.begin = static_cast<const ElfW(Rela)*>(address); break;
      case DT_RELASZ: eager.bytes = entry->d_un.d_val; break;
      case DT_JMPREL: lazy.begin = static_cast<const ElfW(Rela)*>(address); break;
      case DT_PLTRELSZ: lazy.bytes = entry->d_un.d_val; break;
      default: break;
    }
  }
  if (symbols == nullptr || names == nullptr) return;
  for (const Relocations& all : {eager, lazy}) {
    for (std::size_t i = 0; i < all.bytes / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& relocation = all.begin[i];
      const auto symbol = ELF64_R_SYM(relocation.r_info);
      if (symbol == 0 || relocation.r_addend != 0) continue;
      void* const function = replacement(carillon, names + symbols[symbol].st_name);
      if (function == nullptr) continue;
      // Its other readers are the library's calls in other threads, which may see either function.
      const std::atomic_ref slot(*reinterpret_cast<void**>(object.base + relocation.r_offset));
      if (slot.load(std::memory_order_relaxed) != function) {
        slot.store(function, std::memory_order_relaxed);
      }
    }
  }
}

bool allow_writing(const Object& object, int protection) {
  if (object.relro_bytes == 0) return true;
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  const ElfW(Addr) begin = object.relro / page * page;
  const ElfW(Addr) end = (object.relro + object.relro_bytes) / page * page;  // as the loader does
  return begin >= end || mprotect(reinterpret_cast<void*>(begin), end - begin, protection) == 0;
}

// The libraries that call carillon's. Partners of the release: is_served_fortran.
constexpr ElfW(Addr) kNone = ~ElfW(Addr){0};
struct Served {
  std::atomic<ElfW(Addr)> begin = kNone, end = kNone;
};
constinit std::array<Served, 8> g_served;

// What is there stays: others look at it meanwhile.
void note_served(const Object& layer) {
  for (Served& one : g_served) {
    const ElfW(Addr) begin = one.begin.load(std::memory_order_relaxed);
    if (begin == layer.base && one.end.load(std::memory_order_relaxed) == layer.end) return;
    if (begin != kNone) continue;
    one.end.store(layer.end, std::memory_order_relaxed);
    one.begin.store(layer.base, std::memory_order_release);
    return;
  }
}

// Empty, or why not.
std::string serve(const Object& layer, void* carillon) {
  if (!allow_writing(layer, PROT_READ | PROT_WRITE)) {
    return "the system does not let " + layer.name +
           " be changed (mprotect: " + std::strerror(errno) +
           "), by which Fortran calls the MPI; allow it, or set CARILLON=off";
  }
  redirect(layer, carillon);
  allow_writing(layer, PROT_READ);
  return {};
}

// A handle of this library.
void* open_carillon() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&serve_fortran), &info) == 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

std::string serve_fortran() {
  static std::mutex mutex;
  static unsigned long long loads = 0;
  static std::string& refused = *new std::string();
  const std::lock_guard lock(mutex);
  Objects objects{.loads = loads};
  dl_iterate_phdr(collect_object, &objects);
  if (!objects.changed) return refused;
  void* const carillon = open_carillon();
  if (carillon == nullptr) return {};
  refused.clear();
  for (const Object& object : objects.all) {
    if (!is_fortran_layer(object)) continue;
    std::string why = serve(object, carillon);
#ifndef OPEN_MPI
    why.clear();  // all that MPICH's calls is carillon's already (fortran_late.cc): slower, not
                  // less
#endif
    if (why.empty()) {
      note_served(object);
    } else {
      refused = std::move(why);
    }
  }
  dlclose(carillon);
  loads = objects.loads;
  return refused;
}

void serve_late_fortran() {
  if (!is_awake()) return;
  static std::atomic<bool> said = false;
  const std::string refused = serve_fortran();
  if (!refused.empty() && !said.exchange(true, std::memory_order_relaxed))
    say("calls of Fortran go to the MPI, and may hang: %s", refused.c_str());
}

bool is_served_fortran(const void* address) {
  const auto here = reinterpret_cast<ElfW(Addr)>(address);
  return std::any_of(g_served.begin(), g_served.end(), [here](const Served& one) {
    return here >= one.begin.load(std::memory_order_acquire) &&
           here < one.end.load(std::memory_order_acquire);
  });
}

}  // namespace carillon::shim

#ifdef OPEN_MPI
extern "C" {

// What Open MPI's functions for Fortran ask before they call PMPI_X.
#define CARILLON_ASKED_BY_FORTRAN(type, name)               \
  CARILLON_EXPORT type PMPI_##name##_f2c(MPI_Fint handle) { \
    carillon::shim::serve_late_fortran();                   \
    return carillon::shim::host().name##_f2c(handle);       \
  }

CARILLON_ASKED_BY_FORTRAN(MPI_Comm, Comm)
CARILLON_ASKED_BY_FORTRAN(MPI_Request, Request)
CARILLON_ASKED_BY_FORTRAN(MPI_Op, Op)
CARILLON_ASKED_BY_FORTRAN(MPI_Datatype, Type)
CARILLON_ASKED_BY_FORTRAN(MPI_Win, Win)
CARILLON_ASKED_BY_FORTRAN(MPI_Info, Info)  // MPI_Alloc_mem has no other
#undef CARILLON_ASKED_BY_FORTRAN

}  // extern "C"
#endif
