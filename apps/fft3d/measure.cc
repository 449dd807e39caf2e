// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <algorithm>
#include <memory>

#include "field.h"
#include "transform.h"

namespace fft3d {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

std::vector<Method> methods_of(const Options& options) {
  const Method blocking{}, overlapped{true, options.slices, options.window, options.tests};
  if (options.compare) return {blocking, overlapped};
  return {options.overlap ? overlapped : blocking};
}

// One rank's runs.
template <class Real>
class Runs {
 public:
  Runs(const Options& options, MPI_Comm world)
      : options_(options),
        decomposition_(options.points, options.complex_field, options.process_grid),
        communicators_(world, decomposition_),
        workspace_(decomposition_, communicators_.rank(), options.alloc_mem) {
    const unsigned planner = options.estimate ? FFTW_ESTIMATE : FFTW_MEASURE;
    for (const Method& method : methods_of(options)) {
      transforms_.push_back(std::make_unique<Transform<Real>>(decomposition_, communicators_,
                                                              method, planner, workspace_));
    }
    if (options.check) check_.emplace(decomposition_, world);
  }

  Figures iterate(int method, bool overlapped) {
    Figures figures{};
    Times times;
    if (options_.forward) {
      fill_field();
      figures[kForward] = timed(method, Direction::kForward, times);
      if (check_) check_->after_forward(workspace_.spectrum());
    }
    if (options_.backward) {
      if (!options_.forward) fill_spectrum();
      figures[kBackward] = timed(method, Direction::kBackward, times);
      if (check_) check_field();
    }
    figures[kTotal] = figures[kForward] + figures[kBackward];
    figures[kTransform] = times.transform_s;
    figures[kPack] = times.pack_s;
    figures[kExchange] = times.exchange_s;
    figures[kUnpack] = times.unpack_s;
    if (overlapped && !options_.plain) {
      if (options_.forward) figures[kAlone] += alone(method, Direction::kForward);
      if (options_.backward) figures[kAlone] += alone(method, Direction::kBackward);
    }
    return figures;
  }

  std::optional<Verdict> verdict() const {
    if (!check_) return std::nullopt;
    return check_->verdict();
  }

 private:
  double timed(int method, Direction direction, Times& times) {
    MPI_Barrier(communicators_.world());
    const double begin_s = MPI_Wtime();
    transforms_[method]->run(direction, times);
    return MPI_Wtime() - begin_s;
  }

  double alone(int method, Direction direction) {
    MPI_Barrier(communicators_.world());
    const double begin_s = MPI_Wtime();
    transforms_[method]->exchange_alone(direction);
    return MPI_Wtime() - begin_s;
  }

  // Anew each time: a run overwrites its input.
  void fill_field() {
    const Layout& layout = workspace_.field_layout();
    if (options_.complex_field) {
      fill(options_.points, layout, workspace_.complex_field());
    } else {
      fill(options_.points, layout, workspace_.real_field());
    }
  }

  // With a check of what the field's spectrum is; otherwise any numbers do.
  void fill_spectrum() {
    if (check_) {
      std::copy(check_->spectrum().begin(), check_->spectrum().end(), workspace_.spectrum());
    } else {
      fill(decomposition_.spectrum(), workspace_.spectrum_layout(), workspace_.spectrum());
    }
  }

  void check_field() {
    if (options_.complex_field) {
      check_->after_backward(workspace_.complex_field());
    } else {
      check_->after_backward(workspace_.real_field());
    }
  }

  const Options& options_;
  const Decomposition decomposition_;
  const Communicators communicators_;
  Workspace<Real> workspace_;
  std::vector<std::unique_ptr<Transform<Real>>> transforms_;
  std::optional<Check<Real>> check_;
};

// All samples of this rank become the slowest rank's, or the mean over the ranks; on rank 0.
std::vector<Figures> over_ranks(const std::vector<Figures>& mine, MPI_Op op, MPI_Comm world) {
  std::vector<Figures> all(mine.size());
  MPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()) * kFigures, MPI_DOUBLE, op, 0,
             world);
  return all;
}

Figures medians(const std::vector<Figures>& samples, double scale) {
  Figures result{};
  for (int figure = 0; figure < kFigures; ++figure) {
    std::vector<double> values;
    values.reserve(samples.size());
    for (const Figures& sample : samples) values.push_back(sample[figure] * scale);
    result[figure] = median(values);
  }
  return result;
}

template <class Real>
Result measure_in(const Options& options, MPI_Comm world) {
  int ranks = 0;
  MPI_Comm_size(world, &ranks);
  Runs<Real> runs(options, world);
  const std::vector<Method> methods = methods_of(options);
  const int count = static_cast<int>(methods.size());
  std::vector<std::vector<Figures>> samples(count);
  for (int i = -options.warmups; i < options.iterations; ++i) {
    for (int turn = 0; turn < count; ++turn) {
      const int method = (turn + (i & 1)) % count;  // each is first as often as second
      const Figures figures = runs.iterate(method, methods[method].overlapped);
      if (i >= 0) samples[method].push_back(figures);
    }
  }
  Result result;
  std::vector<std::vector<Figures>> slowest(count);
  for (int i = 0; i < count; ++i) {
    MethodResult row{methods[i], {}, {}, {}, {}};
    slowest[i] = over_ranks(samples[i], MPI_MAX, world);
    row.slowest_s = medians(slowest[i], 1);
    row.mean_s = medians(over_ranks(samples[i], MPI_SUM, world), 1.0 / ranks);
    const bool exchanges = options.process_grid[0] > 1 || options.process_grid[1] > 1;
    if (methods[i].overlapped && !options.plain && exchanges) {
      const Figures& mean_s = row.mean_s;
      const double computing_s = mean_s[kTransform] + mean_s[kPack] + mean_s[kUnpack];
      row.overlap = std::max(0.0, 1 - mean_s[kExchange] / mean_s[kAlone]);
      row.overlap_limit = std::min(1.0, computing_s / mean_s[kAlone]);
    }
    result.methods.push_back(row);
  }
  if (options.compare) {
    std::vector<double> ratios;
    ratios.reserve(options.iterations);
    for (int i = 0; i < options.iterations; ++i) {
      ratios.push_back(slowest[0][i][kTotal] / slowest[1][i][kTotal]);
    }
    result.ratio = median(ratios);
  }
  result.verdict = runs.verdict();
  return result;
}

}  // namespace

Result measure(const Options& options, MPI_Comm world) {
  return options.single_precision ? measure_in<float>(options, world)
                                  : measure_in<double>(options, world);
}

}  // namespace fft3d
