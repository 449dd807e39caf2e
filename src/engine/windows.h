// SPDX-License-Identifier: Apache-2.0
//
// Memory that all processes of the node have mapped shared, each at addresses of its own, such as
// the windows of MPI_Win_allocate_shared. A message of bytes that are there says in which part of
// which window they are, and its reader finds them at its own address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

namespace carillon {

/// Where this process has memory that others have elsewhere.
struct WindowPart {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

/// A window, as its owner has it: its parts have keys that follow one another, the same on all
/// processes of the node.
struct SharedWindow {
  std::uint32_t first_key = 0, parts = 0;
  /// It has memory. Whoever takes that away says so here before, without any lock. On its own: what
  /// is in flight then is found by Engine::close_window.
  std::shared_ptr<std::atomic<bool>> stands;
};

/// All of a process. With the engine's lock.
class Windows {
 public:
  static constexpr std::uint64_t kMaxPartBytes = UINT64_C(1) << 40;

  /// A reference, and not the offset of bytes in the node's segment.
  static constexpr bool is_reference(std::uint64_t offset) { return (offset & kMark) != 0; }

  /// The first of so many keys that nothing has had yet; 0: there are no more. Asked of one process
  /// of the node.
  std::uint32_t reserve_keys(std::uint32_t parts);
  /// From now on references to the window are understood here,
  void add(const SharedWindow& window, std::span<const WindowPart> parts);
  /// made here,
  void open(const SharedWindow& window);
  /// and no more understood.
  void remove(const SharedWindow& window);
  [[nodiscard]] WindowPart part(std::uint32_t key) const;

  /// What names these bytes to the node's other processes; nullopt: they are in no open window.
  [[nodiscard]] std::optional<std::uint64_t> reference_to(const std::byte* memory,
                                                          std::size_t bytes) const;
  /// Where they are here. Null: there are no such bytes.
  [[nodiscard]] const std::byte* find(std::uint64_t reference, std::uint64_t bytes) const;

 private:
  static constexpr std::uint64_t kMark = UINT64_C(1) << 63;
  static constexpr int kPlaceBits = 40;  // the key above, the place in the part below
  static constexpr std::uint32_t kKeys = UINT32_C(1) << (63 - kPlaceBits);

  struct Open {
    std::uint32_t key = 0;
    std::shared_ptr<const std::atomic<bool>> stands;
  };
  std::uint32_t next_key_ = 1;
  std::unordered_map<std::uint32_t, WindowPart> parts_;  // by key
  std::map<const std::byte*, Open> open_;                // by where they begin
};

}  // namespace carillon
