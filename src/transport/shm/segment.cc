// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/copy.h"
#include "base/file_size.h"
#include "base/process_mark.h"

namespace carillon::shm {
namespace {

Status system_error(const char* what) {
  return {Code::kSystem, std::string("shared memory: ") + what + ": " + std::strerror(errno)};
}

constexpr std::uint64_t align(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

// With a bit for each rank.
constexpr std::uint64_t words_of(std::uint64_t ranks) { return (ranks + 63) / 64; }

std::uint64_t header_bytes(std::uint64_t ranks) {
  const std::uint64_t room_bytes = ranks * words_of(ranks) * sizeof(std::uint64_t);
  return align(align(sizeof(SegmentHeader), kCacheLine) + ranks * sizeof(RankState) + room_bytes,
               kHugePageBytes);
}

// Whether the file has just as much as its shape tells of: what is behind its end cannot be
// touched.
bool is_whole(const SegmentShape& shape, std::uint64_t bytes) {
  const std::uint64_t front = header_bytes(shape.ranks);
  if (shape.ranks == 0 || bytes <= front || (bytes - front) % shape.ranks != 0) return false;
  std::uint64_t rest = shape.part_bytes;
  if (rest != (bytes - front) / shape.ranks) return false;
  for (const std::uint64_t part : {shape.control_bytes, shape.small_pool_bytes,
                                   shape.large_pool_bytes, shape.heap_bytes, shape.program_bytes}) {
    if (part > rest) return false;
    rest -= part;
  }
  return true;
}

// This process's mappings: ranks that are threads share one.
std::mutex g_mutex;
std::unordered_map<ino_t, std::weak_ptr<Segment>>& mappings() {
  static auto* const kMappings = new std::unordered_map<ino_t, std::weak_ptr<Segment>>();
  return *kMappings;
}

// A pid and a random number: a child of fork has another one than its parent, and so has a process
// of the same pid in another container.
std::uint64_t own_process() {
  static const std::uint32_t kNonce = [] {
    std::uint32_t value = 0;
    return getrandom(&value, sizeof value, 0) == sizeof value ? value : 0;
  }();
  return std::uint64_t{kNonce} << 32 | static_cast<std::uint32_t>(getpid());
}

// Where own_process() stands for others to read. Of ranks that are threads the first one writes it,
// before it enters; while later ones enter, others of the process may be reading it.
const std::atomic<std::uint64_t>* private_number() {
  static std::atomic<std::uint64_t> number = 0;
  const std::uint64_t own = own_process();
  // Partner: the next line, in another thread.
  std::uint64_t there = number.load(std::memory_order_acquire);
  if (there != own) number.compare_exchange_strong(there, own, std::memory_order_acq_rel);
  return &number;
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::map(UniqueFd fd, std::uint64_t bytes) {
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) return system_error("cannot map the node's segment (ulimit -v?)");
  madvise(base, bytes, MADV_DONTDUMP);
  return std::shared_ptr<Segment>(new Segment(std::move(fd), static_cast<std::byte*>(base), bytes));
}

Result<std::shared_ptr<Segment>> Segment::create(int ranks, const SegmentSizes& sizes) {
  UniqueFd fd(memfd_create("carillon", MFD_CLOEXEC));
  if (!fd.valid()) return system_error("memfd_create");
  const std::uint64_t part = align(sizes.control_bytes + sizes.pool.bytes() + sizes.reserve_bytes +
                                       sizes.heap_bytes + align(sizes.program_bytes, kPageBytes),
                                   kHugePageBytes);
  const auto count = static_cast<std::uint64_t>(ranks);
  const std::uint64_t bytes = header_bytes(count) + count * part;
  if (size_file(fd.get(), bytes) != 0) {
    return system_error("cannot size the node's segment (ulimit -f?)");
  }
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return system_error("fstat");
  auto segment = map(std::move(fd), bytes);
  if (!segment.ok()) return segment;
  SegmentShape& shape = segment.value()->shape_;
  shape.magic = kMagic;
  shape.version = kVersion;
  shape.ranks = static_cast<std::uint32_t>(ranks);
  shape.part_bytes = part;
  shape.control_bytes = sizes.control_bytes;
  shape.small_pool_bytes = sizes.pool.small_bytes;
  shape.large_pool_bytes = sizes.pool.large_bytes;
  shape.heap_bytes = sizes.heap_bytes;
  shape.program_bytes = align(sizes.program_bytes, kPageBytes);
  if (getrandom(&shape.id, sizeof shape.id, 0) != sizeof shape.id) {
    return system_error("getrandom");
  }
  segment.value()->header().shape = shape;
  const std::lock_guard lock(g_mutex);
  mappings()[info.st_ino] = segment.value();
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::attach(UniqueFd fd) {
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return system_error("fstat");
  const std::lock_guard lock(g_mutex);
  if (auto known = mappings()[info.st_ino].lock()) {
    known->duplicates_.push_back(std::move(fd));
    return known;
  }
  auto segment = map(std::move(fd), static_cast<std::uint64_t>(info.st_size));
  if (!segment.ok()) return segment;
  const SegmentShape& shape = segment.value()->shape_ = segment.value()->header().shape;
  if (shape.magic != kMagic || shape.version != kVersion) {
    return Status(Code::kMismatch,
                  "shared memory: the node's segment was made by another version of carillon");
  }
  if (!is_whole(shape, static_cast<std::uint64_t>(info.st_size))) {
    return Status(Code::kMismatch, "shared memory: the node's segment is not as long as it says");
  }
  mappings()[info.st_ino] = segment.value();
  return segment;
}

Segment::~Segment() { munmap(base_, bytes_); }

RankState& Segment::state(int rank) const {
  auto* const states =
      reinterpret_cast<RankState*>(base_ + align(sizeof(SegmentHeader), kCacheLine));
  return states[rank];
}

std::span<std::atomic<std::uint64_t>> Segment::room_held_by(int rank) const {
  const std::uint64_t words = words_of(shape_.ranks);
  auto* const first = reinterpret_cast<std::atomic<std::uint64_t>*>(&state(ranks()));
  return {first + static_cast<std::uint64_t>(rank) * words, words};
}

std::uint64_t Segment::control(int rank) const {
  return header_bytes(shape_.ranks) + static_cast<std::uint64_t>(rank) * shape_.part_bytes;
}
std::uint64_t Segment::pool(int rank) const { return control(rank) + shape_.control_bytes; }
std::uint64_t Segment::reserve(int rank) const { return pool(rank) + pool_sizes().bytes(); }
std::uint64_t Segment::heap(int rank) const { return program_heap(rank) - shape_.heap_bytes; }
std::uint64_t Segment::program_heap(int rank) const {
  return control(rank) + shape_.part_bytes - shape_.program_bytes;
}

bool Segment::holds_in_pool(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset < pool(0)) return false;
  const std::uint64_t rank = (offset - pool(0)) / shape_.part_bytes;
  if (rank >= shape_.ranks) return false;
  const std::uint64_t end = heap(static_cast<int>(rank));
  return offset <= end && bytes <= end - offset;
}

bool Segment::holds_in_control(int rank, std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t first = control(rank);
  const std::uint64_t end = first + shape_.control_bytes;
  return offset % kCacheLine == 0 && offset >= first && offset <= end && bytes <= end - offset;
}

bool Segment::in_heap(int rank, const void* memory, std::size_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(memory);
  const std::byte* const heap_start = base_ + heap(rank);
  return first >= heap_start && first + bytes <= heap_start + shape_.heap_bytes;
}

Status Segment::enter(int rank) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  if (fcntl(fd_.get(), F_SETLK, &lock) != 0) return system_error("cannot lock the rank's byte");
  state(rank).pid.store(getpid(), std::memory_order_relaxed);
  state(rank).mark = own_mark();
  state(rank).process_address = reinterpret_cast<std::uint64_t>(private_number());
  // partners: died(), try_reading()
  state(rank).process.store(own_process(), std::memory_order_release);
  return {};
}

Status Segment::offer_heap(int rank, const ProcessHeap& heap) {
  struct stat info = {};
  if (fstat(heap.fd, &info) != 0) return system_error("the process's heap: fstat");
  if (heap.bytes == 0 || heap.bytes % kPageBytes != 0 || heap.bytes > shape_.program_bytes ||
      static_cast<std::uint64_t>(info.st_size) < heap.bytes) {
    return {Code::kInvalidArgument, "shared memory: the process's heap: its file is shorter"};
  }
  RankState& mine = state(rank);
  mine.heap_fd = heap.fd;
  mine.heap_device = info.st_dev;
  mine.heap_inode = info.st_ino;
  mine.heap_bytes = heap.bytes;
  return {};
}

// By way of the other's descriptor, for which the kernel asks for the same user. Read only: what
// goes wrong here cannot change another program's data. Where the other's pid is another process's
// here, so is the descriptor: only what is known to be the heap is opened. Opening anything else
// may block; and to close the segment itself would drop this process's lock on it.
bool Segment::map_heap_of(int other) {
  const RankState& owner = state(other);
  const std::string path = "/proc/" + std::to_string(owner.pid.load(std::memory_order_relaxed)) +
                           "/fd/" + std::to_string(owner.heap_fd);
  const auto is_heap = [&](const struct stat& info) {
    return info.st_dev == owner.heap_device && info.st_ino == owner.heap_inode &&
           static_cast<std::uint64_t>(info.st_size) >= owner.heap_bytes;
  };
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || !is_heap(info)) return false;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool same = fd.valid() && fstat(fd.get(), &info) == 0 && is_heap(info);
  if (!same || owner.heap_bytes > shape_.program_bytes) return false;
  void* const heap = base_ + program_heap(other);
  if (mmap(heap, owner.heap_bytes, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd.get(),
           0) == MAP_FAILED) {
    return false;
  }
  // A dump would be as long as the heap, and the kernel would make all of its pages for that.
  madvise(heap, owner.heap_bytes, MADV_DONTDUMP);
  return true;
}

int Segment::map_heaps(int rank) {
  int refused = 0;
  for (int other = 0; other < ranks(); ++other) {
    if (other == rank || state(other).heap_bytes == 0) continue;
    if (map_heap_of(other)) {
      state(other).heap_readers.fetch_add(1, std::memory_order_release);  // partner: heap_is_mapped
    } else {
      ++refused;
    }
  }
  return refused;
}

bool Segment::heap_is_mapped(int rank) const {
  const RankState& mine = state(rank);
  return mine.heap_bytes > 0 && mine.heap_readers.load(std::memory_order_acquire) + 1 ==
                                    static_cast<std::uint32_t>(ranks());  // partner: map_heaps
}

void Segment::leave(int rank) {
  state(rank).left.store(1, std::memory_order_release);  // partner: left()
}

bool Segment::left(int rank) const {
  return state(rank).left.load(std::memory_order_acquire) != 0;  // partner: leave()
}

// Its lock is gone with its process; but also if it closes descriptors that it does not know, as
// some programs do, and where this process does, it is another file that is looked at. So the
// process itself is looked at, too, where that can be done.
bool Segment::died(int rank) const {
  const RankState& other = state(rank);
  const std::uint64_t process = other.process.load(std::memory_order_acquire);  // partner: enter()
  // A process never sees its own locks as a conflict.
  if (process == 0 || process == own_process()) return false;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  const bool knows = fcntl(fd_.get(), F_GETLK, &lock) == 0;
  if (knows && lock.l_type != F_UNLCK) return false;
  const ProcessLife life = look_at_process(other.pid.load(std::memory_order_relaxed), other.mark);
  if (life == ProcessLife::kUnknown && !knows) return false;
  if (life == ProcessLife::kLives && !runs_another_program(rank, process)) return false;
  return !left(rank);
}

// After exec: it has its pid yet, and not its memory. Where that cannot be read, it is believed to.
bool Segment::runs_another_program(int rank, std::uint64_t process) const {
  std::uint64_t there = process;
  const Status status = read_private(rank, state(rank).process_address, &there, sizeof there);
  if (status.ok()) return there != process;
  return status.code() == Code::kInvalidArgument || status.code() == Code::kPeerDead;
}

Status Segment::read_private(int rank, std::uint64_t address, void* to, std::size_t bytes) const {
  const RankState& other = state(rank);
  // partner: enter()
  if (other.process.load(std::memory_order_acquire) == own_process()) {
    copy_memory(to, reinterpret_cast<const void*>(address), bytes);
    return {};
  }
  const pid_t pid = other.pid.load(std::memory_order_relaxed);
  for (std::size_t done = 0; done < bytes;) {
    const iovec local{static_cast<std::byte*>(to) + done, bytes - done};
    const iovec remote{reinterpret_cast<void*>(address + done), bytes - done};
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got < 0 && errno == ESRCH) return {Code::kPeerDead, "its process has ended"};
    if (got < 0 && errno == EFAULT) return {Code::kInvalidArgument, "no such memory"};
    if (got <= 0) return system_error("process_vm_readv");
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Status Segment::try_reading(int rank) {
  for (int other = 0; other < ranks(); ++other) {
    std::uint64_t number = 0;
    const std::uint64_t process = state(other).process.load(std::memory_order_acquire);
    Status status = read_private(other, state(other).process_address, &number, sizeof number);
    if (!status.ok()) return status;
    // A process of another container may have the pid that this one's has in its own.
    if (number != process) return {Code::kUnsupported, "a process of another container"};
  }
  state(rank).reads.store(1, std::memory_order_relaxed);
  return {};
}

bool Segment::reads(int rank) const {
  // The rank's entering orders it before all messages.
  return state(rank).reads.load(std::memory_order_relaxed) != 0;
}

TakeCosts Segment::take_costs(int rank, Taken taken) const {
  const auto& told = state(rank).take_costs[static_cast<std::size_t>(taken)];
  TakeCosts costs;
  for (std::size_t way = 0; way < kWays; ++way) {
    costs[way] = told[way].load(std::memory_order_relaxed);
  }
  return costs;
}

void Segment::set_take_cost(int rank, Taken taken, Way way, std::uint32_t byte_fs) {
  state(rank).take_costs[static_cast<std::size_t>(taken)][static_cast<std::size_t>(way)].store(
      byte_fs, std::memory_order_relaxed);
}

}  // namespace carillon::shm
