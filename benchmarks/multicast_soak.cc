// SPDX-License-Identifier: Apache-2.0
//
// multicast_soak: many broadcasts of mixed sizes and roots by reliable multicast, every byte of
// them checked. On the nodes of a cluster,
//   carillon cluster exec --nodes 4 --loss 1% -- build/bin/multicast_soak --broadcasts 100000
// or among processes of this machine,
//   build/bin/multicast_soak --local 4 --broadcasts 1000
// CARILLON_FAULT adds losses, duplicates, another order and wrong bits in each process.
#include <netdb.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

#include "nodes/bootstrap.h"
#include "support/job.h"
#include "support/multicast_job.h"
#include "support/multicast_play.h"
#include "transport/multicast/ud_carrier.h"
#include "transport/multicast/udp_carrier.h"
#include "transport/wrap/fault_carrier.h"

namespace carillon {
namespace {

using multicast::Member;

struct Options {
  std::size_t broadcasts = 1000;
  std::size_t most_bytes = 65536;
  std::uint32_t window = 256;
  std::uint64_t seed = 1;
  int local = 0;
  std::uint16_t port = 9100;
  bool one_root = false;
  std::string carrier = "udp", interface, node_0 = "node0";
};

// Three of five are short, one in fifty is of the longest.
std::vector<test::Broadcast> drawn_program(const Options& options, std::uint32_t members) {
  std::mt19937_64 random(options.seed);
  std::vector<test::Broadcast> program;
  for (std::size_t i = 0; i < options.broadcasts; ++i) {
    const std::uint64_t kind = random() % 50;
    const std::size_t most = kind == 0   ? options.most_bytes
                             : kind < 20 ? std::min<std::size_t>(8192, options.most_bytes)
                                         : std::min<std::size_t>(512, options.most_bytes);
    const auto root = static_cast<Member>(options.one_root ? 0 : random() % members);
    program.push_back({root, random() % (most + 1)});
  }
  return program;
}

Result<std::unique_ptr<multicast::Carrier>> open_carrier(const Options& options, int rank) {
  const char* const text = std::getenv("CARILLON_FAULT");
  auto faults = parse_faults(text != nullptr ? text : "");
  if (!faults.ok()) return faults.status();
  const std::string loopback = options.local > 0 ? "lo" : "";
  const std::string interface = options.interface.empty() ? loopback : options.interface;
  auto carrier = options.carrier == "ud" ? multicast::open_ud({.device = options.interface})
                                         : multicast::open_udp({.interface = interface});
  if (!carrier.ok() || !faults.value().any()) return carrier;
  faults.value().seed += static_cast<std::uint64_t>(rank);
  return wrap::with_faults(std::move(carrier.value()), faults.value());
}

void print(const multicast::Group& group, const std::vector<test::Broadcast>& program,
           double seconds) {
  std::size_t bytes = 0, missed_bytes = 0;
  for (const test::Broadcast& one : program) {
    bytes += one.bytes;
    if (one.root == group.config().member) missed_bytes += one.bytes;
  }
  const multicast::GroupCounters counters = group.counters();
  const double megabyte = 1e6;
  std::printf(
      "%s: %u members, %zu broadcasts, %.1f MB, %.2f s; goodput %.1f MB/s; window %u of %u bytes\n",
      group.carrier().name.c_str(), group.config().members, program.size(),
      static_cast<double>(bytes) / megabyte, seconds,
      static_cast<double>(bytes) / megabyte / seconds, group.config().window,
      group.config().payload_bytes);
  std::printf(
      "member 0: sent %lu packets, repairs %lu alone and %lu to all, asks %lu, full windows %lu;\n"
      "  received %lu packets (%.1f MB), duplicates %lu, early without room %lu, nacks %lu and %lu "
      "left unsaid, acks %lu, foreign or damaged %lu\n",
      counters.sent.packets, counters.sent.repairs, counters.sent.group_repairs, counters.sent.asks,
      counters.sent.window_full, counters.received.packets,
      static_cast<double>(bytes - missed_bytes) / megabyte, counters.received.duplicates,
      counters.received.no_room, counters.received.nacks, counters.received.suppressed,
      counters.received.acks, counters.foreign);
}

// Exit status: 0 if every byte was right.
int soak(const Options& options, const crl_oob_t& oob) {
  auto group = test::set_up(open_carrier(options, oob.rank), oob, {.window = options.window});
  if (!group.ok()) {
    std::fprintf(stderr, "multicast_soak: %s\n", group.status().to_string().c_str());
    return 1;
  }
  const auto program = drawn_program(options, static_cast<std::uint32_t>(oob.size));
  test::Part part(std::move(group.value()), program, 8);
  const auto start = test::steady_now();
  Status status;
  while (status.ok() && !part.done() && !part.failed()) {
    status = part.group().progress(test::steady_now());
    if (!part.step()) sched_yield();
  }
  if (part.failed()) status = part.failure();
  if (status.ok()) status = test::leave(part.group(), oob);
  if (!status.ok()) std::fprintf(stderr, "multicast_soak: %s\n", status.to_string().c_str());
  const double seconds = static_cast<double>(test::steady_now() - start) / 1e9;
  if (status.ok() && oob.rank == 0) print(part.group(), program, seconds);
  return status.ok() && !testing::Test::HasFailure() ? 0 : 1;
}

int soak_here(const Options& options) {
  test::Meeting meeting(options.local);
  constexpr int kHours = 3600;
  const auto body = [&](int rank) {
    if (soak(options, meeting.oob(rank)) == 0) return;
    std::fflush(nullptr);
    _exit(1);
  };
  for (const int status : test::run_processes(options.local, body, kHours)) {
    if (status != 0) return 1;
  }
  return 0;
}

// The node that CARILLON_NODE says, of CARILLON_NODES; all meet at node 0.
int soak_on_node(const Options& options) {
  const char* const node = std::getenv("CARILLON_NODE");
  const char* const nodes = std::getenv("CARILLON_NODES");
  if (node == nullptr || nodes == nullptr) {
    bench::give_up("which node is this? Run it by `carillon cluster exec`, or with --local");
  }
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (getaddrinfo(options.node_0.c_str(), nullptr, &hints, &found) != 0) {
    bench::give_up("the address of " + options.node_0 + " is not known");
  }
  auto address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  freeaddrinfo(found);
  address.sin_port = htons(options.port);
  const int rank = std::atoi(node);
  bench::Bootstrap bootstrap(rank, std::atoi(nodes), address,
                             rank == 0 ? bench::listen_at(&address) : bench::Socket());
  return soak(options, bootstrap.oob());
}

}  // namespace
}  // namespace carillon

int main(int argc, char** argv) {
  carillon::Options options;
  CLI::App app("Many broadcasts by reliable multicast, every byte checked", "multicast_soak");
  app.add_option("--broadcasts", options.broadcasts, "how many (1000)");
  app.add_option("--bytes", options.most_bytes, "of the longest (65536)");
  app.add_option("--window", options.window, "packets under way at most (256)");
  app.add_option("--seed", options.seed, "of sizes and roots (1)");
  app.add_option("--local", options.local, "so many processes here, over loopback");
  app.add_flag("--one-root", options.one_root, "all from member 0, instead of from anybody");
  app.add_option("--carrier", options.carrier, "udp or ud (udp)")
      ->check(CLI::IsMember({"udp", "ud"}));
  app.add_option("--interface", options.interface, "network interface, or RDMA device");
  app.add_option("--node-0", options.node_0, "where the nodes meet (node0)");
  app.add_option("--port", options.port, "and at which of its TCP ports (9100)");
  CLI11_PARSE(app, argc, argv);
  return options.local > 0 ? carillon::soak_here(options) : carillon::soak_on_node(options);
}
