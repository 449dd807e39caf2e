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
#include <string_view>

#include "cluster/node.h"
#include "cluster/shape.h"
#include "support/failure.h"
#include "support/process.h"

namespace carillon::cli {
namespace {

// A queue this long loses nothing that the nodes' own windows do not hold back. At slow rates that
// is seconds: what asks to be sent soon (IPTOS_LOWDELAY: signs of life) has one of its own, which
// goes first, as with pfifo_fast, Linux's usual one.
constexpr const char* kQueue = "16mb";
constexpr const char* kFirstQueue = "1mb";

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

// htb only chooses which queue is next; tbf has the rate.
std::string limit(const std::string& device, const Wires& wires) {
  return fmt::format(
      "qdisc add dev {0} root handle 1: tbf rate {1}bit burst {2}b limit {3}\n"
      "qdisc add dev {0} parent 1:1 handle 2: htb default 2\n"
      "class add dev {0} parent 2: classid 2:1 htb rate 100gbit prio 0 quantum 60000\n"
      "class add dev {0} parent 2: classid 2:2 htb rate 100gbit prio 1 quantum 60000\n"
      "qdisc add dev {0} parent 2:1 handle 3: bfifo limit {4}\n"
      "qdisc add dev {0} parent 2:2 handle 4: bfifo limit {3}\n"
      "filter add dev {0} parent 2: protocol ip u32 match ip tos 0x10 0xff flowid 2:1\n",
      device, wires.bits_per_s, wires.burst_bytes, kQueue, kFirstQueue);
}

std::string bridge(const std::string& at, const Wires& wires) {
  return fmt::format(
      "link set lo up\nlink add switch type bridge\nlink set switch addrgenmode none mtu {}\n{}"
      "addr add {}/16 dev switch\nlink set switch up\n",
      wires.mtu, wires.snooping ? kSnooping : "", at);
}

// A wire from a bridge's port, in the namespace where the line is read, to `device` of `process`'s.
std::string wire(const std::string& port, const std::string& device, pid_t process,
                 const Wires& wires) {
  return fmt::format(
      "link add {0} mtu {3} type veth peer name {1} mtu {3} netns {2}\n"
      "link set {0} addrgenmode none\nlink set {0} master switch up\n",
      port, device, process, wires.mtu);
}

// The network of `process`; 0: this one's.
struct Lines {
  pid_t process = 0;
  std::string links, limits;

  void set_up(const Wires& wires) const {
    run_batch(ip(), links, process);
    if (wires.bits_per_s > 0) run_batch(tc(), limits, process);
  }
};

void add_bytes(const std::string& file, std::string_view device, std::int64_t* sent,
               std::int64_t* received) {
  std::ifstream devices(file);
  for (std::string line; std::getline(devices, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(device) >= colon) continue;
    // As the switch sees it: eight columns of what it has received, then what it has sent.
    std::int64_t columns[9] = {};
    std::istringstream row(line.substr(colon + 1));
    for (std::int64_t& column : columns) row >> column;
    *sent += columns[0];
    *received += columns[8];
  }
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

std::string leaf_name(int leaf) { return fmt::format("leaf{}", leaf); }

std::string leaf_address(int leaf) { return fmt::format("10.0.254.{}", leaf + 1); }

int leaf_of(int node, int nodes, int leaves) { return node * leaves / nodes; }

void connect_nodes(const std::vector<pid_t>& nodes, const std::vector<pid_t>& leaves,
                   const Wires& wires) {
  Lines front = {.links = bridge(kFrontAddress, wires)};
  std::vector<Lines> below;
  for (const pid_t leaf : leaves) {
    const int number = static_cast<int>(below.size());
    front.links += wire(leaf_name(number), "up0", leaf, wires);
    front.limits += limit(leaf_name(number), wires);
    below.push_back({.process = leaf,
                     .links = bridge(leaf_address(number), wires) +
                              "link set up0 addrgenmode none\nlink set up0 master switch up\n",
                     .limits = limit("up0", wires)});
  }
  std::vector<Lines> ends;
  for (const pid_t node : nodes) {
    const int number = static_cast<int>(ends.size());
    const std::string port = fmt::format("port{}", number);
    const int leaf =
        leaf_of(number, static_cast<int>(nodes.size()), static_cast<int>(below.size()));
    Lines& at = below.empty() ? front : below[static_cast<std::size_t>(leaf)];
    at.links += wire(port, "eth0", node, wires);
    at.limits += limit(port, wires);
    ends.push_back({.process = node,
                    .links = fmt::format("link set lo up\nlink set eth0 addrgenmode none\n"
                                         "addr add {}/16 dev eth0\nlink set eth0 up\n",
                                         address(number)),
                    .limits = limit("eth0", wires)});
  }
  front.set_up(wires);
  for (const Lines& leaf : below) leaf.set_up(wires);
  for (const Lines& node : ends) {
    node.set_up(wires);
    if (wires.loss > 0) run_batch(nft(), lose(wires.loss), node.process);
  }
}

WireBytes wire_bytes(const std::vector<pid_t>& leaves) {
  WireBytes sum;
  const std::string front = "/proc/self/net/dev";
  if (leaves.empty()) add_bytes(front, "port", &sum.sent, &sum.received);
  add_bytes(front, "leaf", &sum.leaves_sent, &sum.leaves_received);
  for (const pid_t leaf : leaves) {
    add_bytes(fmt::format("/proc/{}/net/dev", leaf), "port", &sum.sent, &sum.received);
  }
  return sum;
}

}  // namespace carillon::cli
