// SPDX-License-Identifier: Apache-2.0
//
// The node's shared memory: one memfd, made by one process and handed to the others over an
// abstract socket, so that nothing has a name in a file system and all is gone with the last
// process, however it ends. A byte-range lock per rank tells the living from the dead.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/shm/layout.h"

namespace carillon::shm {

/// Of the two parts of a pool: chunks for short messages, and for long ones. A part passes through
/// the caches whole: one that fits a core's second-level cache is slower, as its lines have to be
/// got back from the reader's, and so is one that takes much of the cache that cores share.
struct PoolSizes {
  std::uint64_t small_bytes, large_bytes;

  [[nodiscard]] std::uint64_t bytes() const { return small_bytes + large_bytes; }
};

struct SegmentSizes {
  static constexpr std::uint64_t kReserveBytes = 512 << 20;
  /// Of a long exchange among so many ranks a rank hears, at each other one, of all messages that
  /// the channel has lines for only when that one has completed it, and so has all of them: as many
  /// chunks must there be.
  static constexpr std::uint64_t enough_reserve(std::uint64_t ranks, std::uint64_t chunk_bytes) {
    const std::uint64_t one_exchange = ranks * (kWindow + 1) * chunk_bytes;
    return one_exchange < kReserveBytes ? kReserveBytes : one_exchange;
  }

  std::uint64_t control_bytes = 64 << 20;  ///< address space; pages count when touched
  PoolSizes pool{.small_bytes = 2 << 20, .large_bytes = 3 << 19};
  /// The pool where ranks share cores: the pools of all of them compete for the same caches.
  PoolSizes crowded_pool{.small_bytes = 1 << 18, .large_bytes = 3 << 18};
  std::uint64_t reserve_bytes = kReserveBytes;  ///< what the pool may grow by
  std::uint64_t heap_bytes = INT64_C(1) << 30;
  std::uint64_t program_bytes = 0;  ///< the longest of the processes' own heaps
};

/// Memory of a process that others may map: all of a file, where the process has mapped it.
struct ProcessHeap {
  const std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  int fd = -1;
};

/// A mapping of the segment. Ranks of one process (threads) share one object. Thread-safe.
class Segment {
 public:
  /// Makes a new segment for `ranks` ranks.
  static Result<std::shared_ptr<Segment>> create(int ranks, const SegmentSizes& sizes);
  /// Maps the one behind fd, or returns this process's mapping of it.
  static Result<std::shared_ptr<Segment>> attach(UniqueFd fd);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::uint64_t id() const { return shape_.id; }
  [[nodiscard]] int ranks() const { return static_cast<int>(shape_.ranks); }
  [[nodiscard]] std::byte* base() const { return base_; }
  /// Are so many bytes there? For what others say.
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  /// And in a rank's pool, or in what that may grow by?
  [[nodiscard]] bool holds_in_pool(std::uint64_t offset, std::uint64_t bytes) const;
  /// And in lines of what a rank has for its teams?
  [[nodiscard]] bool holds_in_control(int rank, std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] const SegmentShape& shape() const { return shape_; }
  [[nodiscard]] SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  [[nodiscard]] bool contains(const std::byte* memory) const {
    return memory >= base_ && memory < base_ + bytes_;
  }
  [[nodiscard]] RankState& state(int rank) const;
  /// A bit for each rank of the node: those whose reading would make room in the rank's pool.
  [[nodiscard]] std::span<std::atomic<std::uint64_t>> room_held_by(int rank) const;
  /// Offsets from base() of what `rank` owns.
  [[nodiscard]] std::uint64_t control(int rank) const;
  [[nodiscard]] std::uint64_t pool(int rank) const;
  [[nodiscard]] std::uint64_t reserve(int rank) const;
  [[nodiscard]] std::uint64_t heap(int rank) const;
  [[nodiscard]] bool in_heap(int rank, const void* memory, std::size_t bytes) const;
  /// Of the process's own heap, where the others see it.
  [[nodiscard]] std::uint64_t program_heap(int rank) const;

  /// Declares this process to be `rank`, until it ends.
  Status enter(int rank);
  /// Tells the others of this process's own heap, for them to map. An error if it is no such file.
  Status offer_heap(int rank, const ProcessHeap& heap);
  /// Maps what the others of the node have offered; they have all entered. What cannot be mapped
  /// is not read there: of so many others.
  int map_heaps(int rank);
  /// Have all others mapped this rank's?
  [[nodiscard]] bool heap_is_mapped(int rank) const;
  /// Declares that `rank` ends in good order.
  void leave(int rank);
  [[nodiscard]] bool left(int rank) const;
  /// True if the process that entered as `rank` has ended without leaving.
  [[nodiscard]] bool died(int rank) const;

  /// Copies from the private memory of the process that entered as `rank`: one copy instead of two
  /// through the segment. An error where the kernel forbids it (ptrace rights), or it has ended.
  Status read_private(int rank, std::uint64_t address, void* to, std::size_t bytes) const;
  /// Tells all whether this process, which entered as `rank`, can read all others'; if not, why.
  /// They have all entered.
  Status try_reading(int rank);
  [[nodiscard]] bool reads(int rank) const;
  /// Of each rank's pool.
  [[nodiscard]] PoolSizes pool_sizes() const {
    return {shape_.small_pool_bytes, shape_.large_pool_bytes};
  }
  /// What that costs it, in the one way and in the other, as far as it has told.
  [[nodiscard]] TakeCosts take_costs(int rank, Taken taken) const;
  void set_take_cost(int rank, Taken taken, Way way, std::uint32_t byte_fs);

 private:
  Segment(UniqueFd fd, std::byte* base, std::uint64_t bytes)
      : fd_(std::move(fd)), base_(base), bytes_(bytes) {}
  static Result<std::shared_ptr<Segment>> map(UniqueFd fd, std::uint64_t bytes);
  bool map_heap_of(int other);
  [[nodiscard]] bool runs_another_program(int rank, std::uint64_t process) const;

  UniqueFd fd_;
  /// Closing any descriptor of a file drops all of the process's locks on it, so the ones that
  /// ranks of the same process were handed stay open as long as the mapping.
  std::vector<UniqueFd> duplicates_;
  std::byte* base_;
  std::uint64_t bytes_;
  SegmentShape shape_ = {};  // a copy: what stands in the segment, any process may come to damage
};

/// The socket through which the leader of a node hands out the segment.
class Exchange {
 public:
  /// Listens under a random name of this process.
  static Result<Exchange> listen();

  [[nodiscard]] std::uint64_t name() const { return name_; }
  /// Gives fd to the next `clients` processes that ask, all within timeout_ms; only to processes
  /// of the same user.
  Status serve(int fd, int clients, int timeout_ms);
  /// Asks the process that listens under `name`.
  static Result<UniqueFd> request(std::uint64_t name, int timeout_ms);

 private:
  Exchange(UniqueFd fd, std::uint64_t name) : fd_(std::move(fd)), name_(name) {}
  UniqueFd fd_;
  std::uint64_t name_;
};

}  // namespace carillon::shm
