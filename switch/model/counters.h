// SPDX-License-Identifier: Apache-2.0
//
// What a switch counts. Each packet that comes is counted once.
#pragma once

#include <cstdint>
#include <string_view>

namespace carillon::aggregate {

struct Counters {
  std::uint64_t operands = 0;         ///< contributions taken
  std::uint64_t results = 0;          ///< of the parent, taken
  std::uint64_t resent_results = 0;   ///< contributions answered with a result that was there
  std::uint64_t resent_partials = 0;  ///< contributions that had the partial sent up again
  std::uint64_t duplicates = 0;       ///< of what is there already, ignored
  std::uint64_t control = 0;          ///< requests met
  std::uint64_t refused = 0;          ///< requests and contributions refused, but for unknown jobs
  std::uint64_t refusals = 0;         ///< of the parent, passed down
  std::uint64_t unknown_job = 0;      ///< packets of jobs that the switch does not know
  std::uint64_t unknown_group = 0;    ///< results and refusals of groups that it does not know
  std::uint64_t malformed = 0;        ///< no packets of this protocol
  std::uint64_t bad_tag = 0;          ///< made without the key
  std::uint64_t wrong_source = 0;     ///< from elsewhere than the group's child or parent
  std::uint64_t stale = 0;            ///< of sequences that all have the result of
  std::uint64_t premature = 0;        ///< of sequences that nobody may send yet
  std::uint64_t mismatched = 0;       ///< results that are not of what was sent up
  std::uint64_t unexpected = 0;       ///< answers, which are not for a switch
  std::uint64_t idle_groups = 0;      ///< freed because nothing came; no packets
};

/// Calls visit(name, value) for each.
template <typename Visit>
void visit_counters(const Counters& c, const Visit& visit) {
  visit("operands", c.operands);
  visit("results", c.results);
  visit("resent_results", c.resent_results);
  visit("resent_partials", c.resent_partials);
  visit("duplicates", c.duplicates);
  visit("control", c.control);
  visit("refused", c.refused);
  visit("refusals", c.refusals);
  visit("unknown_job", c.unknown_job);
  visit("unknown_group", c.unknown_group);
  visit("malformed", c.malformed);
  visit("bad_tag", c.bad_tag);
  visit("wrong_source", c.wrong_source);
  visit("stale", c.stale);
  visit("premature", c.premature);
  visit("mismatched", c.mismatched);
  visit("unexpected", c.unexpected);
  visit("idle_groups", c.idle_groups);
}

}  // namespace carillon::aggregate
