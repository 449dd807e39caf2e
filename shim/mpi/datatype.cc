// SPDX-License-Identifier: Apache-2.0
#include "datatype.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "datatype_decode.h"
#include "predefined.h"
#include "process.h"
#include "reduction.h"

namespace carillon::shim {
namespace {

constexpr std::int64_t kBytesPerHostCopy = 1 << 30;

struct Types {
  std::mutex learning;  // held while the host is asked about a type; never in a callback
  std::mutex mutex;     // of what follows; never held while the host is called
  std::unordered_map<std::uintptr_t, std::shared_ptr<TypeInfo>> known;
  int keyval = MPI_KEYVAL_INVALID;
};

// Never destroyed: the host may free types while the process ends.
Types& types() {
  static Types& all = *new Types();
  return all;
}

// A derived type is freed: its handle may come back as another type.
int on_type_freed(MPI_Datatype type, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  forget_reductions_of_type(type);
  const std::lock_guard lock(types().mutex);
  types().known.erase((std::uintptr_t)type);
  g_types.advance();
  return MPI_SUCCESS;
}

// Asks the host whether it would communicate with the type (it may be not committed, or no type
// at all), on our own communicator, whose errors only return.
bool usable(MPI_Datatype type) {
  std::byte nothing{};
  int position = 0;
  return host().Pack(&nothing, 0, type, &nothing, 1, &position, process().self) == MPI_SUCCESS;
}

void find_layout(TypeInfo& info) {
  auto layout = decode(info.handle);
  if (!layout || layout->bytes() != info.size) {
    layout = observe(info.handle, info.size, info.true_lower_bound, info.true_extent);
  }
  if (!layout) {
    info.by_host = true;
    return;
  }
  info.layout = std::move(*layout);
  // What Open MPI says of bytes that lie one before the other, as if they did not.
  if (!info.layout.runs.empty()) {
    const Run span = info.layout.span();
    info.true_lower_bound = span.offset;
    info.true_extent = span.bytes;
  }
  info.single_run = info.layout.single_run();
  if (!info.single_run) return;
  info.start = info.layout.runs.empty() ? 0 : info.layout.runs[0].offset;
  info.dense = info.size == info.extent || info.size == 0;
}

std::shared_ptr<TypeInfo> make_type(MPI_Datatype type) {
  auto info = std::make_shared<TypeInfo>();
  info->handle = type;
  MPI_Count size = 0;
  MPI_Aint lower_bound = 0, extent = 0;
  host().Type_size_x(type, &size);
  host().Type_get_extent(type, &lower_bound, &extent);
  info->size = size;
  info->extent = extent;
  host().Type_get_true_extent(type, &lower_bound, &extent);
  info->true_lower_bound = lower_bound;
  info->true_extent = extent;
  info->predefined = find_predefined(type);
  info->derived = envelope_of(type).combiner != MPI_COMBINER_NAMED;
  find_layout(*info);
  return info;
}

const TypeInfo* known_type(MPI_Datatype type) {
  const std::lock_guard lock(types().mutex);
  const auto found = types().known.find((std::uintptr_t)type);
  return found == types().known.end() ? nullptr : found->second.get();
}

const TypeInfo* learn_type(MPI_Datatype type) {
  const InsideHost guard;
  const std::lock_guard one_at_a_time(types().learning);
  if (const TypeInfo* const known = known_type(type)) return known;
  if (!usable(type)) return nullptr;
  auto fresh = make_type(type);
  if (fresh->derived && host().Type_set_attr(type, types().keyval, nullptr) != MPI_SUCCESS) {
    return nullptr;
  }
  const std::lock_guard lock(types().mutex);
  return types().known.try_emplace((std::uintptr_t)type, std::move(fresh)).first->second.get();
}

template <typename Copy>
int copy_in_pieces(const TypeInfo& type, std::int64_t elements, Copy copy) {
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kBytesPerHostCopy / std::max<std::int64_t>(1, type.size));
  for (std::int64_t done = 0; done < elements; done += at_once) {
    const std::int64_t count = std::min(at_once, elements - done);
    if (const int status = copy(done, count); status != MPI_SUCCESS) return status;
  }
  return MPI_SUCCESS;
}

}  // namespace

bool start_types() {
  return host().Type_create_keyval(copy_no_attribute<MPI_Datatype>, on_type_freed, &types().keyval,
                                   nullptr) == MPI_SUCCESS;
}

void stop_types() {
  {
    const std::lock_guard lock(types().mutex);
    types().known.clear();
    g_types.advance();
  }
  host().Type_free_keyval(&types().keyval);
}

const TypeInfo* find_type_slow(MPI_Datatype type) {
  if (type == g_host.type_null) return nullptr;
  const std::uint64_t generation = g_types.now();
  const TypeInfo* info = known_type(type);
  if (info == nullptr) info = learn_type(type);
  if (info != nullptr) t_cache.types[hash_of(type) >> 60] = {type, generation, info};
  return info;
}

std::int64_t known_size(MPI_Datatype type) {
  const std::lock_guard lock(types().mutex);
  const auto found = types().known.find((std::uintptr_t)type);
  return found == types().known.end() ? 0 : found->second->size;
}

TypeUse::TypeUse(const TypeInfo* type)
    : type_(type != nullptr && type->derived ? type->shared_from_this() : nullptr) {
  if (type_ != nullptr) type_->users.enter();
}

TypeUse::~TypeUse() {
  if (type_ == nullptr || !type_->users.leave()) return;
  const InsideHost guard;
  MPI_Datatype handle = type_->handle;
  host().Type_free(&handle);
  type_->users.keep();  // as in free_type
}

int free_type(MPI_Datatype* handle) {
  std::shared_ptr<TypeInfo> info;
  {
    const std::lock_guard lock(types().mutex);
    const auto found = types().known.find((std::uintptr_t)*handle);
    if (found != types().known.end() && found->second->derived) info = found->second;
  }
  if (info != nullptr && !info->users.free()) {
    *handle = g_host.type_null;
    return MPI_SUCCESS;
  }
  const int status = host().Type_free(handle);
  // Refused; or types that are made of it keep it, and MPI_Type_get_contents gives its handle
  // again.
  if (info != nullptr) info->users.keep();
  return status;
}

int pack(const TypeInfo& type, std::int64_t elements, const void* buffer, void* packed) {
  if (!type.by_host) {
    pack(type.layout, elements, type.extent, buffer, packed);
    return MPI_SUCCESS;
  }
  const InsideHost guard;
  return copy_in_pieces(type, elements, [&](std::int64_t first, std::int64_t count) {
    return copy_by_host(type.element(buffer, first), count, type.handle,
                        static_cast<std::byte*>(packed) + first * type.size, count * type.size,
                        g_host.byte);
  });
}

int unpack(const TypeInfo& type, std::int64_t elements, const void* packed, void* buffer) {
  if (!type.by_host) {
    unpack(type.layout, elements, type.extent, packed, buffer);
    return MPI_SUCCESS;
  }
  const InsideHost guard;
  return copy_in_pieces(type, elements, [&](std::int64_t first, std::int64_t count) {
    return copy_by_host(static_cast<const std::byte*>(packed) + first * type.size,
                        count * type.size, g_host.byte, type.element(buffer, first), count,
                        type.handle);
  });
}

}  // namespace carillon::shim
