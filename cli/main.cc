// SPDX-License-Identifier: Apache-2.0
//
// carillon, the command: finds the subcommand and runs it.
#include <array>
#include <cstdio>
#include <exception>
#include <string>

#include "carillon/carillon.h"
#include "command.h"
#include "support/failure.h"

namespace carillon::cli {
namespace {

struct Command {
  const char* name;
  const char* summary;
  const char* example;  // the end of its --help
  Action (*define)(CLI::App&);
};

constexpr std::array kCommands = {
    Command{"run", "run an MPI program with carillon's collectives",
            "carillon run -n 4 ./app --its-own-option\n"
            "  carillon run -n 4 python3 program.py",
            define_run},
    Command{"exec", "become an MPI program with carillon's collectives, under your own launcher",
            "mpirun -n 4 carillon exec ./app\n  srun carillon exec ./app", define_exec},
    Command{"bench", "measure collectives, native and with carillon, side by side",
            "carillon bench allreduce bcast -n 2 --sizes 8,65536 --mpi openmpi", define_bench},
    Command{"demo", "run a small program with its own MPI, then with carillon, and compare",
            "carillon demo -n 4", define_demo},
    Command{"list", "list the algorithms", "carillon list allreduce", define_list},
    Command{"show", "print one rank's schedule",
            "carillon show allreduce.recursive_doubling --ranks 5 --rank 2 --bytes 64",
            define_show},
    Command{"verify", "prove algorithms correct",
            "carillon verify --ranks 1-24\n  carillon verify allreduce.degree_k:k=4 --ranks 100",
            define_verify},
    Command{"info", "show version, settings, MPIs and machine", "carillon info --config",
            define_info},
};

int run(int argc, char** argv) {
  CLI::App app("carillon: the collectives of an MPI program, faster, without touching it",
               "carillon");
  app.set_version_flag("--version", std::string("carillon ") + crl_version());
  app.require_subcommand(1);
  app.footer("carillon COMMAND --help says more, with an example.");
  std::array<Action, kCommands.size()> actions;
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    CLI::App* const command = app.add_subcommand(kCommands[i].name, kCommands[i].summary);
    command->footer(std::string("Example:\n  ") + kCommands[i].example);
    actions[i] = kCommands[i].define(*command);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "carillon: %s\nTry carillon%s%s --help.\n", error.what(),
                 app.get_subcommands().empty() ? "" : " ",
                 app.get_subcommands().empty() ? ""
                                               : app.get_subcommands()[0]->get_name().c_str());
    return 2;
  }
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    if (app.got_subcommand(kCommands[i].name)) return actions[i]();
  }
  return 2;
}

}  // namespace
}  // namespace carillon::cli

int main(int argc, char** argv) {
  try {
    return carillon::cli::run(argc, argv);
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
