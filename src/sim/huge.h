// SPDX-License-Identifier: Apache-2.0
//
// HugeArray: an array for the life of a simulation, which may grow up to a capacity without moving.
// A long one asks for large pages, as it is walked through again and again: fewer faults at first,
// fewer misses of the TLB later.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace carillon::sim {

template <typename T>
class HugeArray {
 public:
  explicit HugeArray(std::size_t size) : HugeArray(size, size) {}
  HugeArray(std::size_t size, std::size_t capacity) : size_(size) {
    constexpr std::size_t kPage = std::size_t{1} << 21;
    const std::size_t bytes = capacity * sizeof(T);
    const bool is_long = bytes >= 2 * kPage;
    const std::size_t page = is_long ? kPage : alignof(std::max_align_t);
    items_ = static_cast<T*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
    if (items_ == nullptr && bytes > 0) throw std::bad_alloc();
    if (is_long) madvise(items_, bytes, MADV_HUGEPAGE);
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
