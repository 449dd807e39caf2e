// SPDX-License-Identifier: Apache-2.0
//
// A paper's figures of whole programs: fft3d's transforms, and one all-to-all beside a computation,
// in several ways, simulated.
#pragma once

#include <map>
#include <tuple>

#include "machine/sheet.h"
#include "predict/reproduce.h"

namespace carillon::predict {

/// How long programs take on the machine as it is: several figures are of the same ones. By way,
/// ranks and grid.
using KnownPrograms = std::map<std::tuple<std::size_t, Rank, std::int64_t>, double>;

/// The figure, and how far the numbers of Fft3d::varied move it. `on_progress`: after each program.
Result<Reproduced> reproduce_program(const Paper& paper, const machine::Sheet& sheet,
                                     const Figure& figure, KnownPrograms* known,
                                     const std::function<void()>& on_progress = {});

/// The program of fft3d on so many ranks, on a machine that packs as fast as it copies.
Result<program::Program> fft3d_program(const Fft3d& fft3d, const Way& way,
                                       const machine::Machine& machine, Rank ranks,
                                       std::int64_t grid);

}  // namespace carillon::predict
