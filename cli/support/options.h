// SPDX-License-Identifier: Apache-2.0
//
// Options that several subcommands share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedule/nodes.h"
#include "support/command_line.h"
#include "support/process.h"

namespace carillon::cli {

/// The most ranks that are started on one machine: a slip of the finger should not.
inline constexpr int kMaxRanksStarted = 4096;

/// Takes PROGRAM ARGS..., with or without "--" before it, off the arguments of a command: what
/// stands after the command's own options. Fails if there is none (unless help is asked for).
Arguments cut_program(const Command& command, Arguments* arguments);

/// Fails with one line if a CARILLON_* variable has a value that cannot be. Whoever is a rank other
/// than the first leaves the first one's files to it.
void require_settings(bool first_rank = true);
/// Says on stderr which CARILLON_* variables mean nothing: slips, most likely.
void warn_of_unknown_settings();

/// What --trace does, for --help.
inline constexpr const char* kTraceHelp =
    "write what goes over the network between nodes to this file, for ui.perfetto.dev; what goes "
    "on "
    "within a node is not in it";
/// Makes the file a trace without events; fails if it cannot be written.
void require_trace(const std::string& file);

/// What --stats does, for --help.
inline constexpr const char* kStatsHelp =
    "say at the end, of rank 0, what the calls of each collective on each communicator came to: "
    "how "
    "many, bytes, time, algorithm, and which were left to the MPI, and why";
inline constexpr const char* kStatsJsonHelp = "as --stats, but one line of JSON, on stderr, too";

/// What --shared-heap does, for --help.
inline constexpr const char* kSharedHeapHelp =
    "put the program's blocks of 64 KiB and more where the node's other ranks can read them, so "
    "that a broadcast and its like copy nothing into shared memory";

/// What --check does, for --help.
inline constexpr const char* kCheckHelp =
    "compare each collective call with those of the other ranks, and end the job at the first that "
    "does not fit, saying where it is";

/// What --record does, for --help.
inline constexpr const char* kRecordHelp =
    "write which collectives the program calls, and how long it computes between them, to this "
    "file, for carillon sim --program";
/// Fails if the file cannot be written; leaves none.
void require_recording(const std::string& file);

/// "8,4096,64K,1M": sizes in bytes; fails if they are not.
std::vector<std::int64_t> parse_sizes(const std::string& text);

struct RankRange {
  int first = 1, last = 1;
};
/// "1-24" or "7", at most `max`; fails if it is not.
RankRange parse_ranks(const std::string& text, int max);

/// --nodes: which ranks share a node. "3,1,2": so many on each node, one after another; "rr:2":
/// round robin over two nodes.
struct NodesOption {
  std::vector<Rank> sizes;
  std::int32_t round_robin = 0;

  /// The ranks of all nodes together; 0 if any number will do.
  [[nodiscard]] Rank ranks() const;
  [[nodiscard]] std::shared_ptr<const Nodes> nodes(Rank ranks) const;
  [[nodiscard]] std::string text() const;
};
/// Of at most `max` ranks; fails if it is not one.
NodesOption parse_nodes(const std::string& text, int max);

}  // namespace carillon::cli
