// SPDX-License-Identifier: Apache-2.0
//
// Input, output and tables of an alltoall or alltoallv, in memory of crl_alloc.
#pragma once

#include <cstdint>
#include <vector>

#include "api/objects.h"
#include "bootstrap.h"

namespace carillon::bench {

class Exchange {
 public:
  /// `tables` 0: an alltoall of `bytes` from each rank to each. Else alltoallvs, of so many
  /// different tables in turn, whose blocks are empty, of `bytes`, or of twice as many. Ends the
  /// program if there is no memory. The context outlives it.
  Exchange(crl_context_h context, const Bootstrap& bootstrap, std::size_t bytes, int tables);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Collective. An error ends the program.
  void call(crl_team_h team);
  /// Of input that is written anew; a wrong answer ends the program.
  void call_checked(crl_team_h team);

 private:
  struct Side {
    std::vector<std::int64_t> bytes, offsets;
    std::size_t end = 0;
    void add(std::int64_t length);
  };
  struct Tables {
    Side send, recv;
  };
  [[nodiscard]] std::int64_t length(int from, int to, int table) const;

  crl_context_h context_;
  int rank_;
  bool uneven_;
  std::size_t bytes_;
  std::vector<Tables> tables_;
  std::size_t next_ = 0;
  std::uint8_t* in_ = nullptr;
  std::uint8_t* out_ = nullptr;
};

}  // namespace carillon::bench
