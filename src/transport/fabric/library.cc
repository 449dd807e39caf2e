// SPDX-License-Identifier: Apache-2.0
#include "transport/fabric/library.h"

#include <dlfcn.h>

#include "base/fabric_environment.h"
#include "base/kept_signals.h"
#include "base/log.h"

namespace carillon::fabric {
namespace {

constexpr const char* kName = "libfabric.so.1";

// A newer library keeps the functions that fit the structures of older headers, under their old
// version; the plain name is that of its own headers.
constexpr bool kOldHeaders = FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION <= 17;

template <typename Function>
bool find(void* handle, const char* name, const char* version, Function* function) {
  void* const symbol = kOldHeaders ? dlvsym(handle, name, version) : dlsym(handle, name);
  *function = reinterpret_cast<Function>(symbol);
  return symbol != nullptr;
}

// Too late, if somebody else in the process has used it before.
void prepare_environment() {
  void* const loaded = dlopen(kName, RTLD_NOW | RTLD_NOLOAD);
  if (loaded != nullptr && !is_fabric_environment_set()) {
    log(LogLevel::kWarning,
        "libfabric was loaded before carillon could prepare it; over TCP, messages may stay behind "
        "while a rank is outside of carillon. Start the program with "
        "FI_TCP_STAGING_SBUF_SIZE=0 and FI_NET_STAGING_SBUF_SIZE=0 in the environment");
  }
  if (loaded != nullptr) dlclose(loaded);
  set_fabric_environment();
}

Result<Library> open() {
  prepare_environment();
  const KeptSignals kept;
  void* const handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Status(Code::kUnsupported, std::string("libfabric is not there (") + dlerror() +
                                          "); install it (Debian: libfabric1)");
  }
  Library library;
  if (!find(handle, "fi_getinfo", "FABRIC_1.3", &library.getinfo) ||
      !find(handle, "fi_freeinfo", "FABRIC_1.3", &library.freeinfo) ||
      !find(handle, "fi_dupinfo", "FABRIC_1.3", &library.dupinfo) ||
      !find(handle, "fi_fabric", "FABRIC_1.1", &library.fabric) ||
      !find(handle, "fi_strerror", "FABRIC_1.0", &library.strerror)) {
    return Status(Code::kUnsupported, std::string(kName) + " lacks a function: " + dlerror());
  }
  return library;
}

}  // namespace

Result<const Library*> Library::load() {
  static const Result<Library> kLibrary = open();
  if (!kLibrary.ok()) return kLibrary.status();
  return &kLibrary.value();
}

Status Library::failure(const std::string& what, long error) const {
  const auto positive = static_cast<int>(error < 0 ? -error : error);
  Code code = Code::kSystem;
  switch (positive) {
    case FI_ECANCELED:  // what is under way when a connection goes
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_EHOSTDOWN:
    case FI_ETIMEDOUT: code = Code::kPeerDead; break;
    case FI_ENOMEM: code = Code::kNoMemory; break;
    default: break;
  }
  return {code, what + ": " + strerror(positive) + " (" + std::to_string(positive) + ")"};
}

}  // namespace carillon::fabric
