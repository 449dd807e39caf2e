// SPDX-License-Identifier: Apache-2.0
//
// The short way of a run that is one strand, whose messages all fit their lines, between ranks of
// one node, in a call that nobody else moves on: it takes the same numbers, writes and reads the
// same lines as every run (run.cc), but does not look for what cannot be there. Where a message
// does not come in time, or is not such a one, the run goes on from there like any other.
#include "base/copy.h"
#include "engine/engine.h"
#include "engine/lines-inl.h"
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

bool Run::run_briefly(std::uint64_t collective, int polls) {
  collective_ = collective;
  Use* use = uses_.data();
  for (const BriefUse& brief : brief_uses_) {
    use->first = *brief.next;
    *brief.next += brief.count;
    ++use;
  }
  const auto at = [this](const Operand& operand) { return bases_[operand.base] + operand.offset; };
  const std::uint32_t first = plan_->strand_starts.front();
  for (const Instruction* in = &plan_->code[first];; ++in) {
    switch (in->action) {
      case Action::kPut:
        if (!put_briefly(*in, at(in->a))) return leave_brief(*in);
        break;
      case Action::kWait:
        if (!wait_briefly(*in, polls)) return leave_brief(*in);
        break;
      case Action::kCopy: copy_bytes(at(in->dst), at(in->a), in->length); break;
      case Action::kReduce:
        binding_.reduction.kernel(at(in->dst), at(in->a), at(in->b),
                                  static_cast<std::size_t>(in->count));
        break;
      case Action::kEnd: prefetch_next_writes(); return true;
      default: break;  // a release: the end of the collective tells of all
    }
  }
}

inline bool Run::put_briefly(const Instruction& in, const std::byte* from) {
  const BriefUse& use = brief_uses_[in.use];
  const ChannelUse& channel = plan_->uses[in.use];
  const std::uint64_t number = uses_[in.use].first + static_cast<std::uint64_t>(in.index);
  if (!line_is_free(team_->endpoint(), channel, *use.peer, number)) return false;
  shm::Line& line = use.out_lines[number % shm::kWindow];
  copy_bytes(line.payload, from, in.length);
  publish(channel, *use.peer, line, number, static_cast<std::uint8_t>(in.length));
  next_line_ = &use.out_lines[(number + 1) % shm::kWindow];
  return true;
}

inline bool Run::wait_briefly(const Instruction& in, int polls) {
  const BriefUse& use = brief_uses_[in.use];
  const std::uint64_t number = uses_[in.use].first + static_cast<std::uint64_t>(in.index);
  const shm::Line& line = use.in_lines[number % shm::kWindow];
  std::uint64_t header = 0;
  if (!comes(line, *use.peer, number, polls, &header, uses_[in.use].patience) || !suits(in, header))
    return false;
  shm::Endpoint::note_lag(*use.peer, header, collective_);
  arrivals_[in.dst.base - kBaseSlots].came = Came::kSomehow;
  bases_[in.dst.base] = const_cast<std::byte*>(line.payload);
  return true;
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
