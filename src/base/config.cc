// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/faults.h"
#include "base/forms.h"

namespace carillon {
namespace {

struct Row {
  const char* name;
  std::string_view type;
  std::string_view description;
  std::string Config::*text;  // one of text and number
  std::int64_t Config::*number;
  std::int64_t min, max;
};

constexpr std::int64_t kMax = INT64_C(1) << 40;

constexpr std::array kRows = {
    Row{"CARILLON_ALGORITHM", "text",
        "Algorithms to use instead of the chosen ones, e.g. allreduce=degree_k:k=4;bcast=binomial.",
        &Config::algorithm, nullptr, 0, 0},
    Row{"CARILLON_SLOT_BYTES", "bytes",
        "Largest piece of a message; longer data moves in pieces of this size.", nullptr,
        &Config::slot_bytes, Config::kLeastSlotBytes, 262144},
    Row{"CARILLON_HEAP_MIB", "MiB",
        "Address space per rank for memory from crl_alloc and MPI_Alloc_mem.", nullptr,
        &Config::heap_mib, 0, 1048576},
    Row{"CARILLON_POOL_MIB", "MiB, or -1",
        "Address space per rank that its part of the node's shared memory may grow by for messages "
        "that are not read yet; -1: what suits the node's ranks.",
        nullptr, &Config::pool_mib, -1, 1048576},
    Row{"CARILLON_SPIN_US", "microseconds",
        "How long a wait polls before it yields the core, when ranks have a core each.", nullptr,
        &Config::spin_us, 0, 1000000},
    Row{"CARILLON_DEAD_PEER_MS", "milliseconds", "Within what time a process that died is noticed.",
        nullptr, &Config::dead_peer_ms, 10, kMax},
    Row{"CARILLON_JOIN_TIMEOUT_S", "seconds",
        "How long start-up waits for the other ranks, and how long for one that cannot be reached.",
        nullptr, &Config::join_timeout_s, 1, 86400},
    Row{"CARILLON_VERIFY", "0 or 1",
        "1: every schedule is verified for the whole team before its first run (slow).", nullptr,
        &Config::verify, 0, 1},
    Row{"CARILLON_CROWDED", "-1, 0 or 1",
        "Whether ranks share cores, so that who waits yields at once; -1: if they are more than "
        "the cores they may run on.",
        nullptr, &Config::crowded, -1, 1},
    Row{"CARILLON_REPRODUCIBLE", "0 or 1",
        "1: reductions combine the ranks from left to right: the same bits whatever the algorithm, "
        "the placement of ranks and the network.",
        nullptr, &Config::reproducible, 0, 1},
    Row{"CARILLON_LEND_BYTES", "bytes, or -1",
        "From this size on, a message within the node is read in the sender's private memory, "
        "where "
        "the kernel allows that, instead of copied to shared memory and from there; 0: none is; "
        "-1: "
        "as turns out to be faster.",
        nullptr, &Config::lend_bytes, -1, kMax},
    Row{"CARILLON_UNCACHED_BYTES", "bytes, or -1",
        "From this size on, a message that is copied to shared memory goes there past the caches; "
        "0: none does; -1: as turns out to be faster.",
        nullptr, &Config::uncached_bytes, -1, kMax},
    Row{"CARILLON_HANDED_CHUNKS", "0 to 16",
        "How many chunks of shared memory more, small and large ones each, a rank may hand over to "
        "another one of its node with its messages than that one has to it; 0: none.",
        nullptr, &Config::handed_chunks, 0, 16},
    Row{"CARILLON_FETCH_BYTES", "bytes, or -1",
        "From this size on, messages between nodes are got from where they stand instead of copied "
        "there and here; 0: none is; -1: as suits the network.",
        nullptr, &Config::fetch_bytes, -1, kMax},
    Row{"CARILLON_GATHER_ENTRIES", "entries, or -1",
        "Longest list that one post to another node takes as it is instead of copying it together "
        "first; longer ones go in parts; 0: none is; -1: as suits the network.",
        nullptr, &Config::gather_entries, -1, 4096},
    Row{"CARILLON_GATHER_BYTES", "bytes, or -1",
        "A list is taken as it is if its runs of bytes are at least so long on average; -1: as "
        "suits the network.",
        nullptr, &Config::gather_bytes, -1, kMax},
    Row{"CARILLON_PLACE_BYTES", "bytes",
        "From this size on, what is sent and received between nodes is placed: the reader posts "
        "its list, then the writer sends; 0: nothing is.",
        nullptr, &Config::place_bytes, 0, kMax},
    Row{"CARILLON_NETWORK", "text",
        "Network between nodes: verbs, verbs:DEVICE, fabric, fabric:PROVIDER or off; empty: the "
        "best that all nodes have.",
        &Config::network, nullptr, 0, 0},
    Row{"CARILLON_MULTICAST", "text",
        "Multicast between nodes: off, udp, udp:INTERFACE, ud or ud:DEVICE; auto: where "
        "CARILLON_ALGORITHM names an algorithm of multicast, as suits the network, and over TCP "
        "where a trial says that it pays.",
        &Config::multicast, nullptr, 0, 0},
    Row{"CARILLON_MULTICAST_JOIN_S", "seconds",
        "How long a team waits for its members to hear each other's multicasts, before it does "
        "without; 0: 2 s, or half a second where nobody has asked for multicast.",
        nullptr, &Config::multicast_join_s, 0, 3600},
    Row{"CARILLON_SWITCH", "text",
        "Switch that reduces between nodes, ADDRESS or ADDRESS:PORT; of a tree of them this "
        "node's, "
        "the one above, ..., the root, with commas; empty: none.",
        &Config::in_switch, nullptr, 0, 0},
    Row{"CARILLON_SWITCH_KEY", "text", "File with the key of that switch's administrator.",
        &Config::switch_key, nullptr, 0, 0},
    Row{"CARILLON_NODE_RANKS", "numbers",
        "Ranks that count as one node, e.g. 3,1,2 and so on from the start, or rr:2 for two nodes "
        "in "
        "turn; for trying shapes of several nodes on one machine.",
        &Config::node_ranks, nullptr, 0, 0},
    Row{"CARILLON_DOMAIN_RANKS", "numbers",
        "Ranks of a node that count as one NUMA domain, written like those of CARILLON_NODE_RANKS; "
        "empty: as the system and the ranks' binding say.",
        &Config::domain_ranks, nullptr, 0, 0},
    Row{"CARILLON_MACHINE", "text",
        "What machine's cores this rank has, equal on all ranks that share them; carillon cluster "
        "sets it, whose nodes take themselves for machines. Empty: as the system says.",
        &Config::machine, nullptr, 0, 0},
    Row{"CARILLON_CROSS_PS", "picoseconds",
        "What a byte read from another NUMA domain takes of the way between the domains; by it "
        "broadcasts between nodes are passed on from domain to domain, or not. 0: they are not.",
        nullptr, &Config::cross_ps, 0, 1000000},
    Row{"CARILLON_FAULT", "text",
        "What goes wrong on the network between nodes, for trials, e.g. delay=0.2,lose=0.01,seed=7 "
        "(docs/testing.md).",
        &Config::fault, nullptr, 0, 0},
    Row{"CARILLON_TRACE", "text",
        "File for what is posted to the network between nodes and what arrives, in the format of "
        "Chrome's trace viewer.",
        &Config::trace, nullptr, 0, 0},
    Row{"CARILLON_SURVEYS", "text",
        "Of which teams the tables of alltoallv are surveyed, to see whether two phases suit them: "
        "auto, where they can pay; on, all between nodes; off, none.",
        &Config::surveys, nullptr, 0, 0},
    Row{"CARILLON_SERVLET", "text",
        "Whether a thread moves non-blocking collectives on while the program computes: off, on, "
        "or auto, as suits the collective and its bytes, where ranks have a core each.",
        &Config::servlet, nullptr, 0, 0},
    Row{"CARILLON_WATCHDOG", "time",
        "A rank that waits so long in a collective says which ranks have not come to it, e.g. 30s "
        "or 500ms; empty: never.",
        &Config::watchdog, nullptr, 0, 0},
    Row{"CARILLON_LOG", "text", "What is logged to stderr: off, error, warning, info or debug.",
        &Config::log, nullptr, 0, 0},
};

bool parse_number(std::string_view text, std::int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

// "30s", "500ms", "2min".
Status read_watchdog(Config& config) {
  const std::string_view text = config.watchdog;
  if (text.empty()) return {};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(digits);
  const std::int64_t unit_ms = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "min" ? 60000 : 0;
  std::int64_t value = 0;
  constexpr std::int64_t kMost = 1000000;
  if (unit_ms == 0 || !parse_number(text.substr(0, digits), &value) || value < 1 || value > kMost) {
    return {Code::kInvalidArgument, "CARILLON_WATCHDOG=" + config.watchdog +
                                        " is no time as 30s, 500ms or 2min; correct or unset it"};
  }
  config.watchdog_ms = value * unit_ms;
  return {};
}

Status read_row(const Row& row, std::string_view text, Config& config) {
  if (row.text != nullptr) {
    config.*row.text = text;
    return {};
  }
  std::int64_t value = 0;
  if (!parse_number(text, &value) || value < row.min || value > row.max) {
    return {Code::kInvalidArgument, std::string(row.name) + "=" + std::string(text) +
                                        " is not a number from " + std::to_string(row.min) +
                                        " to " + std::to_string(row.max) + " (" +
                                        std::string(row.type) + "); correct or unset it"};
  }
  config.*row.number = value;
  return {};
}

std::string shown(const Row& row, const Config& config) {
  return row.text != nullptr ? config.*row.text : std::to_string(config.*row.number);
}

}  // namespace

Result<Config> read_config() {
  Config config;
  for (const Row& row : kRows) {
    const char* const text = std::getenv(row.name);  // NOLINT(concurrency-mt-unsafe): start-up
    if (text == nullptr || *text == '\0') continue;
    if (Status status = read_row(row, text, config); !status.ok()) return status;
  }
  if (const auto faults = parse_faults(config.fault); !faults.ok()) return faults.status();
  if (Status status = read_watchdog(config); !status.ok()) return status;
  for (const Status& status :
       {check_network(config.network), check_multicast(config.multicast),
        part_of_rank("CARILLON_NODE_RANKS", config.node_ranks, 0).status(),
        part_of_rank("CARILLON_DOMAIN_RANKS", config.domain_ranks, 0).status()}) {
    if (!status.ok()) return status;
  }
  if (config.servlet != "off" && config.servlet != "on" && config.servlet != "auto") {
    return Status(Code::kInvalidArgument,
                  "CARILLON_SERVLET=" + config.servlet + " is none of off, on and auto");
  }
  if (config.surveys != "auto" && config.surveys != "on" && config.surveys != "off") {
    return Status(Code::kInvalidArgument,
                  "CARILLON_SURVEYS=" + config.surveys + " is none of auto, on and off");
  }
  constexpr std::array<std::string_view, 5> kLevels = {"off", "error", "warning", "info", "debug"};
  for (const std::string_view level : kLevels) {
    if (config.log == level) return config;
  }
  return Status(Code::kInvalidArgument,
                "CARILLON_LOG=" + config.log + " is none of off, error, warning, info, debug");
}

std::span<const Setting> settings() {
  static const std::vector<Setting> kTable = [] {
    std::vector<Setting> table;
    const Config fallback;
    for (const Row& row : kRows) {
      const char* const text = std::getenv(row.name);  // NOLINT(concurrency-mt-unsafe)
      const bool is_set = text != nullptr && *text != '\0';
      const std::string standard = shown(row, fallback);
      table.push_back({row.name, row.type, standard, is_set ? text : standard, row.description});
    }
    return table;
  }();
  return kTable;
}

}  // namespace carillon
