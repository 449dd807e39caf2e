// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <cstring>
#include <utility>

namespace carillon::shim {
namespace {

// The typed side is addressed by integers: MPI_BOTTOM makes its base address 0.
using Address = std::uintptr_t;

enum class Way { kPack, kUnpack };

template <Way kWay>
void move_run(Address typed, std::byte*& packed, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if constexpr (kWay == Way::kPack) {
    std::memcpy(packed, reinterpret_cast<const void*>(typed), size);
  } else {
    std::memcpy(reinterpret_cast<void*>(typed), packed, size);
  }
  packed += size;
}

template <Way kWay, std::int64_t kBytes>
void move_strided(Address typed, std::byte*& packed, const Loop& loop) {
  for (std::int64_t i = 0; i < loop.count; ++i, typed += static_cast<Address>(loop.stride)) {
    move_run<kWay>(typed, packed, kBytes);  // a constant size: one load and one store
  }
}

template <Way kWay>
void move_runs(const std::vector<Run>& runs, Address typed, std::byte*& packed) {
  for (const Run& run : runs) {
    move_run<kWay>(typed + static_cast<Address>(run.offset), packed, run.bytes);
  }
}

template <Way kWay>
void move_innermost(const std::vector<Run>& runs, const Loop& loop, Address typed,
                    std::byte*& packed) {
  if (runs.size() == 1) {
    const Address first = typed + static_cast<Address>(runs[0].offset);
    switch (runs[0].bytes) {
      case 4: return move_strided<kWay, 4>(first, packed, loop);
      case 8: return move_strided<kWay, 8>(first, packed, loop);
      case 12: return move_strided<kWay, 12>(first, packed, loop);
      case 16: return move_strided<kWay, 16>(first, packed, loop);
      default: break;
    }
  }
  for (std::int64_t i = 0; i < loop.count; ++i, typed += static_cast<Address>(loop.stride)) {
    move_runs<kWay>(runs, typed, packed);
  }
}

template <Way kWay>
void move_loops(const std::vector<Run>& runs, const Loop* loop, const Loop* end, Address typed,
                std::byte*& packed) {
  if (loop == end) return move_runs<kWay>(runs, typed, packed);
  if (loop + 1 == end) return move_innermost<kWay>(runs, *loop, typed, packed);
  for (std::int64_t i = 0; i < loop->count; ++i, typed += static_cast<Address>(loop->stride)) {
    move_loops<kWay>(runs, loop + 1, end, typed, packed);
  }
}

template <Way kWay>
void move(const Layout& layout, std::int64_t elements, std::int64_t extent, Address typed,
          std::byte* packed) {
  Loop loops[Layout::kMaxLoops + 1];
  std::size_t depth = 0;
  if (elements != 1) loops[depth++] = {elements, extent};
  for (const Loop& loop : layout.loops) loops[depth++] = loop;
  move_loops<kWay>(layout.runs, loops, loops + depth, typed, packed);
}

}  // namespace

std::int64_t Layout::bytes() const {
  std::int64_t sum = 0;
  for (const Run& run : runs) sum += run.bytes;
  for (const Loop& loop : loops) sum *= loop.count;
  return sum;
}

Run Layout::span() const {
  if (runs.empty()) return {};
  std::int64_t begin = runs[0].offset, end = begin;
  for (const Run& run : runs) {
    begin = std::min(begin, run.offset);
    end = std::max(end, run.offset + run.bytes);
  }
  for (const Loop& loop : loops) {
    const std::int64_t last = (loop.count - 1) * loop.stride;
    (last < 0 ? begin : end) += last;
  }
  return {begin, end - begin};
}

void Layout::shift(std::int64_t offset) {
  for (Run& run : runs) run.offset += offset;
}

bool Layout::append(const Run& run) {
  if (run.bytes == 0) return true;
  if (!runs.empty() && runs.back().offset + runs.back().bytes == run.offset) {
    runs.back().bytes += run.bytes;
    return true;
  }
  if (runs.size() == kMaxRuns) return false;
  runs.push_back(run);
  return true;
}

bool Layout::unroll() {
  std::size_t total = runs.size();
  for (const Loop& loop : loops) {
    if (static_cast<std::uint64_t>(loop.count) > kMaxRuns / total) return false;
    total *= static_cast<std::size_t>(loop.count);
  }
  for (; !loops.empty(); loops.pop_back()) {  // innermost first
    Layout unrolled;
    for (std::int64_t i = 0; i < loops.back().count; ++i) {
      for (const Run& run : runs) {
        if (!unrolled.append(Run{run.offset + i * loops.back().stride, run.bytes})) return false;
      }
    }
    runs = std::move(unrolled.runs);
  }
  return true;
}

bool Layout::append(const Layout& other, std::int64_t offset) {
  if (other.runs.empty()) return true;
  if (runs.empty()) {
    *this = other;
    shift(offset);
    return true;
  }
  if (!unroll()) return false;
  Layout more = other;
  if (!more.unroll()) return false;
  for (const Run& run : more.runs) {
    if (!append(Run{run.offset + offset, run.bytes})) return false;
  }
  return true;
}

std::optional<Layout> repeat(Layout layout, std::int64_t count, std::int64_t stride) {
  if (count == 1) return layout;
  if (count == 0 || layout.runs.empty()) return Layout{};
  if (layout.single_run() && layout.runs[0].bytes == stride) {
    layout.runs[0].bytes *= count;
    return layout;
  }
  if (layout.loops.size() == Layout::kMaxLoops) return std::nullopt;
  layout.loops.insert(layout.loops.begin(), Loop{count, stride});
  return layout;
}

void pack(const Layout& layout, std::int64_t elements, std::int64_t extent, const void* typed,
          void* packed) {
  move<Way::kPack>(layout, elements, extent, reinterpret_cast<Address>(typed),
                   static_cast<std::byte*>(packed));
}

void unpack(const Layout& layout, std::int64_t elements, std::int64_t extent, const void* packed,
            void* typed) {
  move<Way::kUnpack>(layout, elements, extent, reinterpret_cast<Address>(typed),
                     const_cast<std::byte*>(static_cast<const std::byte*>(packed)));
}

}  // namespace carillon::shim
