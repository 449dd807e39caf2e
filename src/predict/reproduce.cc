// SPDX-License-Identifier: Apache-2.0
#include "predict/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "predict/combinations.h"
#include "predict/programs.h"

namespace carillon::predict {
namespace {

using machine::Machine;
using machine::Number;
using machine::Sheet;

enum class By : std::uint8_t { kModel, kSimulation };

struct Time {
  std::int64_t ps = 0;
  std::int32_t k = 0;
};

// The figures of a paper on variants of its machine. The first failure is kept.
class Calculator {
 public:
  explicit Calculator(const Paper& paper) : paper_(paper) {}

  [[nodiscard]] const Status& status() const { return status_; }

  // What a figure comes to, and with which length and which k (0: none was looked for).
  struct Value {
    double value = 0;
    std::int64_t bytes = 0;
    std::int32_t k = 0;
  };
  // `by` model: by simulation all the same where there is no closed form, or none for that call.
  Value figure(const Machine& machine, const Figure& figure, By by) {
    Value most;
    for (const std::int64_t bytes : figure.lengths) {
      const Value each = figure_at(machine, figure, bytes, by);
      if (bytes == figure.lengths.front() || each.value > most.value) most = each;
    }
    return most;
  }

  // By closed forms alone.
  std::optional<double> modelled(const Machine& machine, const Figure& figure) {
    all_modelled_ = true;
    const double value = this->figure(machine, figure, By::kModel).value;
    return all_modelled_ ? std::optional(value) : std::nullopt;
  }

  // Sum of the squared deviations of the measured figures.
  double misfit(const Machine& machine) {
    double sum = 0;
    for (const Figure& each : paper_.figures) {
      if (!each.measured) continue;
      const double off = figure(machine, each, By::kModel).value - each.published;
      sum += off * off;
    }
    return sum;
  }

 private:
  static Machine as_pair_has_it(Machine machine, const Pair& pair) {
    if (pair.oversubscription_permille == 0) return machine;
    for (machine::Level& level : machine.topology.levels) {
      level.oversubscription_permille = pair.oversubscription_permille;
    }
    return machine;
  }

  Value figure_at(const Machine& given, const Figure& figure, std::int64_t bytes, By by) {
    const Pair& pair = paper_.pairs[figure.pair];
    const Machine machine = as_pair_has_it(given, pair);
    Question question{.choice = pair.ours,
                      .ranks = figure.ranks,
                      .bytes = bytes,
                      .ppn = figure.ppn,
                      .domains = figure.domains,
                      .late_ps = figure.late_ps};
    const Time best = pair.most_k > 0 ? with_best_k(machine, question, pair.most_k)
                                      : Time{.k = pair.ours.params.k};
    if (pair.most_k > 0) question.choice.params.k = best.k;
    Value value{.bytes = bytes, .k = pair.most_k > 0 ? best.k : 0};
    const bool known = pair.most_k > 0 && by == By::kModel;
    const auto ours = static_cast<double>(known ? best.ps : time_ps(machine, question, by));
    if (figure.quantity == Quantity::kGrowth) {
      question.ranks = figure.from_ranks;
      value.value = (ours - static_cast<double>(time_ps(machine, question, by))) / 1e6;
      return value;
    }
    question.choice = pair.base;
    const bool alone = figure.quantity == Quantity::kLatency;
    const auto base = alone ? 0.0 : static_cast<double>(time_ps(machine, question, by));
    if (alone) {
      value.value = ours / 1e6;
    } else if (figure.quantity == Quantity::kSpeedup) {
      value.value = ours > 0 ? base / ours : 0;
    } else {
      value.value = base > 0 ? 100 * (1 - ours / base) : 0;
    }
    return value;
  }

  // Closed forms are of nodes of one rank each.
  std::int64_t time_ps(const Machine& machine, const Question& question, By by) {
    if (by == By::kModel && question.ppn == 1 && question.late_ps == 0) {
      const Result<std::int64_t> time = modelled_ps(machine, question);
      if (time.ok()) return time.value();
    }
    all_modelled_ = false;
    Result<std::int64_t> time = simulated_ps(machine, question);
    if (time.ok()) return time.value();
    if (status_.ok()) status_ = time.status();
    return 0;
  }

  Time with_best_k(const Machine& machine, Question question, std::int32_t most) {
    const Algorithm::KRange& range = question.choice.algorithm->k;
    Time best{.ps = std::numeric_limits<std::int64_t>::max()};
    std::int32_t& k = question.choice.params.k;
    for (k = range.min; k <= std::min({most, range.max, std::max(question.ranks, range.min)});
         ++k) {
      const std::int64_t ps = time_ps(machine, question, By::kModel);
      if (ps < best.ps) best = {ps, k};
    }
    return best;
  }

  const Paper& paper_;
  Status status_;
  bool all_modelled_ = true;  // of what time_ps was asked for
};

Result<std::vector<Fitted>> fitted_numbers(const Paper& paper, const Sheet& sheet) {
  std::vector<Fitted> list;
  for (const std::string& name : paper.fitted) {
    const auto bad = [&](std::string_view why) {
      return Status(Code::kInvalidArgument, fmt::format("the paper's fit: {} of machine {} {}",
                                                        name, sheet.machine.name, why));
    };
    const Number* const number = sheet.find(name);
    if (number == nullptr) return bad("is not in its file");
    if (!number->estimate) return bad("has a source; only estimates can be fitted");
    if (!number->has_range()) return bad("has no range");
    list.push_back({*number, number->value});
  }
  return list;
}

void set_fitted(const std::vector<Fitted>& fitted, Machine* machine) {
  for (const Fitted& each : fitted) each.number.field->set_value(*machine, each.value);
}

// Over a grid of the ranges, then over finer ones around the best point. Of equal ones the first.
void fit(Calculator& calculator, const Machine& machine, std::vector<Fitted>* fitted) {
  if (fitted->empty()) return;
  constexpr int kSteps = 24, kZooms = 4;
  constexpr double kZoom = 8;
  std::vector<Fitted> best = *fitted;
  double least = std::numeric_limits<double>::infinity();
  double width = 1;  // of the grid, as a part of the range
  for (int zoom = 0; zoom < kZooms; ++zoom, width /= kZoom) {
    const std::vector<Fitted> middle = best;
    const auto at = [&](std::size_t i, int step) {
      const Number& number = middle[i].number;
      const double range = (number.max - number.min) * width;
      const double from = zoom == 0 ? number.min : middle[i].value - range / 2;
      return std::clamp(from + range * step / kSteps, number.min, number.max);
    };
    const int second_steps = fitted->size() > 1 ? kSteps : 0;
    for (int x = 0; x <= kSteps; ++x) {
      for (int y = 0; y <= second_steps; ++y) {
        std::vector<Fitted> trial = middle;
        trial[0].value = at(0, x);
        if (trial.size() > 1) trial[1].value = at(1, y);
        Machine variant = machine;
        set_fitted(trial, &variant);
        const double off = calculator.misfit(variant);
        if (off >= least) continue;
        least = off;
        best = trial;
      }
    }
  }
  *fitted = std::move(best);
}

// The extreme of a figure over the ranges of all numbers: each in turn to that end of its range
// that takes the figure further, until none does. Sign: 1 for the largest value, -1 for the least.
double extreme(Calculator& calculator, const Sheet& sheet, Machine machine, const Figure& figure,
               int sign) {
  constexpr int kRounds = 4;
  double best = sign * calculator.figure(machine, figure, By::kModel).value;
  bool moved = true;
  for (int round = 0; round < kRounds && moved; ++round) {
    moved = false;
    for (const Number& number : sheet.numbers) {
      if (!number.has_range() || number.field->section == "node") continue;
      for (const double end : {number.min, number.max}) {
        Machine variant = machine;
        number.field->set_value(variant, end);
        const double value = sign * calculator.figure(variant, figure, By::kModel).value;
        if (value <= best) continue;
        best = value;
        machine = variant;
        moved = true;
      }
    }
  }
  return sign * best;
}

Result<Reproduction> run_programs(
    const Paper& paper, const Sheet& sheet,
    const std::function<void(std::size_t, std::size_t)>& on_progress) {
  std::size_t done = 0;
  KnownPrograms known;
  Reproduction result;
  for (const Figure& figure : paper.figures) {
    Result<Reproduced> row = reproduce_program(paper, sheet, figure, &known, [&] {
      ++done;
      if (on_progress) on_progress(done, 0);
    });
    if (!row.ok()) return row.status();
    result.figures.push_back(row.value());
  }
  return result;
}

}  // namespace

double deviation(const Figure& figure, double ours) {
  return ours - std::clamp(ours, figure.published_min, figure.published_max);
}

Result<Reproduction> reproduce(const Paper& paper,
                               const std::function<void(std::size_t, std::size_t)>& on_progress) {
  Result<Sheet> loaded = machine::load_sheet(paper.machine);
  if (!loaded.ok()) return loaded.status();
  const Sheet& sheet = loaded.value();
  if (paper.fft3d) return run_programs(paper, sheet, on_progress);
  Result<std::vector<Fitted>> fitted = fitted_numbers(paper, sheet);
  if (!fitted.ok()) return fitted.status();
  if (!paper.candidates.empty()) return try_candidates(paper, sheet, on_progress);
  Reproduction result;
  result.fitted = std::move(fitted.value());
  Calculator calculator(paper);
  fit(calculator, sheet.machine, &result.fitted);
  Machine machine = sheet.machine;
  set_fitted(result.fitted, &machine);
  for (const Figure& figure : paper.figures) {
    const Pair& pair = paper.pairs[figure.pair];
    Reproduced row;
    const Calculator::Value ours = calculator.figure(machine, figure, By::kSimulation);
    row.ours = ours.value;
    row.bytes = ours.bytes;
    row.k = ours.k;
    const bool may_be_modelled = figure.ppn == 1 && figure.late_ps == 0 &&
                                 machine::find_model(pair.base.algorithm->id) != nullptr &&
                                 machine::find_model(pair.ours.algorithm->id) != nullptr;
    if (may_be_modelled) row.model = calculator.modelled(machine, figure);
    row.ours_min = row.ours_max = row.ours;
    if (!figure.unpublished) {
      row.ours_min = extreme(calculator, sheet, machine, figure, -1);
      row.ours_max = extreme(calculator, sheet, machine, figure, 1);
    }
    result.figures.push_back(row);
  }
  if (!calculator.status().ok()) return calculator.status();
  return result;
}

}  // namespace carillon::predict
