// SPDX-License-Identifier: Apache-2.0
//
// A Wire that records what is posted and what arrives, with times, in the format of Chrome's trace
// viewer (chrome://tracing, ui.perfetto.dev): for each process a row per peer with the operations
// under way, and one of arrivals. All processes that share the file system write to one file.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "transport/wire.h"

namespace carillon::wrap {

class Trace : public wire::Wire {
 public:
  /// The process of the job with that address: rows are named by it.
  virtual void name_peer(int process, std::span<const std::byte> address) = 0;
};

/// `wire`, traced as process `process` of the job. What has been recorded is added to the trace
/// file `file` when the wire goes.
std::unique_ptr<Trace> with_trace(std::unique_ptr<wire::Wire> wire, const std::string& file,
                                  int process);

}  // namespace carillon::wrap
