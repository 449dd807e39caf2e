// SPDX-License-Identifier: Apache-2.0
//
// carillon, the command: finds the subcommand and runs it.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "carillon/carillon.h"
#include "command.h"
#include "support/command_line.h"
#include "support/failure.h"
#include "support/options.h"
#include "support/output.h"

namespace carillon::cli {
namespace {

struct Entry {
  const char* name;
  const char* summary;
  const char* example;  // the end of its --help
  Action (*define)(Command);
  bool takes_program = false;
};

constexpr std::array kEntries = {
    Entry{"run", "run an MPI program with carillon's collectives",
          "carillon run -n 4 ./app --its-own-option\n"
          "  carillon run -n 4 python3 program.py\n"
          "  carillon run -n 4 --record app.program ./app",
          define_run, true},
    Entry{"exec", "become an MPI program with carillon's collectives, under your own launcher",
          "mpirun -n 4 carillon exec ./app\n  srun carillon exec ./app", define_exec, true},
    Entry{"cluster", "run an MPI program, or a command per node, on a virtual cluster",
          "carillon cluster run --nodes 2 --ppn 2 --rate 200mbit ./app\n"
          "  carillon cluster run --shape 3,1,2 --native ./app\n"
          "  carillon cluster exec --nodes 2 -- hostname",
          define_cluster, true},
    Entry{"bench", "measure collectives, native and with carillon, side by side",
          "carillon bench allreduce bcast -n 2 --sizes 8,65536 --mpi openmpi", define_bench},
    Entry{"demo", "run a small program with its own MPI, then with carillon, and compare",
          "carillon demo -n 4", define_demo},
    Entry{"list", "list the algorithms", "carillon list allreduce", define_list},
    Entry{"show", "print one rank's schedule, or draw the team's",
          "carillon show allreduce.recursive_doubling --ranks 5 --rank 2 --bytes 64", define_show},
    Entry{"verify", "prove algorithms correct",
          "carillon verify --ranks 1-24\n  carillon verify allreduce.degree_k:k=4 --ranks 100\n"
          "  carillon verify bcast --ranks 17-32 --roots all",
          define_verify},
    Entry{"model", "say by closed forms what a collective costs on a machine",
          "carillon model allreduce --ranks 1024 --bytes 4096 --machine edr --best-k\n"
          "  carillon model bcast -a knomial:k=4,transfer=sendrecv -n 64 -b 8 -m clan_via\n"
          "  carillon model --machine edr --numbers",
          define_model},
    Entry{"sim", "simulate a collective, or a program, on a machine, from the schedules that run",
          "carillon sim allreduce --ranks 1024 --bytes 8 --machine edr\n"
          "  carillon sim bcast -a knomial:k=4 --machine fdr --ppn 16 --sweep ranks=16..4096 "
          "bytes=8,64K --csv\n"
          "  carillon sim --program app.program --machine edr --ppn 4 -a allreduce=ring\n"
          "  carillon sim --validate -n 2",
          define_sim},
    Entry{"reproduce", "put the figures that a paper published next to ours",
          "carillon reproduce gupta2003", define_reproduce},
    Entry{"calibrate", "measure this machine and write its machine file",
          "carillon calibrate --output mine.toml --title 'my desk'\n"
          "  carillon calibrate --cluster --output cluster.toml",
          define_calibrate},
    Entry{"switchd", "be a switch that reduces what programs send, in software",
          "carillon switchd --new-key switch.key\n"
          "  carillon switchd --key-file switch.key --listen 10.0.0.1 --json",
          define_switchd},
    Entry{"switch-tree", "time allreduces in trees of the switch's hardware, cycle by cycle",
          "carillon switch-tree --nodes 2,4096 --bytes 8\n"
          "  carillon switch-tree --nodes 16 --bytes 8,1K,64K,1M --link-ns 400 --json",
          define_switch_tree},
    Entry{"info", "show version, settings, MPIs and machine", "carillon info --config",
          define_info},
};

// What is wrong with the arguments, and where to look.
int refuse(const std::string& what, const std::string& command) {
  std::fprintf(stderr, "carillon: %s\nTry carillon%s%s --help.\n", what.c_str(),
               command.empty() ? "" : " ", command.c_str());
  return kWrongUse;
}

void add_footer(Command command, const Entry& entry) {
  const char* const own = command.subcommands().empty() ? "" : " COMMAND";
  command.footer(fmt::format(
      "{}Example{}:\n  {}",
      entry.takes_program
          ? fmt::format("carillon {}{} [OPTIONS] [--] PROGRAM ARGS...\n\n", entry.name, own)
          : std::string(),
      std::string_view(entry.example).find('\n') == std::string_view::npos ? "" : "s",
      entry.example));
}

// Moves the name of the command's own subcommand, if there is one in front, from `rest` to `names`.
Command enter_subcommand(Command command, Arguments* rest, Arguments* names) {
  for (const Command nested : command.subcommands()) {
    if (rest->empty() || nested.name() != rest->front()) continue;
    names->push_back(rest->front());
    rest->erase(rest->begin());
    return nested;
  }
  return command;
}

// What stands on the command line: a command and what it does.
struct Chosen {
  const Entry* entry = nullptr;
  Command command;
  Action action;
};

// Does what stands on the command line of `chosen`: its own options, and the program that it takes.
int run_chosen(CommandLine& line, const Chosen& chosen, Arguments own) {
  Arguments names{chosen.entry->name}, program;
  const Command leaf = enter_subcommand(chosen.command, &own, &names);
  if (!leaf.subcommands().empty() && !own.empty() && !own[0].starts_with('-')) {
    return refuse(fmt::format("there is no command {} {}", names[0], own[0]), names[0]);
  }
  try {
    const bool takes_program = chosen.entry->takes_program && leaf.subcommands().empty();
    if (takes_program) program = cut_program(leaf, &own);
    own.insert(own.begin(), names.begin(), names.end());
    if (!line.parse(std::move(own))) return 0;
    return chosen.action(program);
  } catch (const WrongArguments& error) {
    return refuse(error.what(), shell_words(names));
  } catch (const Failure& failure) {
    if (failure.exit_status != kWrongUse) throw;
    return refuse(failure.what(), shell_words(names));
  }
}

int run_command(Arguments arguments) {
  CommandLine line("carillon",
                   "carillon: the collectives of an MPI program, faster, without touching it",
                   std::string("carillon ") + crl_version());
  Command top = line.top();
  top.require_subcommand();
  top.footer("carillon COMMAND --help says more, with an example.");
  if (arguments.empty()) return refuse("which command?", "");
  std::optional<Chosen> chosen;
  for (const Entry& entry : kEntries) {
    const Command command = top.subcommand(entry.name, entry.summary);
    Action action = entry.define(command);
    add_footer(command, entry);
    if (arguments[0] == entry.name) chosen = {&entry, command, std::move(action)};
  }
  if (!chosen && !arguments[0].starts_with('-')) {
    return refuse("there is no command " + arguments[0], "");
  }
  if (chosen) return run_chosen(line, *chosen, {arguments.begin() + 1, arguments.end()});
  try {
    if (!line.parse(std::move(arguments))) return 0;
  } catch (const WrongArguments& error) {
    return refuse(error.what(), "");
  }
  return refuse("which command?", "");
}

}  // namespace
}  // namespace carillon::cli

int main(int argc, char** argv) {
  namespace cli = carillon::cli;
  cli::open_standard_files();
  int status = 1;
  try {
    status = cli::run_command({argv + 1, argv + argc});
  } catch (const cli::Failure& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "carillon: %s\n", failure.what());
    status = failure.exit_status;
  } catch (const std::bad_alloc&) {
    std::fflush(stdout);
    std::fprintf(stderr, "carillon: %s\n", cli::kNoMemory);
  } catch (const std::system_error& error) {  // as where the current folder has been removed
    std::fflush(stdout);
    std::fprintf(stderr, "carillon: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "carillon: %s (a defect of carillon: please report it)\n", error.what());
    status = 70;
  }
  return cli::end_output(status);
}
