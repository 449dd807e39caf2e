// SPDX-License-Identifier: Apache-2.0
//
// fft3d's transforms on the ranks of this job: every number of small grids, of either method, is
// what the sum of the definition says. The sums are added up here, without FFTW.
#include <mpi.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "check.h"
#include "field.h"
#include "options.h"
#include "transform.h"

namespace fft3d {
namespace {

using Wide = std::complex<double>;

int g_rank = 0, g_ranks = 0, g_failures = 0;

void fail(const std::string& what) {
  if (++g_failures <= 5) std::fprintf(stderr, "rank %d: %s\n", g_rank, what.c_str());
}

std::string name(const Decomposition& d, const Method& method, size_t real_bytes) {
  std::string text;
  for (const long length : d.points()) text += std::to_string(length) + " ";
  text += d.complex_field() ? "complex " : "real ";
  text += "of " + std::to_string(real_bytes) + " bytes, ranks " + std::to_string(d.grid()[0]);
  text += "x" + std::to_string(d.grid()[1]) + ", ";
  if (!method.overlapped) return text + "blocking";
  return text + std::to_string(method.slices) + " slices, window " + std::to_string(method.window) +
         ", tests " + std::to_string(method.tests);
}

// The definition, one axis after the other, of the whole grid in the order 0 1 2.
std::vector<Wide> slow_spectrum(const Shape& n, bool complex_field) {
  const Layout layout(whole_box(n), {0, 1, 2});
  std::vector<Wide> values(whole_box(n).volume());
  for_each_point(n, layout, [&](long offset, std::uint64_t place) {
    double real = 0;
    set_number(place, real);
    values[offset] = real;
    if (complex_field) set_number(place, values[offset]);
  });
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<Wide> sums(values.size());
    for_each_point(n, layout, [&](long offset, std::uint64_t) {
      const long stride = layout.stride(axis), k = offset / stride % n[axis];
      for (long j = 0; j < n[axis]; ++j) {
        const double turn = static_cast<double>(j * k % n[axis]) / static_cast<double>(n[axis]);
        sums[offset] +=
            values[offset + (j - k) * stride] * std::polar(1.0, -2 * std::numbers::pi * turn);
      }
    });
    values = sums;
  }
  return values;
}

// As long as sums of so many numbers of about 1 may be wrong, and by far less than a number.
template <class Real>
double tolerance(const Shape& n) {
  return 64 * std::numeric_limits<Real>::epsilon() *
         std::sqrt(static_cast<double>(whole_box(n).volume()));
}

template <class Real>
class Trial {
 public:
  Trial(const Decomposition& decomposition, const Communicators& communicators,
        const std::vector<Wide>& expected)
      : decomposition_(decomposition),
        communicators_(communicators),
        expected_(expected),
        workspace_(decomposition, communicators.rank(), false) {}

  void forward_and_backward(const Method& method) {
    name_ = name(decomposition_, method, sizeof(Real));
    Transform<Real> transform(decomposition_, communicators_, method, FFTW_ESTIMATE, workspace_);
    const Layout& field = workspace_.field_layout();
    if (decomposition_.complex_field()) {
      fill(decomposition_.points(), field, workspace_.complex_field());
    } else {
      fill(decomposition_.points(), field, workspace_.real_field());
    }
    Times times;
    transform.run(Direction::kForward, times);
    compare_spectrum();
    transform.run(Direction::kBackward, times);
    if (decomposition_.complex_field()) {
      compare_field(workspace_.complex_field());
    } else {
      compare_field(workspace_.real_field());
    }
  }

 private:
  void compare_spectrum() {
    const Layout whole(whole_box(decomposition_.points()), {0, 1, 2});
    const Layout& mine = workspace_.spectrum_layout();
    const Box& box = mine.box();
    for (long i = box.axis[0].begin; i < box.axis[0].end; ++i) {
      for (long j = box.axis[1].begin; j < box.axis[1].end; ++j) {
        for (long k = box.axis[2].begin; k < box.axis[2].end; ++k) {
          const Wide is = workspace_.spectrum()[mine.offset(Shape{i, j, k})];
          const double error = std::abs(is - expected_[whole.offset(Shape{i, j, k})]);
          if (!(error <= tolerance<Real>(decomposition_.points()))) {
            fail(name_ + ": forward is off by " + std::to_string(error) + " at " +
                 std::to_string(i) + " " + std::to_string(j) + " " + std::to_string(k));
          }
        }
      }
    }
  }

  template <class Value>
  void compare_field(const Value* values) {
    const auto all = static_cast<double>(whole_box(decomposition_.points()).volume());
    for_each_point(decomposition_.points(), workspace_.field_layout(),
                   [&](long offset, std::uint64_t n) {
                     Value should;
                     set_number(n, should);
                     const double error = std::abs(Wide(values[offset]) / all - Wide(should));
                     if (!(error <= tolerance<Real>(decomposition_.points()))) {
                       fail(name_ + ": backward is off by " + std::to_string(error) + " at " +
                            std::to_string(n));
                     }
                   });
  }

  const Decomposition& decomposition_;
  const Communicators& communicators_;
  const std::vector<Wide>& expected_;
  Workspace<Real> workspace_;
  std::string name_;
};

// The parts of all ranks are the whole grid, each point once, whichever axis is whole.
void check_decomposition(const Decomposition& d) {
  for (int whole = 0; whole < 3; ++whole) {
    std::vector<int> owners(whole_box(d.spectrum()).volume());
    const Layout all(whole_box(d.spectrum()), {0, 1, 2});
    for (int rank = 0; rank < d.ranks(); ++rank) {
      const Layout layout = d.layout(whole, rank);
      if (layout.box().axis[whole].length() != d.spectrum()[whole] && !layout.box().empty()) {
        fail("an axis is not whole");
      }
      for_each_point(d.spectrum(), layout, [&](long, std::uint64_t n) { ++owners[n]; });
    }
    for (const int owner : owners) {
      if (owner != 1) fail("a point has " + std::to_string(owner) + " owners");
    }
  }
}

// The check must notice a single number that is wrong, or that is none, on any rank.
template <class Real>
void check_a_lie(const Decomposition& decomposition, Check<Real> check, int liar, bool forward,
                 Real lie) {
  const Layout field_layout = decomposition.field(g_rank);
  std::vector<std::complex<Real>> spectrum = check.spectrum();
  std::vector<std::complex<Real>> field(field_layout.box().volume());
  fill(decomposition.points(), field_layout, field.data());
  for (auto& value : field) value *= static_cast<Real>(whole_box(decomposition.points()).volume());
  auto& damaged = forward ? spectrum : field;
  int lies = 0;
  if (g_rank == liar && !damaged.empty()) {
    lies = 1;
    damaged[damaged.size() / 2] += lie;
  }
  MPI_Bcast(&lies, 1, MPI_INT, liar, MPI_COMM_WORLD);
  check.after_forward(spectrum.data());
  check.after_backward(field.data());
  if (check.verdict().passed() != (lies == 0)) fail("the check does not see what is wrong");
}

template <class Real>
void check_the_check(const Decomposition& decomposition) {
  const Check<Real> check(decomposition, MPI_COMM_WORLD);
  for (const bool forward : {false, true}) {
    for (const int liar : {0, g_ranks - 1}) {
      check_a_lie<Real>(decomposition, check, liar, forward, static_cast<Real>(0.1));
      check_a_lie<Real>(decomposition, check, liar, forward,
                        std::numeric_limits<Real>::quiet_NaN());
    }
  }
}

// Blocking in one precision, overlapped in the other, in turn. Where ranks share cores an exchange
// takes long: larger jobs take every third case, others for other numbers of ranks.
int g_case = 0;

void check_grid(const Shape& points, bool complex_field, const ProcessGrid& grid) {
  ++g_case;
  if (g_ranks > 3 && g_case % 3 != g_ranks % 3) return;
  const Decomposition decomposition(points, complex_field, grid);
  check_decomposition(decomposition);
  const Communicators communicators(MPI_COMM_WORLD, decomposition);
  const std::vector<Wide> expected = slow_spectrum(points, complex_field);
  Trial<double> wide(decomposition, communicators, expected);
  Trial<float> narrow(decomposition, communicators, expected);
  // More slices than planes; one at a time; all at once; with tests.
  const Method overlapped[] = {
      {true, 4, 2, 0}, {true, 100, 3, 2}, {true, 3, 1, 0}, {true, 5, 5, 1}};
  wide.forward_and_backward(g_case % 2 == 0 ? Method{} : overlapped[g_case % 4]);
  narrow.forward_and_backward(g_case % 2 == 1 ? Method{} : overlapped[g_case % 4]);
}

void run() {
  // Even, odd, prime, one plane, one line, fewer planes than ranks.
  const Shape grids[] = {{8, 6, 4}, {5, 7, 3}, {1, 13, 2}, {9, 1, 5}, {3, 4, 1}, {1, 1, 1}};
  const ProcessGrid squarest = squarest_grid(g_ranks), slabs{g_ranks, 1};
  std::vector<ProcessGrid> process_grids = {slabs};
  if (g_ranks > 1) process_grids.push_back({1, g_ranks});
  if (squarest[1] > 1) process_grids.push_back(squarest);
  if (squarest[1] > 1 && squarest[0] != squarest[1]) {
    process_grids.push_back({squarest[1], squarest[0]});
  }
  for (const ProcessGrid& process_grid : process_grids) {
    for (const Shape& points : grids) {
      check_grid(points, false, process_grid);
      check_grid(points, true, process_grid);
    }
    ++g_case;  // so that the next one's meet other methods
  }
  check_the_check<double>(Decomposition({4, 3, 2}, true, {g_ranks, 1}));
  check_the_check<float>(Decomposition({2, 3, 4}, true, squarest_grid(g_ranks)));
}

}  // namespace
}  // namespace fft3d

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &fft3d::g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &fft3d::g_ranks);
  fft3d::run();
  MPI_Allreduce(MPI_IN_PLACE, &fft3d::g_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return fft3d::g_failures == 0 ? 0 : 1;
}
