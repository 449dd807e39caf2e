// SPDX-License-Identifier: Apache-2.0
#include "program_text.h"

#include <cmath>
#include <map>

#include "messages.h"

namespace fft3d {

namespace {

// "8x3,0": values, and how often each comes.
std::string bytes_text(const std::vector<int>& counts, long point_bytes) {
  std::string text;
  for (size_t i = 0; i < counts.size();) {
    size_t end = i + 1;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(counts[i] * point_bytes);
    if (end > i + 1) text += "x" + std::to_string(end - i);
    i = end;
  }
  return text;
}

// "0-3,7" of ranks in their order.
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (end > i + 1) text += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

// Calls that ranks have in common are written once.
class Calls {
 public:
  const std::string& name_of(const std::string& call) {
    const auto [found, is_new] = names_.try_emplace(call, "e" + std::to_string(names_.size()));
    if (is_new) text_ += "call " + found->second + " " + call + "\n";
    return found->second;
  }
  const std::string& text() const { return text_; }

 private:
  std::map<std::string, std::string> names_;
  std::string text_;
};

// What one rank does: the order of Stage::run.
class RankSteps {
 public:
  RankSteps(const Options& options, const Decomposition& decomposition, int rank, Calls& calls)
      : options_(options), decomposition_(decomposition), rank_(rank), calls_(calls) {}

  std::string iteration() {
    if (options_.forward) {
      add("do barrier");
      stage(2, 1, true, false);
      stage(1, 0, true, true);
    }
    if (options_.backward) {
      add("do barrier");
      stage(0, 1, true, true);
      stage(1, 2, false, true);
    }
    end_computation();
    return text_;
  }

 private:
  void add(const std::string& step) {
    end_computation();
    text_ += step + "\n";
  }

  // Computations that follow one another are one.
  void end_computation() {
    const long ns = std::lround(computed_s_ * 1e9);
    if (ns > 0) text_ += "compute " + std::to_string(ns) + "\n";
    computed_s_ = 0;
  }

  void compute_lines(int axis, const Box& box) {
    if (box.empty()) return;
    const bool real = axis == 2 && !options_.complex_field;
    const auto length = static_cast<double>(decomposition_.points()[axis]);
    const long lines = box.volume() / box.axis[axis].length();
    const double each = (real ? 2.5 : 5) * length * std::log2(length);
    const double flops = each * static_cast<double>(lines);
    computed_s_ += flops / (options_.line_mflops * 1e6);
  }

  void copy(long points) {
    const auto bytes = static_cast<double>(points * point_bytes());
    computed_s_ += bytes / (options_.copy_mbps * 1e6);
  }

  long point_bytes() const { return options_.single_precision ? 8 : 16; }

  std::string exchange(const Slice& slice, bool along_row) {
    return calls_.name_of(std::string("alltoallv team=") + (along_row ? "row" : "column") +
                          " send=" + bytes_text(slice.out.counts, point_bytes()) +
                          " recv=" + bytes_text(slice.in.counts, point_bytes()));
  }

  void stage(int from, int to, bool lines_before, bool lines_after) {
    const bool along_row = from + to == 3;
    const Box before = decomposition_.box(from, rank_), after = decomposition_.box(to, rank_);
    if (decomposition_.grid()[along_row ? 1 : 0] == 1) {
      if (lines_before) compute_lines(from, before);
      if (!along_row) copy(before.volume());
      if (lines_after) compute_lines(to, after);
      return;
    }
    const int axis = 3 - from - to;
    const std::vector<Slice> slices =
        slices_of(decomposition_, from, to, rank_, options_.overlap ? options_.slices : 1);
    const auto give = [&](const Slice& slice) {
      const Box part = before.with(axis, slice.range);
      if (lines_before) compute_lines(from, part);
      copy(part.volume());
    };
    const auto take = [&](const Slice& slice) {
      const Box part = after.with(axis, slice.range);
      copy(part.volume());
      if (lines_after) compute_lines(to, part);
    };
    const int count = static_cast<int>(slices.size());
    const auto id = [&](int slice) { return " s" + std::to_string(slice % options_.window); };
    int oldest = 0;
    const auto finish_oldest = [&] {
      add("wait" + id(oldest));
      take(slices[oldest++]);
    };
    for (int newest = 0; newest < count; ++newest) {
      give(slices[newest]);
      const std::string call = exchange(slices[newest], along_row);
      if (!options_.overlap) {
        add("do " + call);
        take(slices[newest]);
        continue;
      }
      add("start " + call + " as" + id(newest));
      while (newest + 1 - oldest >= options_.window) finish_oldest();
    }
    while (options_.overlap && oldest < count) finish_oldest();
  }

  const Options& options_;
  const Decomposition& decomposition_;
  const int rank_;
  Calls& calls_;
  double computed_s_ = 0;
  std::string text_;
};

}  // namespace

std::string program_text(const Options& options) {
  const Decomposition decomposition(options.points, options.complex_field, options.process_grid);
  Calls calls;
  std::map<std::string, std::vector<int>> ranks_of;  // by what they do
  for (int rank = 0; rank < decomposition.ranks(); ++rank) {
    ranks_of[RankSteps(options, decomposition, rank, calls).iteration()].push_back(rank);
  }
  const std::string columns = std::to_string(decomposition.grid()[1]);
  std::string text = "carillon-program 1\nranks " + std::to_string(decomposition.ranks()) +
                     "\nteams row blocks " + columns + "\nteams column stride " + columns +
                     "\ncall barrier barrier\n" + calls.text();
  const int times = options.warmups + options.iterations;
  for (const auto& [steps, ranks] : ranks_of) {
    text += "rank " + ranks_text(ranks) + "\nrepeat " + std::to_string(times) + "\n" + steps;
    text += "end\n";
  }
  return text;
}

}  // namespace fft3d
