// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes of a datatype lie: loops over runs of bytes, in the order in which the type
// lists them. Pure arithmetic, no MPI.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace carillon::shim {

struct Run {
  std::int64_t offset = 0, bytes = 0;
};

struct Loop {
  std::int64_t count = 0, stride = 0;  // stride in bytes
};

/// For every turn of all the loops (outermost first), the runs, moved by the turns' strides.
struct Layout {
  static constexpr std::size_t kMaxLoops = 8, kMaxRuns = 1 << 16;

  std::vector<Loop> loops;
  std::vector<Run> runs;

  /// Is it one run of bytes (or none)?
  [[nodiscard]] bool single_run() const { return loops.empty() && runs.size() <= 1; }
  [[nodiscard]] std::int64_t bytes() const;
  /// From the first byte to the last one.
  [[nodiscard]] Run span() const;
  /// Moves everything.
  void shift(std::int64_t offset);
  /// Appends a run, merged with the last one where they touch. False: too many runs.
  [[nodiscard]] bool append(const Run& run);
  /// Appends all of another layout, moved. False: too irregular.
  [[nodiscard]] bool append(const Layout& other, std::int64_t offset);

 private:
  /// Writes the loops out as runs. False: too many.
  [[nodiscard]] bool unroll();
};

/// visit(Run) for each run, in their order, until it says false.
template <typename Visit>
bool for_each_run(const Layout& layout, std::int64_t offset, Visit visit, std::size_t loop = 0) {
  if (loop == layout.loops.size()) {
    return std::all_of(layout.runs.begin(), layout.runs.end(), [&](const Run& run) {
      return visit(Run{run.offset + offset, run.bytes});
    });
  }
  for (std::int64_t i = 0; i < layout.loops[loop].count; ++i) {
    if (!for_each_run(layout, offset + i * layout.loops[loop].stride, visit, loop + 1)) {
      return false;
    }
  }
  return true;
}

/// `count` copies of a layout, `stride` apart. Nothing if it has too many loops.
std::optional<Layout> repeat(Layout layout, std::int64_t count, std::int64_t stride);

/// Copies `elements` elements, `extent` apart, into one packed run of bytes, and back.
void pack(const Layout& layout, std::int64_t elements, std::int64_t extent, const void* typed,
          void* packed);
void unpack(const Layout& layout, std::int64_t elements, std::int64_t extent, const void* packed,
            void* typed);

}  // namespace carillon::shim
