// SPDX-License-Identifier: Apache-2.0
//
// What a run does with memory of its own rank, and with messages that are there: copies and
// reductions, lists of pieces put together and taken apart.
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/copy.h"
#include "engine/engine.h"
#include "engine/pieces.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {
namespace {

// A call of a kernel takes a few ns. A multiple of all elements' bytes.
constexpr std::size_t kPieceBytes = 256;

// What was written past the caches comes from memory: as copy_by_vectors reads it.
void reduce_side_by_side(Kernel kernel, std::byte* dst, const std::byte* left,
                         const std::byte* right, std::size_t count, std::size_t bytes) {
  const std::size_t each = bytes / count;
  const std::size_t part = part_side_by_side(bytes, kPieceBytes);
  for (std::size_t at = 0; at < part; at += kPieceBytes) {
    for (std::size_t i = 0; i < kSideBySide; ++i) {
      const std::size_t here = i * part + at;
      kernel(dst + here, left + here, right + here, kPieceBytes / each);
    }
  }
  const std::size_t done = kSideBySide * part;
  kernel(dst + done, left + done, right + done, (bytes - done) / each);
}

}  // namespace

void Run::copy(const Instruction& in, Strand& strand) {
  if (in.paired) return copy_rest(in, strand);
  const std::int64_t length = length_of(in.dst, in.length);
  std::byte* const to = at(in.dst, strand);
  const std::byte* const from = at(in.a, strand);
  if (to == from) return;  // it has landed there
  if (in.a.base >= kBaseSlots) {
    take(strand, to, from, length, arrivals_[in.a.base - kBaseSlots]);
  } else {
    copy_bytes(to, from, length);
    leave_uncounted(strand);
  }
  copied_bytes_ += static_cast<std::uint64_t>(length);
}

// Bytes of a message.
void Run::take(const Strand& strand, std::byte* to, const std::byte* from, std::int64_t length,
               const Arrival& arrival) {
  const Taking taking = begin_copying(strand, arrival, length);
  if (taking.by_vectors) {
    copy_by_vectors(to, from, static_cast<std::size_t>(length));
  } else {
    copy_bytes(to, from, length);
  }
  if (taking.timed) learn_taking(strand, taking, from, length);
}

void Run::reduce(const Instruction& in, const Strand& strand) {
  std::byte* const dst = at(in.dst, strand);
  const std::byte* const left = at(in.a, strand);
  const std::byte* const right = at(in.b, strand);
  const auto count = static_cast<std::size_t>(in.count);
  const Reduction& reduction = binding_.reduction;
  if (reduction.kernel != nullptr) {
    const bool is_left = in.a.base >= kBaseSlots;
    const std::uint32_t base = is_left ? in.a.base : in.b.base;
    if (base < kBaseSlots) {
      reduction.kernel(dst, left, right, count);
      return leave_uncounted(strand);
    }
    const Arrival& arrival = arrivals_[base - kBaseSlots];
    const auto bytes = static_cast<std::size_t>(in.length);
    const Taking taking = begin_taking(strand, arrival, in.length);
    if (arrival.came == Came::kUncached && bytes >= kLeastSideBySide) {
      reduce_side_by_side(reduction.kernel, dst, left, right, count, bytes);
    } else {
      reduction.kernel(dst, left, right, count);
    }
    if (taking.timed) learn_taking(strand, taking, is_left ? left : right, in.length);
    return;
  }
  // A user operator may read its elements as its types are aligned. What came in a line is not:
  // it lies behind the line's header.
  const auto length = static_cast<std::size_t>(in.length);
  alignas(std::max_align_t) std::array<std::byte, shm::kInlineBytes> aligned;
  const std::byte* from = left;
  if (in.a.base >= kBaseSlots && length <= aligned.size()) {
    std::memcpy(aligned.data(), left, length);
    from = aligned.data();
  }
  // It works in place on its right operand.
  if (dst == right) {
    reduction.user(reduction.user_arg, from, dst, count);
  } else if (dst != left) {
    std::memcpy(dst, right, length);
    reduction.user(reduction.user_arg, from, dst, count);
  } else {
    std::vector<std::byte> result(right, right + in.length);
    reduction.user(reduction.user_arg, from, result.data(), count);
    std::memcpy(dst, result.data(), result.size());
  }
}

// The bytes [offset, offset + length) of an instruction's piece list.
void Run::gather(std::byte* to, const Instruction& in, const Strand& strand, std::int64_t offset,
                 std::int64_t length) const {
  if (in.piece_count == 0) {
    copy_bytes(to, at(in.a, strand) + offset, length);
    return;
  }
  for_each_run(pieces_of(in), offset, length, whole_length,
               [&](const Operand& memory, std::int64_t start, std::int64_t run) {
                 copy_bytes(to, at(memory, strand) + start, run);
                 to += run;
                 return true;
               });
}

void Run::scatter(const std::byte* from, const Arrival& arrival, const Instruction& in,
                  const Strand& strand, std::int64_t offset, std::int64_t length) {
  if (in.piece_count == 0) {
    take(strand, at(in.dst, strand) + offset, from, length, arrival);
    return;
  }
  for_each_run(pieces_of(in), offset, length, whole_length,
               [&](const Operand& memory, std::int64_t start, std::int64_t run) {
                 copy_bytes(at(memory, strand) + start, from, run);
                 from += run;
                 return true;
               });
}

}  // namespace carillon
