// SPDX-License-Identifier: Apache-2.0
//
// The settings: one table of CARILLON_* variables, read once. `carillon info --config` and
// docs/settings.md print this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace carillon {

struct Config {
  static constexpr std::int64_t kLeastSlotBytes = 1024;

  std::string algorithm;              ///< CARILLON_ALGORITHM
  std::int64_t slot_bytes = 65536;    ///< CARILLON_SLOT_BYTES
  std::int64_t heap_mib = 1024;       ///< CARILLON_HEAP_MIB
  std::int64_t pool_mib = -1;         ///< CARILLON_POOL_MIB
  std::int64_t spin_us = 500;         ///< CARILLON_SPIN_US
  std::int64_t dead_peer_ms = 1000;   ///< CARILLON_DEAD_PEER_MS
  std::int64_t join_timeout_s = 30;   ///< CARILLON_JOIN_TIMEOUT_S
  std::int64_t verify = 0;            ///< CARILLON_VERIFY
  std::int64_t crowded = -1;          ///< CARILLON_CROWDED
  std::int64_t reproducible = 0;      ///< CARILLON_REPRODUCIBLE
  std::int64_t lend_bytes = -1;       ///< CARILLON_LEND_BYTES
  std::int64_t uncached_bytes = -1;   ///< CARILLON_UNCACHED_BYTES
  std::int64_t handed_chunks = 16;    ///< CARILLON_HANDED_CHUNKS
  std::int64_t fetch_bytes = -1;      ///< CARILLON_FETCH_BYTES
  std::int64_t gather_entries = -1;   ///< CARILLON_GATHER_ENTRIES
  std::int64_t gather_bytes = -1;     ///< CARILLON_GATHER_BYTES
  std::int64_t place_bytes = 0;       ///< CARILLON_PLACE_BYTES
  std::string network;                ///< CARILLON_NETWORK
  std::string multicast = "auto";     ///< CARILLON_MULTICAST
  std::int64_t multicast_join_s = 0;  ///< CARILLON_MULTICAST_JOIN_S
  std::string in_switch;              ///< CARILLON_SWITCH
  std::string switch_key;             ///< CARILLON_SWITCH_KEY
  std::string node_ranks;             ///< CARILLON_NODE_RANKS
  std::string domain_ranks;           ///< CARILLON_DOMAIN_RANKS
  std::string machine;                ///< CARILLON_MACHINE
  std::int64_t cross_ps = 25;         ///< CARILLON_CROSS_PS
  std::string surveys = "auto";       ///< CARILLON_SURVEYS
  std::string servlet = "off";        ///< CARILLON_SERVLET
  std::string watchdog;               ///< CARILLON_WATCHDOG
  std::int64_t watchdog_ms = 0;       ///< the same in milliseconds; 0: none
  std::string fault;                  ///< CARILLON_FAULT
  std::string trace;                  ///< CARILLON_TRACE
  std::string log = "warning";        ///< CARILLON_LOG
};

/// One row of the table, for people.
struct Setting {
  std::string_view name;         ///< "CARILLON_SLOT_BYTES"
  std::string_view type;         ///< "bytes", "text", ...
  std::string fallback;          ///< its default
  std::string value;             ///< as it is now
  std::string_view description;  ///< one sentence
};

/// Reads the environment. A value that cannot be is an error that names the variable, the value
/// and what would do.
Result<Config> read_config();

/// The whole table with the current values; unreadable ones are shown as they stand.
std::span<const Setting> settings();

}  // namespace carillon
