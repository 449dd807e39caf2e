// SPDX-License-Identifier: Apache-2.0
//
// carillon, the command: finds the subcommand and runs it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "carillon/carillon.h"
#include "command.h"
#include "support/failure.h"
#include "support/options.h"

namespace carillon::cli {
namespace {

struct Command {
  const char* name;
  const char* summary;
  const char* example;  // the end of its --help
  Action (*define)(CLI::App&);
  bool takes_program = false;
};

constexpr std::array kCommands = {
    Command{"run", "run an MPI program with carillon's collectives",
            "carillon run -n 4 ./app --its-own-option\n"
            "  carillon run -n 4 python3 program.py\n"
            "  carillon run -n 4 --record app.program ./app",
            define_run, true},
    Command{"exec", "become an MPI program with carillon's collectives, under your own launcher",
            "mpirun -n 4 carillon exec ./app\n  srun carillon exec ./app", define_exec, true},
    Command{"cluster", "run an MPI program, or a command per node, on a virtual cluster",
            "carillon cluster run --nodes 2 --ppn 2 --rate 200mbit ./app\n"
            "  carillon cluster run --shape 3,1,2 --native ./app\n"
            "  carillon cluster exec --nodes 2 -- hostname",
            define_cluster, true},
    Command{"bench", "measure collectives, native and with carillon, side by side",
            "carillon bench allreduce bcast -n 2 --sizes 8,65536 --mpi openmpi", define_bench},
    Command{"demo", "run a small program with its own MPI, then with carillon, and compare",
            "carillon demo -n 4", define_demo},
    Command{"list", "list the algorithms", "carillon list allreduce", define_list},
    Command{"show", "print one rank's schedule, or draw the team's",
            "carillon show allreduce.recursive_doubling --ranks 5 --rank 2 --bytes 64",
            define_show},
    Command{"verify", "prove algorithms correct",
            "carillon verify --ranks 1-24\n  carillon verify allreduce.degree_k:k=4 --ranks 100\n"
            "  carillon verify bcast --ranks 17-32 --roots all",
            define_verify},
    Command{"model", "say by closed forms what a collective costs on a machine",
            "carillon model allreduce --ranks 1024 --bytes 4096 --machine edr --best-k\n"
            "  carillon model bcast -a knomial:k=4,transfer=sendrecv -n 64 -b 8 -m clan_via\n"
            "  carillon model --machine edr --numbers",
            define_model},
    Command{"sim", "simulate a collective, or a program, on a machine, from the schedules that run",
            "carillon sim allreduce --ranks 1024 --bytes 8 --machine edr\n"
            "  carillon sim bcast -a knomial:k=4 --machine fdr --ppn 16 --sweep ranks=16..4096 "
            "bytes=8,64K --csv\n"
            "  carillon sim --program app.program --machine edr --ppn 4 -a allreduce=ring\n"
            "  carillon sim --validate -n 2",
            define_sim},
    Command{"reproduce", "put the figures that a paper published next to ours",
            "carillon reproduce gupta2003", define_reproduce},
    Command{"calibrate", "measure this machine and write its machine file",
            "carillon calibrate --output mine.toml --title 'my desk'\n"
            "  carillon calibrate --cluster --output cluster.toml",
            define_calibrate},
    Command{"switchd", "be a switch that reduces what programs send, in software",
            "carillon switchd --new-key switch.key\n"
            "  carillon switchd --key-file switch.key --listen 10.0.0.1 --json",
            define_switchd},
    Command{"switch-tree", "time allreduces in trees of the switch's hardware, cycle by cycle",
            "carillon switch-tree --nodes 2,4096 --bytes 8\n"
            "  carillon switch-tree --nodes 16 --bytes 8,1K,64K,1M --link-ns 400 --json",
            define_switch_tree},
    Command{"info", "show version, settings, MPIs and machine", "carillon info --config",
            define_info},
};

// What is wrong with the arguments, and where to look.
int refuse(const std::string& what, const std::string& command) {
  std::fprintf(stderr, "carillon: %s\nTry carillon%s%s --help.\n", what.c_str(),
               command.empty() ? "" : " ", command.c_str());
  return kWrongUse;
}

void add_footer(CLI::App& command, const Command& row) {
  const char* const own = command.get_subcommands({}).empty() ? "" : " COMMAND";
  command.footer(fmt::format(
      "{}Example{}:\n  {}",
      row.takes_program
          ? fmt::format("carillon {}{} [OPTIONS] [--] PROGRAM ARGS...\n\n", row.name, own)
          : std::string(),
      std::string_view(row.example).find('\n') == std::string_view::npos ? "" : "s", row.example));
}

// Moves the name of the command's own subcommand, if there is one in front, from `rest` to `names`.
CLI::App* enter_subcommand(CLI::App* command, Arguments* rest, Arguments* names) {
  for (CLI::App* const nested : command->get_subcommands({})) {
    if (rest->empty() || nested->get_name() != rest->front()) continue;
    names->push_back(rest->front());
    rest->erase(rest->begin());
    return nested;
  }
  return command;
}

int run(Arguments arguments) {
  CLI::App app("carillon: the collectives of an MPI program, faster, without touching it",
               "carillon");
  app.set_version_flag("--version", std::string("carillon ") + crl_version());
  app.require_subcommand(1);
  app.footer("carillon COMMAND --help says more, with an example.");
  if (arguments.empty()) return refuse("which command?", "");
  const Command* chosen = nullptr;
  Action action;
  for (const Command& row : kCommands) {
    CLI::App* const command = app.add_subcommand(row.name, row.summary);
    Action defined = row.define(*command);
    add_footer(*command, row);
    if (arguments[0] != row.name) continue;
    chosen = &row;
    action = std::move(defined);
  }
  if (chosen == nullptr && !arguments[0].starts_with('-')) {
    return refuse("there is no command " + arguments[0], "");
  }
  Arguments own(arguments.begin() + (chosen != nullptr ? 1 : 0), arguments.end());
  Arguments program, names;
  if (chosen != nullptr) {
    names.emplace_back(chosen->name);
    CLI::App* const leaf = enter_subcommand(app.get_subcommand(chosen->name), &own, &names);
    const bool takes_program = chosen->takes_program && leaf->get_subcommands({}).empty();
    if (takes_program) program = cut_program(*leaf, &own);
  }
  own.insert(own.begin(), names.begin(), names.end());
  std::reverse(own.begin(), own.end());  // as CLI11 wants them
  try {
    app.parse(std::move(own));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return refuse(error.what(), shell_words(names));
  }
  return action(program);
}

}  // namespace
}  // namespace carillon::cli

int main(int argc, char** argv) {
  try {
    return carillon::cli::run({argv + 1, argv + argc});
  } catch (const carillon::cli::Failure& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "carillon: %s\n", failure.what());
    return failure.exit_status;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "carillon: %s (a defect of carillon: please report it)\n", error.what());
    return 70;
  }
}
