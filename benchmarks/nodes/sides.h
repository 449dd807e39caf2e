// SPDX-License-Identifier: Apache-2.0
//
// Two teams of the same ranks that do the same tree, one by send and receive, one by remote write.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "api/objects.h"
#include "bootstrap.h"

namespace carillon::bench {

enum Side : std::size_t { kSendRecv = 0, kRdma = 1, kSides = 2 };

/// What an operation took, by all ranks together.
struct Work {
  double puts = 0, gets = 0, sends = 0, receives = 0, completions = 0, immediates = 0,
         copied_bytes = 0;
};

/// Ends the program with carillon's own words if it is one.
void check(crl_status_t status, const char* what);

/// One of several nodes, or a failure.
crl_context_h make_context(Bootstrap& bootstrap);
crl_context_h make_any_context(Bootstrap& bootstrap);
crl_team_h make_team(crl_context_h context, Bootstrap& bootstrap);

/// One collective of so many bytes, root 0.
struct Call {
  bool is_bcast = false;
  std::size_t bytes = 0;
};

class Sides {
 public:
  Sides(crl_context_h context, Bootstrap& bootstrap, int k);
  ~Sides();
  Sides(const Sides&) = delete;
  Sides& operator=(const Sides&) = delete;

  /// Makes both ready for the call, and sees that they give the right answer.
  void prepare(const Call& call);
  void run(Side side, const Call& call);
  [[nodiscard]] std::string algorithm(Side side) const;

 private:
  void use_plans(Side side);

  crl_context_h context_;
  int k_;
  std::array<crl_team_h, kSides> teams_{};
  std::vector<float> in_, out_;
};

/// What this process's network has done so far.
Work work_so_far(const crl_context& context);

}  // namespace carillon::bench
