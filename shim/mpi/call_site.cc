// SPDX-License-Identifier: Apache-2.0
#include "call_site.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace carillon::shim {
namespace {

std::string hex(std::uintptr_t number) {
  std::array<char, 24> text = {};
  std::snprintf(text.data(), text.size(), "+0x%zx", static_cast<std::size_t>(number));
  return text.data();
}

bool is_of_mpi(const Dl_info& place, const void* own) {
  const char* const folder_end = std::strrchr(place.dli_fname, '/');
  const char* const name = folder_end == nullptr ? place.dli_fname : folder_end + 1;
  return place.dli_fbase == own || std::strncmp(name, "libmpi", 6) == 0;
}

}  // namespace

std::string call_site() {
  std::array<void*, 64> frames = {};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&call_site), &here);
  for (int i = 0; i < count; ++i) {
    // The frame holds where the call returns to, which may be in what follows.
    const auto address = reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) - 1;
    Dl_info place{};
    if (dladdr(reinterpret_cast<void*>(address), &place) == 0 || place.dli_fname == nullptr ||
        is_of_mpi(place, here.dli_fbase)) {
      continue;
    }
    std::string in_file =
        place.dli_fname + hex(address - reinterpret_cast<std::uintptr_t>(place.dli_fbase));
    if (place.dli_sname == nullptr) return in_file;
    return place.dli_sname + hex(address - reinterpret_cast<std::uintptr_t>(place.dli_saddr)) +
           " (" + in_file + ")";
  }
  return "an unknown place";
}

}  // namespace carillon::shim
