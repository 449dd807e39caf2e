// SPDX-License-Identifier: Apache-2.0
//
// A runtime of a device where there is none: the functions of CUDA's driver, or of HIP, that the
// interposer calls. Its memory is mapped twice: at the address that programs get, where the
// processor can neither read nor write, and where the copies go.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace {

constexpr int kOk = 0, kInvalidValue = 1, kWrongContext = 201;
constexpr int kContext = 1, kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9;
constexpr unsigned kDevice = 2, kOrdinal = 3;

// As device_test has them: of the program's context, managed, or of a pool.
enum Kind : int { kOfContext, kManaged, kOfPool };
struct Memory {
  std::size_t bytes = 0;
  std::byte* behind = nullptr;
  int kind = kOfContext;
};
struct Arriving {
  std::byte* to = nullptr;
  std::vector<std::byte> bytes;
};
std::mutex g_mutex;
std::map<std::uintptr_t, Memory> g_memory;
std::vector<Arriving> g_arriving;  // to the device, not yet waited for
std::uint64_t g_copied_bytes = 0;
thread_local int t_last_error = kOk;

int keep_error(int error) {
  if (error != kOk) t_last_error = error;
  return error;
}

const std::pair<const std::uintptr_t, Memory>* find(std::uintptr_t address) {
  auto after = g_memory.upper_bound(address);
  if (after == g_memory.begin()) return nullptr;
  --after;
  return address - after->first < after->second.bytes ? &*after : nullptr;
}

// Where the copies find the bytes; null: not all of them are one memory's.
std::byte* behind(std::uintptr_t address, std::size_t bytes) {
  const auto* const found = find(address);
  if (found == nullptr || bytes > found->second.bytes - (address - found->first)) return nullptr;
  g_copied_bytes += bytes;
  return found->second.behind + (address - found->first);
}

int attribute_of(void* value, int attribute, std::uintptr_t address) {
  const std::lock_guard lock(g_mutex);
  const auto* const found = find(address);
  if (found == nullptr) return kInvalidValue;
  if (attribute == kContext) {
    *static_cast<void**>(value) = found->second.kind == kOfPool ? nullptr : &g_memory;
  } else if (attribute == kDeviceOrdinal) {
    *static_cast<unsigned*>(value) = kOrdinal;
  } else if (attribute == kMemoryType) {
    *static_cast<unsigned*>(value) = kDevice;
  } else if (attribute == kIsManaged) {
    *static_cast<unsigned*>(value) = found->second.kind == kManaged ? 1 : 0;
  } else {
    return kInvalidValue;
  }
  return kOk;
}

int copy_to_host(void* to, std::uintptr_t from, std::size_t bytes) {
  const std::lock_guard lock(g_mutex);
  const std::byte* const source = behind(from, bytes);
  if (source == nullptr) return kInvalidValue;
  std::memcpy(to, source, bytes);
  return kOk;
}

int copy_to_device(std::uintptr_t to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(g_mutex);
  std::byte* const target = behind(to, bytes);
  if (target == nullptr) return kInvalidValue;
  const auto* const first = static_cast<const std::byte*>(from);
  g_arriving.push_back({target, {first, first + bytes}});
  return kOk;
}

int await_arrival() {
  const std::lock_guard lock(g_mutex);
  for (const Arriving& each : g_arriving) {
    std::memcpy(each.to, each.bytes.data(), each.bytes.size());
  }
  g_arriving.clear();
  return kOk;
}

}  // namespace

extern "C" {

// For the test.
void* stand_in_allocate(std::size_t bytes, int kind) {
  const int file = memfd_create("stand-in", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
  const int access = kind == kManaged ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* const front = mmap(nullptr, bytes, access, MAP_SHARED, file, 0);
  void* const back = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (front == MAP_FAILED || back == MAP_FAILED) std::abort();
  const std::lock_guard lock(g_mutex);
  g_memory[reinterpret_cast<std::uintptr_t>(front)] = {bytes, static_cast<std::byte*>(back), kind};
  return front;
}
void stand_in_free(void* front) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_memory.find(reinterpret_cast<std::uintptr_t>(front));
  munmap(found->second.behind, found->second.bytes);
  munmap(front, found->second.bytes);
  g_memory.erase(found);
}
/// The bytes that lie at a device's address.
void* stand_in_look_at(void* front) {
  const std::lock_guard lock(g_mutex);
  return find(reinterpret_cast<std::uintptr_t>(front))->second.behind;
}
std::uint64_t stand_in_copied_bytes() { return g_copied_bytes; }
/// What the program would find that it did not do itself.
int stand_in_last_error() { return t_last_error; }

#ifdef STAND_IN_FOR_HIP
int hipRuntimeGetVersion(int* version) {
  *version = 60000000;
  return kOk;
}
int hipPointerGetAttribute(void* value, int attribute, void* address) {
  return keep_error(attribute_of(value, attribute, reinterpret_cast<std::uintptr_t>(address)));
}
int hipPeekAtLastError() { return t_last_error; }
int hipGetLastError() { return std::exchange(t_last_error, kOk); }
int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  constexpr int kToDevice = 1, kToHost = 2;
  if (kind == kToHost) {
    return keep_error(copy_to_host(to, reinterpret_cast<std::uintptr_t>(from), bytes));
  }
  if (kind != kToDevice) return keep_error(kInvalidValue);
  const int status = copy_to_device(reinterpret_cast<std::uintptr_t>(to), from, bytes);
  return status == kOk ? await_arrival() : keep_error(status);
}
#else
static thread_local void* t_context = nullptr;
int cuPointerGetAttribute(void* value, int attribute, std::uintptr_t address) {
  return attribute_of(value, attribute, address);
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device != static_cast<int>(kOrdinal)) return kInvalidValue;
  *context = &g_memory;
  return kOk;
}
int cuStreamSynchronize(void* /*stream*/) {
  return t_context == &g_memory ? await_arrival() : kWrongContext;
}
int cuCtxPushCurrent_v2(void* context) {
  if (t_context != nullptr) return kWrongContext;
  t_context = context;
  return kOk;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = t_context;
  t_context = nullptr;
  return kOk;
}
int cuMemcpyDtoH_v2(void* to, std::uintptr_t from, std::size_t bytes) {
  return t_context == &g_memory ? copy_to_host(to, from, bytes) : kWrongContext;
}
int cuMemcpyHtoD_v2(std::uintptr_t to, const void* from, std::size_t bytes) {
  return t_context == &g_memory ? copy_to_device(to, from, bytes) : kWrongContext;
}
#endif
}
