// SPDX-License-Identifier: Apache-2.0
//
// The short way of a run that is one strand, whose messages are in lines or chunks, between ranks
// of one node, in a call that nobody else moves on: it takes the same numbers, writes and reads the
// same lines as every run (run.cc), but does not look for what cannot be there. Where a message
// does not come in time, or is not such a one, the run goes on from there like any other.
//
// All of it stands in one function, who runs a blocking call to its end: the calls between these
// few would be an eighth of their instructions.
#pragma once

#include "base/copy.h"
#include "engine/engine.h"
#include "engine/lines-inl.h"
#include "engine/run.h"
#include "engine/team.h"
#include "engine/wake.h"

namespace carillon {

// Of messages that fit their lines, and are of one piece.
[[gnu::always_inline]] inline bool Run::put_briefly(const Instruction& in, const std::byte* from) {
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

[[gnu::always_inline]] inline bool Run::wait_briefly(const Instruction& in, int polls) {
  const BriefUse& use = brief_uses_[in.use];
  const std::uint64_t number = uses_[in.use].first + static_cast<std::uint64_t>(in.index);
  const shm::Line& line = use.in_lines[number % shm::kWindow];
  std::uint64_t header = 0;
  if (!comes(line, *use.peer, number, polls, &header, uses_[in.use].patience)) return false;
  if (!suits(in, header)) return take_long_briefly(in, *use.peer, line, header);
  shm::Endpoint::note_lag(*use.peer, header, collective_);
  arrivals_[in.dst.base - kBaseSlots].came = Came::kSomehow;
  bases_[in.dst.base] = const_cast<std::byte*>(line.payload);
  return true;
}

[[gnu::always_inline]] inline bool Run::run_briefly(std::uint64_t collective, int polls) {
  collective_ = collective;
  Use* use = uses_.data();
  for (const BriefUse& brief : brief_uses_) {
    use->first = *brief.next;
    *brief.next += brief.count;
    ++use;
  }
  const auto at = [this](const Operand& operand) { return bases_[operand.base] + operand.offset; };
  const auto fits_line = [](const Instruction& in) {
    return in.length <= static_cast<std::int64_t>(shm::kInlineBytes);
  };
  const std::uint32_t first = plan_->strand_starts.front();
  for (const Instruction* in = &plan_->code[first];; ++in) {
    switch (in->action) {
      case Action::kPut:
        if (!(fits_line(*in) && in->piece_count == 0 ? put_briefly(*in, at(in->a))
                                                     : put_long_briefly(*in))) {
          return leave_brief(*in);
        }
        break;
      case Action::kWait:
        if (!wait_briefly(*in, polls) && !wait_in_turn(*in)) return leave_brief(*in);
        break;
      case Action::kCopy:
        if (fits_line(*in)) {
          copy_bytes(at(in->dst), at(in->a), in->length);
        } else {
          copy(*in, strands_.front());
        }
        break;
      case Action::kReduce:
        if (fits_line(*in)) {
          binding_.reduction.kernel(at(in->dst), at(in->a), at(in->b),
                                    static_cast<std::size_t>(in->count));
        } else {
          reduce(*in, strands_.front());
        }
        break;
      case Action::kEnd:
        if (!references_.empty()) return leave_brief(*in);
        if (!handed_.empty()) keep_all_handed();
        prefetch_next_writes();
        return true;
      default: break;  // a release: the end of the collective tells of all
    }
  }
}

// Who waits in there looks after nobody, so that nothing need be in flight.
[[gnu::always_inline]] inline bool Team::run_briefly(Run& run, int polls) {
  if (!run.run_briefly(++started_, polls)) {
    in_flight_.push_back(&run);
    return false;
  }
  run.set_state(Run::State::kDone);
  note_done();
  return true;
}

// The only one there was.
inline void Team::note_done() {
  endpoint_->set_done(endpoint_->done() + 1);
  wake_readers(*this, shm::Pool::kToAll);
}

}  // namespace carillon
