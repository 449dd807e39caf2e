// SPDX-License-Identifier: Apache-2.0
//
// Memory that asks for large pages if it is long, as it is walked through again and again: fewer
// faults at first, fewer misses of the TLB later. HugeArray: an array for the life of a simulation,
// which may grow up to a capacity without moving.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace carillon::sim {

/// At least as aligned as anything that is made by new; to be freed by std::free.
inline void* allocate_huge(std::size_t bytes) {
  constexpr std::size_t kPage = std::size_t{1} << 21;
  const bool is_long = bytes >= 2 * kPage;
  const std::size_t page = is_long ? kPage : alignof(std::max_align_t);
  void* const memory = std::aligned_alloc(page, (bytes + page - 1) / page * page);
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  if (is_long) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

/// For vectors that may become long.
template <typename T>
struct HugeAllocator {
  using value_type = T;
  HugeAllocator() = default;
  template <typename U>
  explicit HugeAllocator(const HugeAllocator<U>& /*other*/) {}
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_huge(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t /*count*/) {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
  }
  bool operator==(const HugeAllocator&) const = default;
};
template <typename T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

template <typename T>
class HugeArray {
 public:
  explicit HugeArray(std::size_t size) : HugeArray(size, size) {}
  HugeArray(std::size_t size, std::size_t capacity) : size_(size) {
    items_ = static_cast<T*>(allocate_huge(capacity * sizeof(T)));
    std::uninitialized_value_construct_n(items_, size);
  }
  ~HugeArray() {
    std::destroy_n(items_, size_);
    std::free(items_);  // NOLINT(cppcoreguidelines-no-malloc)
  }
  HugeArray(const HugeArray&) = delete;
  HugeArray& operator=(const HugeArray&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }
  /// One more; there must be room.
  T& add() { return *std::construct_at(items_ + size_++); }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }

 private:
  std::size_t size_;
  T* items_ = nullptr;
};

}  // namespace carillon::sim
