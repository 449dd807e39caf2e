// SPDX-License-Identifier: Apache-2.0
#include "device_runtime.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::shim {

constinit SeenLibraries g_libraries;

namespace {

// Attributes of a pointer, which CUDA and HIP number alike.
constexpr int kContext = 1, kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9;

template <typename Function>
bool look_up(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// NVIDIA, "CUDA Driver API", 6.7, 6.13 and 6.14. All functions give 0 if they succeed.
class Cuda final : public DeviceRuntime {
 public:
  static std::unique_ptr<DeviceRuntime> of(void* library) {
    auto cuda = std::make_unique<Cuda>();
    const bool complete = look_up(library, "cuPointerGetAttribute", &cuda->attribute_) &&
                          look_up(library, "cuMemcpyDtoH_v2", &cuda->to_host_) &&
                          look_up(library, "cuMemcpyHtoD_v2", &cuda->to_device_) &&
                          look_up(library, "cuStreamSynchronize", &cuda->synchronize_) &&
                          look_up(library, "cuDevicePrimaryCtxRetain", &cuda->retain_) &&
                          look_up(library, "cuCtxPushCurrent_v2", &cuda->push_) &&
                          look_up(library, "cuCtxPopCurrent_v2", &cuda->pop_);
    return complete ? std::move(cuda) : nullptr;
  }
  [[nodiscard]] bool is_device_memory(std::uintptr_t address) const override {
    constexpr unsigned kDevice = 2;
    unsigned type = 0, managed = 0;
    if (attribute_(&type, kMemoryType, address) != 0 || type != kDevice) return false;
    return attribute_(&managed, kIsManaged, address) != 0 || managed == 0;
  }
  [[nodiscard]] bool to_host(void* to, std::uintptr_t from, std::size_t bytes) const override {
    return within_context(from, [&] { return to_host_(to, from, bytes) == 0; });
  }
  // The copy itself may return before the bytes have arrived.
  [[nodiscard]] bool to_device(std::uintptr_t to, const void* from,
                               std::size_t bytes) const override {
    void* const legacy_stream = reinterpret_cast<void*>(std::uintptr_t{1});
    return within_context(
        to, [&] { return to_device_(to, from, bytes) == 0 && synchronize_(legacy_stream) == 0; });
  }

 private:
  // This thread may never have used the device.
  template <typename Copy>
  [[nodiscard]] bool within_context(std::uintptr_t address, Copy copy) const {
    void* context = context_of(address);
    if (context != nullptr && push_(context) != 0) return false;
    const bool copied = copy();
    if (context != nullptr) pop_(&context);
    return copied;
  }
  // Null: unknown. Memory of pools is no context's: there the device's own one serves.
  [[nodiscard]] void* context_of(std::uintptr_t address) const {
    void* context = nullptr;
    if (attribute_(&context, kContext, address) == 0 && context != nullptr) return context;
    unsigned device = 0;
    if (attribute_(&device, kDeviceOrdinal, address) != 0 || device >= own_.size()) return nullptr;
    void* known = own_[device].load(std::memory_order_acquire);
    if (known == nullptr && retain_(&known, static_cast<int>(device)) == 0) {
      own_[device].store(known, std::memory_order_release);  // kept; twice by two threads at most
    }
    return known;
  }

  int (*attribute_)(void*, int, std::uintptr_t) = nullptr;
  int (*to_host_)(void*, std::uintptr_t, std::size_t) = nullptr;
  int (*to_device_)(std::uintptr_t, const void*, std::size_t) = nullptr;
  int (*synchronize_)(void*) = nullptr;
  int (*retain_)(void**, int) = nullptr;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  mutable std::array<std::atomic<void*>, 64> own_ = {};
};

// AMD, "HIP Runtime API Reference", memory management and error handling. All functions give 0 if
// they succeed. What they refuse is kept as the thread's last error, which the program looks at.
class Hip final : public DeviceRuntime {
 public:
  static std::unique_ptr<DeviceRuntime> of(void* library) {
    auto hip = std::make_unique<Hip>();
    int (*version)(int*) = nullptr;
    int number = 0;
    const bool complete = look_up(library, "hipPointerGetAttribute", &hip->attribute_) &&
                          look_up(library, "hipMemcpy", &hip->copy_) &&
                          look_up(library, "hipPeekAtLastError", &hip->peek_) &&
                          look_up(library, "hipGetLastError", &hip->take_error_) &&
                          look_up(library, "hipRuntimeGetVersion", &version);
    if (!complete || version(&number) != 0) return nullptr;
    constexpr int kSix = 60000000;  // from there on the types of memory are numbered as CUDA's
    hip->device_ = number >= kSix ? 2 : 1;
    return hip;
  }
  [[nodiscard]] bool is_device_memory(std::uintptr_t address) const override {
    unsigned type = 0, managed = 0;
    void* const pointer = reinterpret_cast<void*>(address);
    if (!succeeds([&] { return attribute_(&type, kMemoryType, pointer); })) return false;
    if (type != device_) return false;
    return !succeeds([&] { return attribute_(&managed, kIsManaged, pointer); }) || managed == 0;
  }
  [[nodiscard]] bool to_host(void* to, std::uintptr_t from, std::size_t bytes) const override {
    constexpr int kToHost = 2;
    return succeeds([&] { return copy_(to, reinterpret_cast<void*>(from), bytes, kToHost); });
  }
  // The copy waits on the null stream.
  [[nodiscard]] bool to_device(std::uintptr_t to, const void* from,
                               std::size_t bytes) const override {
    constexpr int kToDevice = 1;
    return succeeds([&] { return copy_(reinterpret_cast<void*>(to), from, bytes, kToDevice); });
  }

 private:
  // Leaves no error behind that was not there before.
  template <typename Ask>
  [[nodiscard]] bool succeeds(Ask ask) const {
    const bool clean = peek_() == 0;
    const bool good = ask() == 0;
    if (!good && clean) take_error_();
    return good;
  }

  int (*attribute_)(void*, int, void*) = nullptr;
  int (*copy_)(void*, const void*, std::size_t, int) = nullptr;
  int (*peek_)() = nullptr;
  int (*take_error_)() = nullptr;
  unsigned device_ = 0;
};

struct Vendor {
  std::string_view library;  // its name begins so
  std::unique_ptr<DeviceRuntime> (*of)(void* library);
};
constexpr std::array kVendors = {Vendor{"libcuda.so", Cuda::of}, Vendor{"libamdhip64.so", Hip::of}};

// What has been found is used without the lock, and stays.
struct Found {
  std::mutex mutex;
  std::array<std::atomic<const DeviceRuntime*>, kVendors.size()> runtimes = {};
};
Found& found() {
  static Found& all = *new Found();
  return all;
}

void look_at(const std::string& path, void* handle) {
  std::string_view name(path);
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  for (std::size_t i = 0; i < kVendors.size(); ++i) {
    if (!name.starts_with(kVendors[i].library) || found().runtimes[i].load() != nullptr) continue;
    if (const DeviceRuntime* const runtime = kVendors[i].of(handle).release()) {
      // For good, whatever the program does with it.
      dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
      found().runtimes[i].store(runtime, std::memory_order_release);
      g_libraries.any_runtime.store(true, std::memory_order_release);
    }
  }
}

struct LoadedNames {
  std::vector<std::string> all;
  unsigned long long loads = 0;  // of libraries, so far
};

// The loader lets nobody change the list meanwhile.
LoadedNames names_of_libraries() {
  LoadedNames names;
  const auto add = [](dl_phdr_info* info, std::size_t /*size*/, void* to) {
    static_cast<LoadedNames*>(to)->all.emplace_back(info->dlpi_name);
    static_cast<LoadedNames*>(to)->loads = info->dlpi_adds;
    return 0;
  };
  dl_iterate_phdr(add, &names);
  return names;
}

// The last one of those that can be opened (not the program itself, nor the kernel's) is held. Each
// is while it is looked at.
void look_through(const LoadedNames& names) {
  void* held = nullptr;
  for (const std::string& name : names.all) {
    void* const handle = name.empty() ? nullptr : dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    look_at(name, handle);
    if (held != nullptr) dlclose(held);
    held = handle;
  }
  const link_map* last = nullptr;
  if (held == nullptr || dlinfo(held, RTLD_DI_LINKMAP, &last) != 0) return;
  g_libraries.next.store(__atomic_load_n(&last->l_next, __ATOMIC_ACQUIRE));
  g_libraries.last.store(last, std::memory_order_release);
}

void look_through_libraries() {
  const std::lock_guard lock(found().mutex);
  LoadedNames names = names_of_libraries();
  for (;;) {
    look_through(names);
    LoadedNames now = names_of_libraries();
    if (now.loads == names.loads) return;
    names = std::move(now);
  }
}

}  // namespace

void start_devices() { look_through_libraries(); }

const DeviceRuntime* find_device(std::uintptr_t address) {
  const link_map* const last = g_libraries.last.load(std::memory_order_acquire);
  if (last == nullptr) return nullptr;
  if (__atomic_load_n(&last->l_next, __ATOMIC_RELAXED) != g_libraries.next.load()) {
    look_through_libraries();
  }
  for (const auto& each : found().runtimes) {
    const DeviceRuntime* const runtime = each.load(std::memory_order_acquire);
    if (runtime != nullptr && runtime->is_device_memory(address)) return runtime;
  }
  return nullptr;
}

}  // namespace carillon::shim
