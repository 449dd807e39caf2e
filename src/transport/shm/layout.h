// SPDX-License-Identifier: Apache-2.0
//
// What stands in the node's shared memory, and which atomic is whose partner.
//
//   segment (one memfd per node)
//   +--------+-------------------+-------------------+ ...
//   | header | part of rank 0    | part of rank 1    |
//   +--------+-------------------+-------------------+ ...
//              part:  control | pool (chunks) | heap (crl_alloc) | program's heap
//
//   Behind the last is no page of the memfd: where the rank's process has a heap of its own that
//   others may read (crl_context_config_t.heap), they map that there.
//
//   control:  team areas, from the front | free | pair lines of teams, from the back
//   Most teams use few pair lines, or none: those stand together, so that their pages take no
//   memory.
//
//   team area, one per team and rank
//   +----------+-----------+-------------------+--------------+
//   | progress | all lines | acks of each peer | domain lines |
//   +----------+-----------+-------------------+--------------+
//   domain lines on nodes of several NUMA domains only
//   pair lines of the team, for each peer:  kWindow lines, as there are to all and to the domain.
//   The owner writes its progress, its lines to all and to its domain and the acks; peer p writes
//   the pair lines of p.
//
// Only offsets from the segment's start are stored: every process maps it somewhere else.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/process_mark.h"

namespace carillon::shm {

inline constexpr std::size_t kCacheLine = 64;
/// Lines per channel; a power of two. Schedules count on Limits::window of them: the rest is for
/// readers that tell of several releases at once.
inline constexpr int kWindow = 8;
inline constexpr std::size_t kInlineBytes = 56;
/// Longer ones, up to here, are in the small chunks of a pool.
inline constexpr std::uint64_t kSmallBytes = 8192;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Who reads a message that one rank writes for several: all others of its node, or those of its
/// NUMA domain. Each has lines of its own.
enum class Audience : std::uint8_t { kNode, kDomain };
inline constexpr std::size_t kAudiences = 2;

/// One message: header and payload in one cache line, so that a small message costs one transfer.
///
/// header, written last with release by the writer; the reader's acquire load of it (Channel poll)
/// is its partner and orders the payload:
///   bits 0-31   message number + 1, modulo 2^32; never equal to the number the line held before
///   bits 32-39  lag: the writer's current collective minus its `done`; 255: unknown
///   bits 40-47  kind: 0..56 inline payload of that many bytes; kChunk: payload is a ChunkRef
///   bits 48-63  signature of the writer's call: the reader's differs if the ranks' calls do
struct alignas(kCacheLine) Line {
  std::atomic<std::uint64_t> header;
  std::byte payload[kInlineBytes];
};
static_assert(sizeof(Line) == kCacheLine);

inline constexpr std::uint8_t kHandedChunk = 0xF7;    ///< as kChunk, the reader's with its release
inline constexpr std::uint8_t kUncachedChunk = 0xF8;  ///< as kChunk, written past the caches
inline constexpr std::uint8_t kAnnounced = 0xF9;      ///< is sent when awaited: net/placed.h
inline constexpr std::uint8_t kWithdrawn = 0xFA;  ///< was lent or in the heap; the writer gave up
inline constexpr std::uint8_t kLent = 0xFB;       ///< payload lies in the writer's private memory
inline constexpr std::uint8_t kExposed = 0xFC;    ///< payload says where it is: net/exposure.h
inline constexpr std::uint8_t kRemote = 0xFD;     ///< payload came over a network: see net/pair.h
inline constexpr std::uint8_t kChunk = 0xFE;      ///< payload lies in the writer's pool
inline constexpr std::uint8_t kReference =
    0xFF;  ///< payload lies in the writer's heap, or a window, in place

/// Is there such a kind of messages that are not in their lines? Some only the network brings: no
/// process of the node writes them to others' lines.
constexpr bool is_known(std::uint8_t kind, bool by_network) {
  const bool of_network = kind == kAnnounced || kind == kExposed || kind == kRemote;
  return kind >= kHandedChunk && (by_network || !of_network);
}

/// The ways of a message too long for its line: it is copied to the pool, as every copy is or past
/// the writer's cache; or it stays where it is, and its reader copies it from there; or it is
/// copied to the pool, and the chunk goes to its reader with it (Pool).
enum class Way : std::uint8_t { kCached, kUncached, kPrivate, kHanded };
inline constexpr std::size_t kWays = 4;

/// What a rank does with a message: copies it to its output, or reduces it; or so with the pieces
/// of a stream, from a rank that only writes to one that only takes, both at the same time; or so
/// with messages that are too short to be lent; or with the pieces of what two ranks write to each
/// other.
enum class Taken : std::uint8_t {
  kCopied,
  kReduced,
  kCopiedStream,
  kReducedStream,
  kShortCopied,
  kShortReduced,
  kPiecesCopied,
  kPiecesReduced
};
inline constexpr std::size_t kTakenKinds = 8;

constexpr bool is_stream(Taken taken) {
  return taken == Taken::kCopiedStream || taken == Taken::kReducedStream;
}

/// Another process wrote it.
constexpr Taken known(Taken taken) {
  return static_cast<std::size_t>(taken) < kTakenKinds ? taken : Taken::kCopied;
}

/// Where a message too long for its line lies: offset from the segment's start (kRemote: its
/// address in this process; kReference: there may be Windows::is_reference). kChunk,
/// kUncachedChunk and kHandedChunk: what the writer expects its reader to do with it. kHandedChunk:
/// it is at the chunk's start, and how long that is; and whether the writer would have another one
/// handed over for it.
struct ChunkRef {
  std::uint64_t offset;
  std::uint64_t length;
  Taken taken = Taken::kCopied;
  std::uint8_t invites = 0;  // not a bool: another process wrote it
  std::uint64_t chunk_bytes = 0;
};
/// kLent: where it lies in the writer's process, and how many bytes right behind it are messages
/// after this one, lent too, and may be read with it; and the same.
struct LentRef {
  std::uint64_t address;
  std::uint64_t length;
  std::uint64_t behind;
  Taken taken = Taken::kCopied;
};
inline constexpr std::uint64_t make_header(std::uint32_t number, std::uint32_t lag,
                                           std::uint8_t kind, std::uint16_t signature) {
  return static_cast<std::uint64_t>(number + 1) | (static_cast<std::uint64_t>(lag) << 32) |
         (static_cast<std::uint64_t>(kind) << 40) | (static_cast<std::uint64_t>(signature) << 48);
}
inline constexpr std::uint32_t header_tag(std::uint64_t header) {
  return static_cast<std::uint32_t>(header);
}
inline constexpr std::uint32_t header_lag(std::uint64_t header) {
  return static_cast<std::uint32_t>(header >> 32) & 0xFF;
}
inline constexpr std::uint8_t header_kind(std::uint64_t header) {
  return static_cast<std::uint8_t>(header >> 40);
}

inline constexpr std::uint64_t with_kind(std::uint64_t header, std::uint8_t kind) {
  return (header & ~(UINT64_C(0xFF) << 40)) | (static_cast<std::uint64_t>(kind) << 40);
}

inline constexpr std::uint16_t header_signature(std::uint64_t header) {
  return static_cast<std::uint16_t>(header >> 48);
}

/// What the owner of an area tells a writer: how many of its messages to the owner, and of those to
/// several, the owner has released, while that is counted. One rank writes it and one reads.
struct alignas(kCacheLine) Acks {
  std::atomic<std::uint64_t> pair;
  std::array<std::atomic<std::uint64_t>, kAudiences> shared;

  [[nodiscard]] const std::atomic<std::uint64_t>& of(Audience audience) const {
    return shared[static_cast<std::size_t>(audience)];
  }
  [[nodiscard]] std::atomic<std::uint64_t>& of(Audience audience) {
    return shared[static_cast<std::size_t>(audience)];
  }
};
static_assert(sizeof(Acks) == kCacheLine);

/// A counter alone in its cache line.
struct alignas(kCacheLine) Counter {
  std::atomic<std::uint64_t> value;
};

/// `done`: generation of the area (upper 20 bits, never 0) and how many collectives of the team
/// its owner has completed, all earlier ones included (lower 44 bits). Stored with release at the
/// end of a collective; a writer that wants to reuse a line or a chunk loads it with acquire. An
/// area that has another generation than the one agreed on belongs to a later team: its owner has
/// seen every member of the earlier one finish. The generation is there before any member is told
/// of the area. A count of kDoneMask - e says that the owner gave the team up, with error -e: it
/// will read and write nothing of the team any more.
inline constexpr int kDoneBits = 44;
inline constexpr std::uint64_t kDoneMask = (UINT64_C(1) << kDoneBits) - 1;
inline constexpr std::uint64_t kGenerations = UINT64_C(1) << (64 - kDoneBits);
inline constexpr std::uint64_t kGaveUp = kDoneMask - 15;  ///< this and more: gave up
struct alignas(kCacheLine) Progress {
  std::atomic<std::uint64_t> done;
  /// What a rank that has waited for long waits in: collective (upper 48 bits) and signature.
  std::atomic<std::uint64_t> call;
};

/// Offsets inside the team area and the pair lines of one of `size` ranks, on a node that has
/// several NUMA domains or not: then there are no lines of Audience::kDomain. A rank may write to
/// itself.
struct AreaLayout {
  std::size_t size;
  bool has_domains;

  static constexpr std::size_t progress() { return 0; }
  [[nodiscard]] constexpr std::size_t shared_lines(Audience audience) const {
    return audience == Audience::kNode ? sizeof(Progress) : acks(size);
  }
  /// Of the messages of `writer`.
  [[nodiscard]] static constexpr std::size_t acks(std::size_t writer) {
    return sizeof(Progress) + kLinesBytes + writer * sizeof(Acks);
  }
  [[nodiscard]] constexpr std::size_t bytes() const {
    return acks(size) + (has_domains ? kLinesBytes : 0);
  }

  /// From the start of the owner's pair lines.
  [[nodiscard]] static constexpr std::size_t pair_lines(std::size_t writer) {
    return writer * kLinesBytes;
  }
  [[nodiscard]] constexpr std::size_t pair_bytes() const { return pair_lines(size); }

 private:
  static constexpr std::size_t kLinesBytes = kWindow * sizeof(Line);
};

/// What a byte of messages that come each way costs the rank that takes them, in femtoseconds; 0:
/// not known.
using TakeCosts = std::array<std::uint32_t, kWays>;

/// Per rank of the node, in the segment header.
struct alignas(kCacheLine) RankState {
  /// How many threads of the rank are asleep or about to be. Raised by the sleeper before a
  /// membarrier; loaded (relaxed) by whoever has just written what the sleeper may wait for.
  std::atomic<std::uint32_t> sleeping;
  /// The futex word; a waker increments it before FUTEX_WAKE.
  std::atomic<std::uint32_t> wake_count;
  std::atomic<std::int32_t> pid;
  /// Of the process, whose descriptors, and with them its lock, the program may have closed.
  ProcessMark mark;
  /// Of the process, on this node and beyond: pids repeat in containers.
  std::atomic<std::uint64_t> process;
  /// Where the process holds the same number in private memory, for who wants to know whether it
  /// can read that.
  std::uint64_t process_address;
  /// The file of the process's own heap, among its descriptors, and which file that is; as long as
  /// it has bytes. Written before the exchange that ends the joining.
  std::int32_t heap_fd;
  std::uint64_t heap_device, heap_inode, heap_bytes;
  /// How many ranks have mapped it. Raised with release when it is there; partner: the acquire load
  /// of who passes on where bytes are in it.
  std::atomic<std::uint32_t> heap_readers;
  /// 1 if the rank can read the private memory of all ranks of the node.
  std::atomic<std::uint32_t> reads;
  /// How many threads of the rank sleep on its bell instead, and the bell's name (0: it has none).
  std::atomic<std::uint32_t> listening;
  std::atomic<std::uint64_t> bell;
  /// The NUMA domain of the node that it runs in, counted from 1; 0: not known. Written by the
  /// node's first rank, before the exchange that ends the joining.
  std::atomic<std::int32_t> domain;
  /// 1 once the rank has left in good order.
  std::atomic<std::uint32_t> left;
  /// How often it has looked after the others while it had something in flight, and how often that
  /// had moved on since the time before. Stored with release, looks last; partner: rank_looks().
  std::atomic<std::uint64_t> moves, looks;
  /// Whether it waits for room in its pool, as engine_room.cc says it, and for whom: a bit for each
  /// rank of the node (Segment::room_held_by). Stored with release, the bits first; partner:
  /// Engine::nobody_hopes().
  std::atomic<std::uint32_t> room;
  /// Its TakeCosts, by how it takes: hints, so relaxed. Apart from what is read for every message.
  alignas(
      kCacheLine) std::array<std::array<std::atomic<std::uint32_t>, kWays>, kTakenKinds> take_costs;
};

/// As the segment was made. Each process that maps it reads it once.
struct SegmentShape {
  std::uint64_t magic;
  std::uint64_t id;  ///< random; equal on all ranks that share this segment
  std::uint32_t ranks;
  std::uint32_t version;
  std::uint64_t part_bytes;
  std::uint64_t control_bytes;
  std::uint64_t small_pool_bytes, large_pool_bytes;
  std::uint64_t heap_bytes;
  std::uint64_t program_bytes;
};

struct SegmentHeader {
  SegmentShape shape;
  /// How many ranks sleep: zero almost always, so that a writer looks at one shared line only.
  alignas(kCacheLine) std::atomic<std::uint32_t> sleepers;
  /// What a rank has said for all: bits of the lines, each said by who raises its bit. Relaxed;
  /// next to nobody looks at it.
  alignas(kCacheLine) std::atomic<std::uint32_t> told;
};

inline constexpr std::uint64_t kMagic = 0x6361'7269'6c6c'6f6e;  // "carillon"
inline constexpr std::uint32_t kVersion = 13;
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kHugePageBytes = 2 << 20;

}  // namespace carillon::shm
