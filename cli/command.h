// SPDX-License-Identifier: Apache-2.0
//
// What every subcommand is: a function that declares its options on a Command and returns the
// action to run once they are parsed. The action returns the exit status; `program` is the program
// and its arguments for the commands that take one, else empty.
#pragma once

#include <functional>

#include "support/command_line.h"
#include "support/process.h"

namespace carillon::cli {

using Action = std::function<int(const Arguments& program)>;

// One per file of that name.
Action define_run(Command command);
Action define_exec(Command command);
Action define_cluster(Command command);
Action define_bench(Command command);
Action define_demo(Command command);
Action define_list(Command command);
Action define_show(Command command);
Action define_verify(Command command);
Action define_model(Command command);
Action define_sim(Command command);
Action define_reproduce(Command command);
Action define_calibrate(Command command);
Action define_switchd(Command command);
Action define_switch_tree(Command command);
Action define_info(Command command);

}  // namespace carillon::cli
