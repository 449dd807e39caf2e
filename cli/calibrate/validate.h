// SPDX-License-Identifier: Apache-2.0
//
// carillon sim --validate: what the simulator predicts, beside what is measured.
#pragma once

#include <string>

namespace carillon::cli {

struct ValidateOptions {
  std::string machine;  ///< a machine file; empty: this machine, calibrated anew in each round
  std::string sizes = "8,64,512,4K,32K,256K,1M";
  int ranks = 2;
  int rounds = 3;
  bool nodes = false;    ///< each rank counts as a node
  bool cluster = false;  ///< each rank is a node of a virtual cluster
  bool json = false;
};

/// Prints the table; the exit status.
int validate(const ValidateOptions& options);

}  // namespace carillon::cli
