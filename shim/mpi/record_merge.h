// SPDX-License-Identifier: Apache-2.0
//
// From the recordings of all ranks to one file: in MPI_Finalize, over the host, so that ranks need
// not share a file system, and a program that crashes leaves nothing behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host.h"
#include "program/program.h"

namespace carillon::shim {

/// The lines that a rank's steps refer to.
struct Definitions {
  std::string teams;               ///< lines
  std::vector<std::string> calls;  ///< lines, with "?" for the name

  /// The name of the team of these ranks of the world.
  std::string add_team(const std::vector<Rank>& ranks, int world_size);
  void add_call(const program::Call& call, const std::string& team);
};

class Merge {
 public:
  Merge(MPI_Comm comm, int rank, int ranks, std::string file)
      : comm_(comm), rank_(rank), ranks_(ranks), file_(std::move(file)) {}

  /// Collective. `error`: why this rank has no recording. `names` get those of the calls; then
  /// `steps` gives the lines of this rank, piece by piece, the last one empty.
  void run(const Definitions& own, const std::string& error, std::vector<std::string>* names,
           const std::function<std::string()>& steps) const;

 private:
  void lead(const Definitions& own, const std::string& error, std::vector<std::string>* names,
            const std::function<std::string()>& steps) const;
  void send(const std::string& text, int to) const;
  [[nodiscard]] std::string receive(int from) const;

  MPI_Comm comm_;
  int rank_, ranks_;
  std::string file_;
};

}  // namespace carillon::shim
