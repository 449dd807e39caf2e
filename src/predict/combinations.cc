// SPDX-License-Identifier: Apache-2.0
#include "predict/combinations.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "predict/vary.h"

namespace carillon::predict {
namespace {

using machine::Machine;
using machine::Number;

// What a call takes, and how much of it ranks spend copying, summed over them.
struct Spent {
  std::int64_t latency_ps = 0;
  sim::SumPs copy_ps = 0;
};

// Several candidates have the same base, several figures the same call.
class Simulations {
 public:
  /// On machines that differ in these numbers only.
  explicit Simulations(const std::vector<Number>& varied) : varied_(varied) {}

  Result<Spent> of(const Machine& machine, const Question& question) {
    std::vector<double> values;
    values.reserve(varied_.size());
    for (const Number& each : varied_) values.push_back(each.field->value(machine));
    const auto key = std::tuple(values, to_text(question.choice), question.ranks, question.bytes,
                                question.ppn, question.gather_entries);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const Result<sim::Report> report = simulated(machine, question);
    if (!report.ok()) return report.status();
    constexpr auto kCopy = static_cast<std::size_t>(sim::Activity::kCopy);
    return known_[key] = {report.value().latency_ps, report.value().activity_ps.at(kCopy)};
  }

 private:
  const std::vector<Number>& varied_;
  std::map<std::tuple<std::vector<double>, std::string, Rank, std::int64_t, Rank, std::int32_t>,
           Spent>
      known_;
};

double figure_of(const Figure& figure, const Spent& base, const Spent& ours) {
  const bool of_copies = figure.quantity == Quantity::kCopySaved;
  const auto before = static_cast<double>(of_copies ? base.copy_ps : base.latency_ps);
  const auto after = static_cast<double>(of_copies ? ours.copy_ps : ours.latency_ps);
  if (figure.quantity == Quantity::kLatency) return after / 1e6;
  if (figure.quantity == Quantity::kSpeedup) return after > 0 ? before / after : 0;
  return before > 0 ? 100 * (1 - after / before) : 0;
}

// The paper's figures by its candidates, on variants of its machine. The first failure is kept.
class Combinations {
 public:
  Combinations(const Paper& paper, const machine::Sheet& sheet, const std::vector<Number>& varied,
               const std::function<void(std::size_t, std::size_t)>& on_progress)
      : paper_(paper),
        sheet_(sheet),
        varied_(varied),
        on_progress_(on_progress),
        simulations_(varied),
        steps_(paper.candidates.size() + tries(paper, varied.size())) {}

  [[nodiscard]] const Status& status() const { return status_; }

  Tried try_one(const Candidate& candidate) {
    Tried tried;
    double squares = 0;
    for (const Figure& figure : paper_.figures) {
      tried.ours.push_back(value(sheet_.machine, candidate, figure));
      const double off = deviation(figure, tried.ours.back());
      squares += off * off;
    }
    tried.deviation = std::sqrt(squares / static_cast<double>(paper_.figures.size()));
    count_step();
    return tried;
  }

  // `ours` is the figure by that candidate.
  Reproduced with_extremes(const Candidate& candidate, const Figure& figure, double ours) {
    Reproduced row{.ours = ours,
                   .model = {},
                   .ours_min = ours,
                   .ours_max = ours,
                   .bytes = figure.lengths.front()};
    if (varied_.empty()) return row;
    std::vector<Varied<Machine>> numbers;
    for (const Number& each : varied_) {
      const auto set = [field = each.field](double value, Machine* machine) {
        field->set_value(*machine, value);
      };
      numbers.push_back({each.min, each.max, set});
    }
    const auto value_on = [&](const Machine& machine) {
      const double there = value(machine, candidate, figure);
      count_step();
      return there;
    };
    const Extremes found = extremes(sheet_.machine, ours, numbers, value_on);
    row.ours_min = found.least;
    row.ours_max = found.most;
    return row;
  }

 private:
  // Of all figures by the closest candidate.
  static std::size_t tries(const Paper& paper, std::size_t varied) {
    return varied == 0 ? 0 : paper.figures.size() * tries_of_extremes(varied);
  }

  double value(const Machine& machine, const Candidate& candidate, const Figure& figure) {
    Question question{.choice = candidate.base,
                      .ranks = figure.ranks,
                      .bytes = figure.lengths.front(),
                      .ppn = candidate.ppn,
                      .gather_entries = candidate.gather_entries,
                      .whole_lists = true};
    const Spent base = spent(machine, question);
    question.choice = candidate.ours;
    return figure_of(figure, base, spent(machine, question));
  }

  Spent spent(const Machine& machine, const Question& question) {
    if (!status_.ok()) return {};
    const Result<Spent> result = simulations_.of(machine, question);
    if (result.ok()) return result.value();
    status_ = result.status();
    return {};
  }

  void count_step() {
    ++done_;
    if (on_progress_) on_progress_(done_, steps_);
  }

  const Paper& paper_;
  const machine::Sheet& sheet_;
  const std::vector<Number>& varied_;
  const std::function<void(std::size_t, std::size_t)>& on_progress_;
  Simulations simulations_;
  std::size_t done_ = 0, steps_;
  Status status_;
};

}  // namespace

Result<Reproduction> try_candidates(
    const Paper& paper, const machine::Sheet& sheet,
    const std::function<void(std::size_t, std::size_t)>& on_progress) {
  Result<std::vector<Number>> varied = varied_numbers(paper.varied, sheet);
  if (!varied.ok()) return varied.status();
  Reproduction result;
  result.varied = std::move(varied.value());
  Combinations combinations(paper, sheet, result.varied, on_progress);
  for (const Candidate& candidate : paper.candidates) {
    result.tried.push_back(combinations.try_one(candidate));
    if (!combinations.status().ok()) return combinations.status();
    const Tried& last = result.tried.back();
    if (last.deviation < result.tried[result.closest].deviation) {
      result.closest = result.tried.size() - 1;
    }
  }
  const Candidate& closest = paper.candidates[result.closest];
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    const double ours = result.tried[result.closest].ours[i];
    result.figures.push_back(combinations.with_extremes(closest, paper.figures[i], ours));
  }
  if (!combinations.status().ok()) return combinations.status();
  return result;
}

}  // namespace carillon::predict
