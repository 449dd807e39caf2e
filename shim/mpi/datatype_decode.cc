// SPDX-License-Identifier: Apache-2.0
#include "datatype_decode.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <utility>
#include <vector>

#include "datatype_contents.h"
#include "process.h"

namespace carillon::shim {
namespace {

constexpr std::int64_t kObservableBytes = 1 << 16;  // two passes of one byte each number them

struct Part {
  Layout layout;
  std::int64_t extent = 0;
};

std::optional<Part> part_of(MPI_Datatype type) {
  auto layout = decode(type);
  if (!layout) return std::nullopt;
  MPI_Aint lower_bound = 0, extent = 0;
  host().Type_get_extent(type, &lower_bound, &extent);
  return Part{std::move(*layout), extent};
}

std::optional<Layout> decode_vector(const Part& part, int count, int block, std::int64_t stride) {
  auto layout = repeat(part.layout, block, part.extent);
  return layout ? repeat(std::move(*layout), count, stride) : std::nullopt;
}

// indexed, hindexed, their _block forms, and struct: blocks of `length(i)` parts at `offset(i)`.
template <typename PartOf, typename Length, typename Offset>
std::optional<Layout> decode_blocks(int count, PartOf part, Length length, Offset offset) {
  Layout all;
  for (int i = 0; i < count; ++i) {
    const Part* const element = part(i);
    if (element == nullptr) return std::nullopt;
    auto block = repeat(element->layout, length(i), element->extent);
    if (!block || !all.append(*block, offset(i))) return std::nullopt;
  }
  return all;
}

std::optional<Layout> decode_struct(const Contents& contents) {
  Part part;
  const auto part_at = [&](int i) -> const Part* {
    auto found = part_of(contents.type(static_cast<std::size_t>(i)));
    if (!found) return nullptr;
    part = std::move(*found);
    return &part;
  };
  return decode_blocks(
      contents.integers[0], part_at,
      [&](int i) { return contents.integers[std::size_t{1} + static_cast<std::size_t>(i)]; },
      [&](int i) { return contents.addresses[static_cast<std::size_t>(i)]; });
}

std::optional<Layout> decode_indexed(int combiner, const Contents& contents, const Part& part) {
  const std::vector<int>& numbers = contents.integers;
  const bool fixed_length =
      combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
  const bool in_bytes =
      combiner == MPI_COMBINER_HINDEXED || combiner == MPI_COMBINER_HINDEXED_BLOCK;
  const int count = numbers[0];
  const std::size_t first_offset =
      fixed_length ? 2 : std::size_t{1} + static_cast<std::size_t>(count);
  return decode_blocks(
      count, [&](int) { return &part; },
      [&](int i) {
        return numbers[std::size_t{1} + (fixed_length ? 0 : static_cast<std::size_t>(i))];
      },
      [&](int i) {
        return in_bytes ? std::int64_t{contents.addresses[static_cast<std::size_t>(i)]}
                        : numbers[first_offset + static_cast<std::size_t>(i)] * part.extent;
      });
}

std::optional<Layout> decode_subarray(const std::vector<int>& numbers, const Part& part) {
  const auto dims = static_cast<std::size_t>(numbers[0]);
  const int* const sizes = &numbers[1];
  const int* const subsizes = sizes + dims;
  const int* const starts = subsizes + dims;
  const bool last_is_fastest = starts[dims] == MPI_ORDER_C;
  std::optional<Layout> layout = part.layout;
  std::int64_t stride = part.extent, offset = 0;
  for (std::size_t i = 0; i < dims && layout; ++i) {
    const std::size_t dim = last_is_fastest ? dims - 1 - i : i;
    layout = repeat(std::move(*layout), subsizes[dim], stride);
    offset += starts[dim] * stride;
    stride *= sizes[dim];
  }
  if (layout) layout->shift(offset);
  return layout;
}

std::optional<Layout> decode_derived(int combiner, const Contents& contents) {
  if (combiner == MPI_COMBINER_STRUCT) return decode_struct(contents);
  const auto part = part_of(contents.type(0));
  if (!part) return std::nullopt;
  const std::vector<int>& numbers = contents.integers;
  switch (combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return part->layout;
    case MPI_COMBINER_CONTIGUOUS: return repeat(part->layout, numbers[0], part->extent);
    case MPI_COMBINER_VECTOR:
      return decode_vector(*part, numbers[0], numbers[1], numbers[2] * part->extent);
    case MPI_COMBINER_HVECTOR:
      return decode_vector(*part, numbers[0], numbers[1], contents.addresses[0]);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: return decode_indexed(combiner, contents, *part);
    case MPI_COMBINER_SUBARRAY: return decode_subarray(numbers, *part);
    default: return std::nullopt;
  }
}

std::optional<Layout> decode_named(MPI_Datatype type) {
  MPI_Count size = 0;
  MPI_Aint lower_bound = 0, extent = 0;
  host().Type_size_x(type, &size);
  host().Type_get_extent(type, &lower_bound, &extent);
  if (size == extent) return Layout{{}, {{0, size}}};
  return observe(type, size, lower_bound, extent);  // a pair type with gaps
}

int self_message_tag() {
  static std::atomic<unsigned> next{0};
  static thread_local const unsigned mine = next.fetch_add(1);  // threads must not cross
  return kNeverSentTag + 1 + static_cast<int>(mine % kSelfMessageTags);
}

// A type of `bytes` bytes, more than an int can count.
MPI_Datatype make_large_run(std::int64_t bytes) {
  constexpr std::int64_t kPiece = 1 << 30;
  MPI_Datatype piece{}, run{};
  host().Type_contiguous(kPiece, g_host.byte, &piece);
  int lengths[2] = {static_cast<int>(bytes / kPiece), static_cast<int>(bytes % kPiece)};
  MPI_Aint offsets[2] = {0, static_cast<MPI_Aint>(bytes / kPiece * kPiece)};
  MPI_Datatype types[2] = {piece, g_host.byte};
  host().Type_create_struct(2, lengths, offsets, types, &run);
  host().Type_commit(&run);
  host().Type_free(&piece);
  return run;
}

}  // namespace

Envelope envelope_of(MPI_Datatype type) {
  Envelope envelope;
#ifdef CARILLON_LARGE_COUNTS
  if (host().Type_get_envelope_c != nullptr) {
    MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
    const int status =
        host().Type_get_envelope_c(type, &integers, &addresses, &large, &types, &envelope.combiner);
    envelope.integers = static_cast<int>(integers);
    envelope.addresses = static_cast<int>(addresses);
    envelope.types = static_cast<int>(types);
    envelope.readable = status == MPI_SUCCESS && large == 0;
    return envelope;
  }
#endif
  envelope.readable = host().Type_get_envelope(type, &envelope.integers, &envelope.addresses,
                                               &envelope.types, &envelope.combiner) == MPI_SUCCESS;
  return envelope;
}

std::optional<Layout> decode(MPI_Datatype type) {
  const Envelope envelope = envelope_of(type);
  if (!envelope.readable) return std::nullopt;
  if (envelope.combiner == MPI_COMBINER_NAMED) return decode_named(type);
  if (is_predefined_f90(envelope.combiner) || envelope.types < 1) return std::nullopt;
  const Contents contents(type, envelope);
  if (!contents.valid) return std::nullopt;
  return decode_derived(envelope.combiner, contents);
}

int copy_by_host(const void* from, std::int64_t from_count, MPI_Datatype from_type, void* to,
                 std::int64_t to_count, MPI_Datatype to_type) {
  const int tag = self_message_tag();
  MPI_Datatype large{};
  for (auto [count, type] : {std::pair{&from_count, &from_type}, std::pair{&to_count, &to_type}}) {
    if (*count <= INT_MAX) continue;
    *type = large = make_large_run(*count);  // only runs of bytes get that long
    *count = 1;
  }
  const int status = host().Sendrecv(from, static_cast<int>(from_count), from_type, 0, tag, to,
                                     static_cast<int>(to_count), to_type, 0, tag, process().self,
                                     MPI_STATUS_IGNORE);
  if (large != MPI_Datatype{}) host().Type_free(&large);
  return status;
}

std::optional<Layout> observe(MPI_Datatype type, std::int64_t size, std::int64_t true_lower_bound,
                              std::int64_t true_extent) {
  if (true_extent > kObservableBytes || size > kObservableBytes) return std::nullopt;
  std::vector<std::uint8_t> typed(static_cast<std::size_t>(true_extent));
  const auto base = reinterpret_cast<std::uintptr_t>(typed.data()) -
                    static_cast<std::uintptr_t>(true_lower_bound);
  const auto copy = [&](std::vector<std::uint8_t>& bytes) {
    return copy_by_host(reinterpret_cast<const void*>(base), 1, type, bytes.data(), size,
                        g_host.byte) == MPI_SUCCESS;
  };
  // Some bytes the host may not copy at all: of long double, MPICH does its ten, and not the six
  // behind them. What it lets be where others copy it must not be taken for another byte.
  constexpr std::uint8_t kThere = 0x55, kBefore = 0xaa;
  std::fill(typed.begin(), typed.end(), kThere);
  std::vector<std::uint8_t> copied(static_cast<std::size_t>(size), kBefore);
  if (!copy(copied) ||
      std::any_of(copied.begin(), copied.end(), [](std::uint8_t byte) { return byte != kThere; })) {
    return std::nullopt;
  }
  std::array<std::vector<std::uint8_t>, 2> seen;
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t i = 0; i < typed.size(); ++i) {
      typed[i] = static_cast<std::uint8_t>(i >> (8 * pass));
    }
    std::vector<std::uint8_t>& bytes = seen[static_cast<std::size_t>(pass)];
    bytes.resize(static_cast<std::size_t>(size));
    if (!copy(bytes)) return std::nullopt;
  }
  Layout layout;
  for (std::size_t i = 0; i < seen[0].size(); ++i) {
    const std::int64_t offset = true_lower_bound + (seen[0][i] | seen[1][i] << 8);
    if (!layout.append(Run{offset, 1})) return std::nullopt;
  }
  return layout;
}

}  // namespace carillon::shim
