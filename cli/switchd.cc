// SPDX-License-Identifier: Apache-2.0
//
// carillon switchd: a switch that reduces what MPI programs send (switch/daemon), in software, or
// as hardware that Verilator runs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"
#include "command.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/switch_engine.h"
#include "switch/daemon/server.h"
#include "transport/aggregate/key_file.h"
#include "transport/aggregate/text.h"
#ifdef CARILLON_WITH_SWITCH_RTL
#include "switch/verilated/engine.h"
#endif

namespace carillon::cli {
namespace {

using aggregate::Endpoint, aggregate::Engine, aggregate::Server, aggregate::SwitchConfig;

struct SwitchdOptions {
  std::string listen = "0.0.0.0";
  std::string key_file;
  std::string new_key;
  std::uint32_t number = 0;
  std::uint32_t jobs = 1024;
  std::uint32_t groups = 1024;
  std::uint64_t memory_mib = 256;
  std::uint16_t operand_bytes = 0;
  std::int64_t idle_s = 600;
  std::string engine = kReferenceEngine;
  bool json = false;
};

Endpoint parse_listen(const std::string& text) {
  const auto at = aggregate::parse_endpoint(text);
  if (!at) fail("--listen {} is no IPv4 address with or without :PORT, as 10.0.0.1:27182", text);
  return *at;
}

void write_key(const std::string& file) {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail("the system gives no random bytes: {}", std::strerror(errno));
  }
  const UniqueFd out(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out.valid()) {
    fail("{} cannot be made: {}; choose another file", file, std::strerror(errno));
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  text += '\n';
  if (write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    (void)unlink(file.c_str());
    fail("{} cannot be written: {}", file, std::strerror(error));
  }
}

// Of packets that get through where it listens, if nobody says how long they may be.
std::uint16_t operand_bytes_of(const SwitchdOptions& options, const Endpoint& at) {
  constexpr std::uint16_t kWord = 8;
  if (options.operand_bytes % kWord != 0) {
    fail("--operand-bytes {} is no multiple of {}", options.operand_bytes, kWord);
  }
  if (options.operand_bytes != 0) return options.operand_bytes;
  const std::uint16_t there = value_or_fail(aggregate::operand_bytes_at(at.ip));
  if (there == 0) fail("the MTU where --listen {} is leaves no room for operands", options.listen);
  return there;
}

SipKey read_key(const std::string& file) {
  const auto key = aggregate::read_key_file(file, "--key-file");
  if (!key.ok()) fail("{}", key.status().message());
  return key.value();
}

std::unique_ptr<Engine> make_engine([[maybe_unused]] const std::string& name,
                                    const SwitchConfig& config) {
#ifdef CARILLON_WITH_SWITCH_RTL
  if (name == kRtlEngine) return std::make_unique<rtl::HardwareEngine>(config);
#endif
  return std::make_unique<aggregate::ReferenceEngine>(config);
}

Json statistics(const Server& server) {
  Json packets, calls;
  aggregate::visit_counters(server.model().counters(),
                            [&](const char* name, std::uint64_t value) { packets[name] = value; });
  const auto& counts = server.counts();
  calls = {{"received", counts.received},
           {"sent", counts.sent},
           {"unsent", counts.unsent},
           {"receive_calls", counts.receive_calls},
           {"send_calls", counts.send_calls}};
  return {{"cycles", server.engine().cycles()},
          {"jobs", server.model().jobs()},
          {"groups", server.model().groups()},
          {"memory_bytes", server.model().memory_bytes()},
          {"packets", packets},
          {"datagrams", calls}};
}

void print_statistics(const Server& server, bool json) {
  const Json all = statistics(server);
  if (json) {
    std::puts(all.dump().c_str());
  } else {
    for (const char* const part : {"datagrams", "packets"}) {
      for (const auto& [name, value] : all[part].members()) {
        if (value != 0) fmt::print("{:>16}  {}\n", value.integer(), name);
      }
    }
    fmt::print("{:>16}  jobs\n{:>16}  groups\n", server.model().jobs(), server.model().groups());
  }
  std::fflush(stdout);
}

// SIGINT and SIGTERM end it, SIGUSR1 has it print its statistics.
UniqueFd take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd.valid()) fail("signalfd: {}", std::strerror(errno));
  return fd;
}

int run(const SwitchdOptions& options) {
  if (!options.new_key.empty()) {
    write_key(options.new_key);
    return 0;
  }
  require_engine(options.engine);
  const Endpoint at = parse_listen(options.listen);
  const SwitchConfig config = {.administrator = read_key(options.key_file),
                               .number = static_cast<std::uint16_t>(options.number),
                               .jobs = options.jobs,
                               .groups = options.groups,
                               .memory_bytes = options.memory_mib << 20,
                               .operand_bytes = operand_bytes_of(options, at)};
  const UniqueFd signals = take_signals();
  const auto server = value_or_fail(
      Server::open({.at = at, .idle_s = options.idle_s}, make_engine(options.engine, config)));
  const std::string listening = aggregate::text(server->at());
  if (options.json) {
    std::puts(Json{{"listening", listening}}.dump().c_str());
  } else {
    fmt::print("listening on {}\n", listening);
  }
  std::fflush(stdout);
  for (;;) {
    const Status status = server->serve(signals.get());
    if (!status.ok()) throw Failure(std::string(status.message()));
    signalfd_siginfo signal = {};
    if (read(signals.get(), &signal, sizeof signal) != sizeof signal) continue;
    print_statistics(*server, options.json);
    if (signal.ssi_signo != SIGUSR1) return 0;
  }
}

}  // namespace

Action define_switchd(Command command) {
  auto options = std::make_shared<SwitchdOptions>();
  command
      .option("--listen", options->listen,
              fmt::format("IPv4 address, and :PORT if it is not {}; port 0: any that is free",
                          aggregate::kUdpPort))
      .with_default();
  command.option("--key-file", options->key_file,
                 "file with the administrator's key; who has it may install jobs");
  command.option("--new-key", options->new_key, "make such a file, and end");
  command
      .option("--number", options->number,
              "of this switch, another one for each switch that may be the root of a tree")
      .in_range(0U, aggregate::kMaxNumber)
      .with_default();
  command.option("--jobs", options->jobs, "at a time, at most")
      .in_range(1U, 1U << 20)
      .with_default();
  command.option("--groups", options->groups, "of all jobs at a time, at most")
      .in_range(1U, 1U << 20)
      .with_default();
  command.option("--memory-mib", options->memory_mib, "for the packets of all groups, at most")
      .in_range(1U, 1U << 20)
      .with_default();
  command
      .option("--operand-bytes", options->operand_bytes,
              "longest operand of a packet, a multiple of 8; default: what the MTU where it "
              "listens has room for")
      .in_range(1U, aggregate::kMaxOperandBytes);
  command
      .option("--idle-s", options->idle_s,
              "free groups of which nothing has come for so many seconds")
      .in_range(1, 1 << 30)
      .with_default();
  command
      .option("--engine", options->engine,
              "what does the work: the reference, in software, or the switch's hardware, run "
              "cycle by cycle and compared with the reference")
      .one_of({kReferenceEngine, kRtlEngine})
      .with_default();
  command.flag("--json", options->json, "a line of JSON when it listens, and one when it ends");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
