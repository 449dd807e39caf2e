// SPDX-License-Identifier: Apache-2.0
//
// The interposer's own settings, CARILLON, CARILLON_STATS, CARILLON_RECORD, CARILLON_CHECK and
// CARILLON_MERGED; the library reads the others.
#pragma once

#include <string>

namespace carillon::shim {

struct Settings {
  bool on = true;           ///< CARILLON=off leaves everything to the host
  std::string stats;        ///< CARILLON_STATS: empty, "1" or "json" (rank 0), or a file's prefix
  bool check = false;       ///< CARILLON_CHECK: calls are compared between ranks
  bool joins = false;       ///< CARILLON_MERGED: serves what is merged with other jobs, too
  std::string record;       ///< CARILLON_RECORD: the file of a recording; empty: none
  int warn_after_s = 10;    ///< in MPI_Init: when to say that other ranks are missing
  int join_timeout_s = 30;  ///< CARILLON_JOIN_TIMEOUT_S: when to give up
  std::string error;        ///< not empty: a variable has a value that cannot be
};

Settings read_settings();

}  // namespace carillon::shim
