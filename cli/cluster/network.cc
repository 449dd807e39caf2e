// SPDX-License-Identifier: Apache-2.0
#include "cluster/network.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cluster/node.h"
#include "cluster/shape.h"
#include "support/failure.h"
#include "support/process.h"

namespace carillon::cli {
namespace {

// A queue this long loses nothing that the nodes' own windows do not hold back.
constexpr const char* kQueue = "16mb";

std::string address(int node) { return fmt::format("10.0.{}.{}", node / 250, node % 250 + 1); }

// /usr/sbin is not on everybody's PATH.
std::string find_tool(const std::string& name, const char* package) {
  if (const auto found = find_in_path(name)) return found->string();
  for (const char* const folder : {"/usr/sbin/", "/sbin/"}) {
    if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
  }
  fail("a virtual cluster {}needs the program {} of {}; install it (Debian: apt-get install {})",
       name == "nft" ? "with loss " : "", name, package, package);
}

// Runs `command`, which reads `lines`, in the network of this process or of `node`.
void run_batch(const Arguments& command, const std::string& lines, pid_t node = 0) {
  const std::string& tool = command[0];
  const int input = memfd_create("batch", MFD_CLOEXEC);
  const auto size = static_cast<ssize_t>(lines.size());
  if (input < 0 || write(input, lines.data(), lines.size()) != size) {
    fail("cannot keep the commands for {}: {}", tool, std::strerror(errno));
  }
  lseek(input, 0, SEEK_SET);
  const pid_t child =
      spawn({.command = command, .node = node, .namespaces = kNetworkOnly, .input = input});
  close(input);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) fail("{} did not set up the network of the virtual cluster; see above", tool);
}

Arguments ip() { return {find_tool("ip", "iproute2"), "-batch", "-"}; }
Arguments tc() { return {find_tool("tc", "iproute2"), "-batch", "-"}; }
Arguments nft() { return {find_tool("nft", "nftables"), "-f", "-"}; }

// Drops what comes in, of whatever protocol; ARP is none of these.
std::string lose(double share) {
  constexpr double kAll = 1e6;
  return fmt::format(
      "add table inet wire\n"
      "add chain inet wire loss {{ type filter hook input priority -300; }}\n"
      "add rule inet wire loss iifname eth0 numgen random mod {:.0f} < {:.0f} counter drop\n",
      kAll, share * kAll);
}

// Times are hundredths of a second: the switch asks again and again. A switch that is told to ask
// passes multicasts on to everybody for as long as answers may take, and by what it was told from
// then on. So answers may take no time when it is told to, and time only after that: no node ever
// hears what it has not asked for.
constexpr const char* kSnooping =
    "link set switch type bridge mcast_snooping 1 mcast_query_response_interval 0 "
    "mcast_query_interval 100 mcast_startup_query_interval 100\n"
    "link set switch type bridge mcast_querier 1\n"
    "link set switch type bridge mcast_query_response_interval 10\n";

std::string limit(const std::string& device, const Wires& wires) {
  return fmt::format("qdisc add dev {} root tbf rate {}bit burst {}b limit {}\n", device,
                     wires.bits_per_s, wires.burst_bytes, kQueue);
}

}  // namespace

void require_network_tools(const Wires& wires) {
  ip();
  if (wires.bits_per_s > 0) tc();
  if (wires.loss > 0) nft();
}

std::string hosts_file(int nodes) {
  std::string text = fmt::format("127.0.0.1 localhost\n{} {}\n", kFrontAddress, kFrontName);
  for (int node = 0; node < nodes; ++node) {
    text += fmt::format("{} {}\n", address(node), node_name(node));
  }
  return text;
}

void connect_nodes(const std::vector<pid_t>& nodes, const Wires& wires) {
  std::string links = fmt::format(
      "link set lo up\nlink add switch type bridge\nlink set switch addrgenmode none\n{}"
      "addr add {}/16 dev switch\nlink set switch up\n",
      wires.snooping ? kSnooping : "", kFrontAddress);
  std::string limits;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string port = fmt::format("port{}", i);
    links += fmt::format(
        "link add {0} type veth peer name eth0 netns {1}\nlink set {0} addrgenmode none\n"
        "link set {0} master switch up\n",
        port, nodes[i]);
    limits += limit(port, wires);
  }
  run_batch(ip(), links);
  if (wires.bits_per_s > 0) run_batch(tc(), limits);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    run_batch(ip(),
              fmt::format("link set lo up\nlink set eth0 addrgenmode none\n"
                          "addr add {}/16 dev eth0\nlink set eth0 up\n",
                          address(static_cast<int>(i))),
              nodes[i]);
    if (wires.bits_per_s > 0) run_batch(tc(), limit("eth0", wires), nodes[i]);
    if (wires.loss > 0) run_batch(nft(), lose(wires.loss), nodes[i]);
  }
}

WireBytes wire_bytes() {
  std::ifstream devices("/proc/self/net/dev");
  WireBytes sum;
  for (std::string line; std::getline(devices, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find("port") >= colon) continue;
    // As the front sees it: eight columns of what it has received, then what it has sent.
    std::int64_t columns[9] = {};
    std::istringstream row(line.substr(colon + 1));
    for (std::int64_t& column : columns) row >> column;
    sum.sent += columns[0];
    sum.received += columns[8];
  }
  return sum;
}

}  // namespace carillon::cli
