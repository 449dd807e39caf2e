// SPDX-License-Identifier: Apache-2.0
//
// What every subcommand is: a function that declares its options on a CLI::App and returns the
// action to run once they are parsed. The action returns the exit status; `program` is the program
// and its arguments for the commands that take one, else empty.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "support/process.h"

namespace carillon::cli {

using Action = std::function<int(const Arguments& program)>;

// One per file of that name.
Action define_run(CLI::App& app);
Action define_exec(CLI::App& app);
Action define_cluster(CLI::App& app);
Action define_bench(CLI::App& app);
Action define_demo(CLI::App& app);
Action define_list(CLI::App& app);
Action define_show(CLI::App& app);
Action define_verify(CLI::App& app);
Action define_model(CLI::App& app);
Action define_sim(CLI::App& app);
Action define_reproduce(CLI::App& app);
Action define_calibrate(CLI::App& app);
Action define_switchd(CLI::App& app);
Action define_switch_tree(CLI::App& app);
Action define_info(CLI::App& app);

}  // namespace carillon::cli
