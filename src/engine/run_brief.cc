// SPDX-License-Identifier: Apache-2.0
//
// Before and after the short way of a run (run_brief-inl.h).
#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

// What stays as it is from call to call.
void Run::find_brief_uses() {
  brief_uses_.clear();
  brief_ = plan_->brief && binding_.reduction.user == nullptr && !team_->spans_nodes();
  if (!brief_) return;
  shm::Endpoint& endpoint = team_->endpoint();
  for (const ChannelUse& channel : plan_->uses) {
    shm::Peer& peer = endpoint.peer(channel.peer);
    const shm::Audience audience = audience_of(channel.flow);
    BriefUse use{.peer = &peer, .count = static_cast<std::uint64_t>(channel.count)};
    if (is_shared_out(channel.flow)) {
      use.next = &endpoint.next_shared_number(audience);
      use.out_lines = endpoint.shared_lines(audience);
    } else if (is_shared_in(channel.flow)) {
      use.next = &peer.shared_in_next[audience];
      use.in_lines = peer.shared_lines[audience];
    } else if (channel.flow == Flow::kOutPair) {
      use.next = &peer.out_next;
      use.out_lines = peer.out_lines;
    } else {
      use.next = &peer.in_next;
      use.in_lines = peer.in_lines;
    }
    brief_uses_.push_back(use);
  }
}

// As if the run had come to this instruction as any other does.
bool Run::leave_brief(const Instruction& in) {
  reset(collective_);
  begin_strands();
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    uses_[i].begin_at(uses_[i].first, plan_->uses[i].count);
  }
  // What was released before needs no counting: the end of the collective tells of all.
  strands_.front().at = static_cast<std::uint32_t>(&in - plan_->code.data());
  return false;
}

}  // namespace carillon
