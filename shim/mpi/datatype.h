// SPDX-License-Identifier: Apache-2.0
//
// What is known about a datatype: its size, where its bytes lie, and whether it is predefined.
// Found out once per type and remembered until the type is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "host.h"
#include "layout.h"
#include "thread_cache.h"
#include "users.h"

namespace carillon::shim {

struct TypeInfo : std::enable_shared_from_this<TypeInfo> {
  MPI_Datatype handle{};
  std::int64_t size = 0;    // bytes of the signature
  std::int64_t extent = 0;  // from one element to the next
  std::int64_t true_lower_bound = 0, true_extent = 0;
  std::int64_t start = 0;   // where the first byte of a single run lies
  bool single_run = false;  // an element is one run of bytes
  bool dense = false;       // any number of elements is one run of bytes
  bool by_host = false;     // too irregular for `layout`: the host copies it
  bool derived = false;     // the program may free it
  int predefined = -1;      // its row in kPredefined (predefined.h)
  Layout layout;
  mutable Users users;

  [[nodiscard]] bool contiguous(std::int64_t elements) const {
    return dense || (single_run && elements <= 1);
  }
  /// The first byte of a contiguous buffer.
  [[nodiscard]] void* first_byte(const void* buffer) const {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                   static_cast<std::uintptr_t>(start));
  }
  /// The element a buffer holds at a displacement.
  [[nodiscard]] void* element(const void* buffer, std::int64_t displacement) const {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                   static_cast<std::uintptr_t>(displacement * extent));
  }
};

/// While one lives, the type does, here and in the host, though another thread free it. For calls
/// that need the type once others may know that they have begun.
class TypeUse {
 public:
  /// Null and predefined types need nothing.
  explicit TypeUse(const TypeInfo* type);
  ~TypeUse();
  TypeUse(const TypeUse&) = delete;
  TypeUse& operator=(const TypeUse&) = delete;

 private:
  std::shared_ptr<const TypeInfo> type_;
};

const TypeInfo* find_type_slow(MPI_Datatype type);

/// What is known about a type; null if it is no type that can be used to communicate.
inline const TypeInfo* find_type(MPI_Datatype type) {
  const ThreadCache::Type& entry = t_cache.types[hash_of(type) >> 60];
  static_assert(ThreadCache::kTypes == 16);
  if (entry.handle == type && entry.generation == g_types.now()) [[likely]]
    return entry.info;
  return find_type_slow(type);
}

/// Bytes of the signature of a type that has been found. 0: it has been freed since.
[[nodiscard]] std::int64_t known_size(MPI_Datatype type);

/// MPI_Type_free. If calls are using the type, the last of them frees the host's.
int free_type(MPI_Datatype* handle);

/// Copies `elements` elements of a buffer into packed bytes, and back. Status of the host.
[[nodiscard]] int pack(const TypeInfo& type, std::int64_t elements, const void* buffer,
                       void* packed);
[[nodiscard]] int unpack(const TypeInfo& type, std::int64_t elements, const void* packed,
                         void* buffer);

/// Makes what the above need; after MPI_Init, whose end needs nothing more. stop_types: where
/// another beginning may follow.
[[nodiscard]] bool start_types();
void stop_types();

}  // namespace carillon::shim
