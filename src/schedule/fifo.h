// SPDX-License-Identifier: Apache-2.0
//
// Fifo: a queue in one piece of memory, and in none while nothing has been in it, for the many
// short queues of a team's links.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace carillon {

template <typename T>
class Fifo {
 public:
  /// Moves what is in the queue.
  T& push_back(T value) { return items_.emplace_back(std::move(value)); }
  /// So does this, now and then: once for each item on average.
  void pop_front() {
    items_[first_] = {};
    if (2 * ++first_ < items_.size()) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  void clear() {
    items_.clear();
    first_ = 0;
  }

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return items_.size() - first_; }
  [[nodiscard]] T& operator[](std::size_t i) { return items_[first_ + i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return items_[first_ + i]; }
  [[nodiscard]] T& front() { return (*this)[0]; }
  [[nodiscard]] const T& front() const { return (*this)[0]; }
  [[nodiscard]] T& back() { return items_.back(); }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;  // those before it are gone
};

}  // namespace carillon
