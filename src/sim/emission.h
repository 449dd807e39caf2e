// SPDX-License-Identifier: Apache-2.0
//
// Emission on demand: the parts that ranks run, emitted when they are needed. A short schedule is
// emitted whole when its rank begins; of a long one, made of a loop over the ranks, each strand has
// a window of a few steps at a time. Where ranks are alike (Symmetry) a class is emitted once, and
// its parts name peers relative to the rank.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/stamped_map.h"
#include "schedule/builder.h"
#include "sim/part.h"
#include "sim/sim.h"

namespace carillon::sim {

/// Which of its schedules a rank is at, and what it has learned from those before (lessons.h).
struct Stage {
  std::int32_t number = 0;
  std::span<const std::int64_t> learned = {};
};

/// A strand's part, and the positions of the schedule that come after it.
struct StrandParts {
  Part part;
  std::int64_t next = 0, last = 0;
};

class Emission {
 public:
  /// Whether ranks that are alike are to share their parts.
  enum class Sharing : std::uint8_t { kNever, kWhereAlike };
  Emission(const Job& job, Compiler* compiler, Sharing sharing = Sharing::kNever);

  /// Decides between whole and windows; the same for all ranks, as their messages must match.
  Status prepare(const Options& options);
  /// As Options has it; for schedules that are emitted whole without being prepared.
  void stop_if(const std::function<bool()>& stops) { builder_.stop_if(stops); }
  /// As the job has it.
  [[nodiscard]] const Local& local_of(Rank rank) const {
    return job_.locals.empty() ? job_.call.local : job_.locals[static_cast<std::size_t>(rank)];
  }
  /// The rank's strands and their first parts. Stages are emitted whole. `known`: the rank's class,
  /// from class_of; 0: it has not been asked for.
  Status begin(Rank rank, const Local& local, Stage stage, std::uint32_t known,
               std::vector<StrandParts>* strands);
  /// Whether another stage comes after the one that has been begun last.
  [[nodiscard]] bool goes_on() const { return builder_.built().learned.length > 0; }
  /// The strand's next part that has steps; none, and next == last, at its end.
  Status advance(Rank rank, const Local& local, StrandParts* strand);
  void give_back(Part* part);
  /// Whether parts are shared; then the rank's schedule need not be kept until something happens to
  /// it if it is one strand that begins with waiting for a message.
  [[nodiscard]] bool shares() const { return shares_; }
  [[nodiscard]] bool begins_with_wait(std::uint32_t known) const {
    return classes_[known - 1].begins_with_wait;
  }
  /// The number of the rank's class, from 1 on. Only if parts are shared.
  std::uint32_t class_of(Rank rank, Status* status);

 private:
  struct Class {
    bool known = false;
    std::vector<StrandParts> strands;  // without windows their parts, too
    bool begins_with_wait = false;
    std::unordered_map<std::int64_t, StrandParts> windows;  // by their first position
  };

  Status emit(Rank rank, const Local& local, Window window);
  Status begin_own(Rank rank, const Local& local, Stage stage, std::vector<StrandParts>* strands);
  Status find_strands(Rank rank, const Local& local, std::vector<StrandParts>* strands);
  Status advance_own(Rank rank, const Local& local, StrandParts* strand);
  Status emit_window(Rank rank, const Local& local, StrandParts* strand);
  std::uint32_t number_of(Rank rank);
  [[nodiscard]] Window window_of(const StrandParts& strand) const;
  void make_relative(Rank rank, const Part& part) const;

  const Job& job_;
  Call call_;
  Compiler& compiler_;
  Builder builder_;
  Compiler::Rules rules_;
  bool shares_;
  bool shares_nodes_;                  // several ranks of one
  StampedMap<std::uint32_t> numbers_;  // of classes, from 1 on
  std::vector<Class> classes_;
  bool windows_ = false;
  std::int64_t window_positions_ = 1;
};

}  // namespace carillon::sim
