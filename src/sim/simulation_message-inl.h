// SPDX-License-Identifier: Apache-2.0
//
// Simulation: messages, from the post to the release.
//
//   put, signal   payload ----------------------------------> wait ... last use
//                 (may go on) <------------------------------ release, where windows are short
//   send, long    request ----------------------------------> recv
//                 grant <-------------------------------------
//                 payload ----------------------------------> (recv goes on)
#pragma once

#include <algorithm>

#include "sim/simulation.h"

namespace carillon::sim {

template <bool kTraced>
std::uint32_t Simulation<kTraced>::path_node(std::uint32_t path, std::uint32_t from,
                                             std::uint32_t to, std::int64_t sent) {
  if constexpr (!kTraced) return 0;
  if (!options_.critical_path) return 0;
  path_.push_back({path, static_cast<Rank>(from), static_cast<Rank>(to), sent, sent});
  return static_cast<std::uint32_t>(path_.size() - 1);
}

// A message that another strand or rank of the node finds in its memory at `time`.
template <bool kTraced>
void Simulation<kTraced>::deliver_here(std::uint32_t id, const StrandState& strand,
                                       std::uint32_t to, std::int64_t sent, std::int64_t time,
                                       Subject subject, std::int32_t number) {
  subject.kind = EventKind::kDeliver;
  Event event;
  event.time = time;
  event.rank = to;
  event.from = id;
  event.word = subject.word();
  event.number = number;
  event.set_path(path_node(strand.path, id, to, sent));
  push(event);
}

// A message that is handed to the NIC at `time`.
template <bool kTraced>
void Simulation<kTraced>::send_between(std::uint32_t id, std::uint32_t to, std::int64_t time,
                                       Subject subject, std::int32_t number, std::uint32_t path) {
  subject.kind = EventKind::kMessage;
  const bool has_payload = subject.role == Role::kPayload;
  Event event;
  event.time = network_.send(single_ ? static_cast<std::int32_t>(id) : node_of(id),
                             single_ ? static_cast<std::int32_t>(to) : node_of(to), time,
                             transfers_[has_payload ? subject.transfer : empty_]);
  event.rank = to;
  event.from = id;
  event.word = subject.word();
  event.number = number;
  event.set_path(path_node(path, id, to, time));
  push(event);
}

// Whether the channel's window has room; else the strand waits for a release.
template <bool kTraced>
bool Simulation<kTraced>::take_credit(std::uint32_t id, StrandState* strand, const Step& step) {
  RankState& state = states_[id];
  const std::uint64_t key = channel_key(*strand, step);
  if (!state.more) state.more = std::make_unique<More>();
  Credit& credit = state.more->credits[key];
  const std::int64_t readers =
      step.channel == Channel::kAll
          ? job_.call.limits.node_size(static_cast<Rank>(id), job_.call.shared.ranks) - 1
          : 1;
  if ((credit.posted - job_.call.limits.window + 1) * readers > credit.released) {
    strand->state = StrandState::State::kNeedsCredit;
    strand->key = MessageKey(static_cast<std::uint32_t>(key >> 2), step.channel, 0);
    return false;
  }
  ++credit.posted;
  return true;
}

template <bool kTraced>
bool Simulation<kTraced>::post(std::uint32_t id, StrandState* strand, const Step& step) {
  const TransferTable::Costs& costs = transfers_[step.transfer];
  const bool to_all = step.channel == Channel::kAll;
  const std::uint32_t peer = to_all ? id : strand->parts.part.peers[step.peer];
  const bool remote = !to_all && !is_local(id, peer);
  const auto& more = states_[id].more;
  // Once a channel has been short of room it is counted to the end (of a schedule in windows).
  const bool credited =
      step.credited != 0 || (more && !more->credits.empty() && step.kind != OpKind::kSend &&
                             more->credits.contains(channel_key(*strand, step)));
  if (!strand->posting) {
    if (credited && !take_credit(id, strand, step)) {
      strand->since = strand->ready;
      return false;
    }
    const std::int64_t begin = strand->ready;
    std::int64_t end = begin;
    if (remote) {
      end = network_.room(single_ ? static_cast<std::int32_t>(id) : node_of(id), begin) +
            (step.kind == OpKind::kSend ? costs.send_ps : costs.put_ps);
    } else if (to_all || peer != id) {
      end = network_.use_memory(node_, begin, begin + costs.local_put_ps, costs);
    }
    spend(id, strand, end, Activity::kSend, step);
    ++report_.messages;
    report_.bytes += costs.transfer.bytes;
    // The NIC is asked when it is time: others of the node may be first.
    strand->posting = careful_ && remote && end > begin;
    if (strand->posting) return true;
  }
  strand->posting = false;
  Subject subject{.credited = credited, .channel = step.channel, .transfer = step.transfer};
  if (remote && step.kind == OpKind::kSend && !machine::is_eager(machine_, costs.transfer.bytes)) {
    subject.role = Role::kRequest;
  }
  leave_cpu(id, strand, step, subject);
  next_step(id, strand);
  return true;
}

// What has been posted goes its way.
template <bool kTraced>
void Simulation<kTraced>::leave_cpu(std::uint32_t id, StrandState* strand, const Step& step,
                                    Subject subject) {
  const std::int32_t number = step.number + step.stride * strand->round;
  const std::int64_t sent = strand->ready;
  const std::int64_t seen = sent + machine_.shared_memory.latency_ps;
  if (step.channel == Channel::kAll) {
    for (std::uint32_t to = 0; nodes_ == nullptr && to < ranks_; ++to) {
      if (to != id) deliver_here(id, *strand, to, sent, seen, subject, number);
    }
    if (nodes_ == nullptr) return;
    for (const Rank member : nodes_->members(node_of(id))) {
      const auto to = static_cast<std::uint32_t>(member);
      if (to != id) deliver_here(id, *strand, to, sent, seen, subject, number);
    }
    return;
  }
  const std::uint32_t peer = strand->parts.part.peers[step.peer];
  if (is_local(id, peer)) {
    deliver_here(id, *strand, peer, sent, peer == id ? sent : seen, subject, number);
  } else {
    send_between(id, peer, sent, subject, number, strand->path);
  }
}

template <bool kTraced>
bool Simulation<kTraced>::await(std::uint32_t id, StrandState* strand, const Step& step) {
  RankState& state = states_[id];
  const std::uint32_t peer = strand->parts.part.peers[step.peer];
  if (strand->since < 0) {
    strand->since = strand->ready;
    if (step.kind == OpKind::kRecv && !is_local(id, peer)) {
      strand->ready += machine::recv_post_ps(machine_);
      state.cpu = strand->ready;
    }
  }
  const MessageKey key(peer, step.channel, step.number + step.stride * strand->round);
  const std::int64_t by = has_strands(state) ? strand->ready : INT64_MAX;
  const std::optional<Arrived> arrived = inboxes_.take(&state.inbox, key, by);
  if (arrived && arrived->time > by) {  // meanwhile another strand may go on
    strand->ready = arrived->time;
    return true;
  }
  if (!arrived || static_cast<Role>(arrived->flags >> 3 & 3) == Role::kRequest) {
    if (arrived) grant(id, strand, *arrived);
    strand->state = StrandState::State::kNeedsMessage;
    strand->key = key;
    return false;
  }
  complete(id, strand, *arrived);
  return true;
}

// The message that the strand's wait or recv is for is there.
template <bool kTraced>
void Simulation<kTraced>::complete(std::uint32_t id, StrandState* strand, const Arrived& arrived) {
  const Step& step = strand->parts.part.shape->steps[strand->step];
  const std::uint32_t peer = strand->parts.part.peers[step.peer];
  const TransferTable::Costs& costs = transfers_[step.transfer];
  const bool is_recv = step.kind == OpKind::kRecv;
  std::int64_t cpu_ps = 0;
  if (!is_local(id, peer)) {
    cpu_ps = is_recv ? costs.recv_ps : machine::wait_ps(machine_);
  } else if (peer != id) {
    cpu_ps = is_recv ? costs.local_recv_ps : machine::local_wait_ps(machine_);
  }
  if constexpr (kTraced) {
    if (arrived.time > strand->ready && arrived.path != 0) {
      path_[arrived.path].came = arrived.time;
      strand->path = arrived.path;
    }
  }
  strand->state = StrandState::State::kReady;
  spend(id, strand, std::max(strand->ready, arrived.time) + cpu_ps, Activity::kWait, step);
  if ((arrived.flags & Subject{.credited = true}.flags()) != 0) {
    RankState& state = states_[id];
    if (!state.more) state.more = std::make_unique<More>();
    state.more->held.push_back({index_of(state, strand), step.link, peer, step.channel});
  }
  next_step(id, strand);
}

// The recv of a long send has met its request: an answer goes back.
template <bool kTraced>
void Simulation<kTraced>::grant(std::uint32_t id, StrandState* strand, const Arrived& arrived) {
  Subject subject = Subject::of(arrived.flags);
  subject.role = Role::kGrant;
  const std::int64_t met = std::max(strand->ready, arrived.time);
  const Step& step = strand->parts.part.shape->steps[strand->step];
  subject.channel = step.channel;
  const std::int32_t number = step.number + step.stride * strand->round;
  strand->ready = met + machine_.two_sided.rendezvous_ps;
  states_[id].cpu = strand->ready;
  const std::uint32_t path = arrived.path != 0 && arrived.time >= met ? arrived.path : strand->path;
  if constexpr (kTraced) path_[arrived.path].came = arrived.time;
  send_between(id, strand->parts.part.peers[step.peer], strand->ready, subject, number, path);
}

// A message's last byte is at the node.
template <bool kTraced>
void Simulation<kTraced>::receive(const Event& event) {
  const Subject subject = Subject::of(event.word);
  const bool has_payload = subject.role == Role::kPayload;
  Event later = event;
  later.time =
      network_.receive(node_, event.time, transfers_[has_payload ? subject.transfer : empty_]);
  if (subject.role == Role::kGrant) {
    if constexpr (kTraced) path_[event.path()].came = later.time;
    Subject payload = subject;
    payload.role = Role::kPayload;
    send_between(event.rank, event.from, later.time + machine_.two_sided.rendezvous_ps, payload,
                 event.number, event.path());
    return;
  }
  if (later.time < window_end_) return deliver(later);
  Subject told = subject;
  told.kind = EventKind::kDeliver;
  later.word = told.word();
  calendar_.push(later);
}

// The reader can see it.
template <bool kTraced>
void Simulation<kTraced>::deliver(const Event& event) {
  using State = typename StrandState::State;
  RankState& state = states_[event.rank];
  Subject subject = Subject::of(event.word);
  const MessageKey key(event.from, subject.channel, event.number);
  subject.kind = EventKind::kRelease;  // which is 0, as is channel pair
  subject.channel = Channel::kPair;
  const Arrived arrived{event.time, subject.flags() == 0 ? 0 : subject.word(), event.path()};
  StrandState* const strand = find_strand(&state, [&](const StrandState& each) {
    return each.state == State::kNeedsMessage && each.key == key;
  });
  if (strand == nullptr) {
    const bool runs = !has_strands(state) && state.first.state == State::kReady;
    const std::int64_t next_look = runs ? std::max(state.first.ready, now_) : now_;
    return inboxes_.put(&state.inbox, key, arrived, next_look);
  }
  if (has_strands(state)) {
    inboxes_.put(&state.inbox, key, arrived, now_);
    strand->ready = std::max(strand->ready, event.time);
    strand->state = State::kReady;
  } else if (subject.role == Role::kRequest) {
    grant(event.rank, strand, arrived);
  } else {
    complete(event.rank, strand, arrived);
  }
  run(event.rank);
}

// A reader has given a place of the channel's window back.
template <bool kTraced>
void Simulation<kTraced>::released(const Event& event) {
  using State = typename StrandState::State;
  RankState& state = states_[event.rank];
  if (!state.more) return;  // it has ended
  const Channel channel = Subject::of(event.word).channel;
  const std::uint32_t peer = channel == Channel::kAll ? 0xffffffff : event.from;
  Credit& credit =
      state.more->credits[std::uint64_t{peer} << 2 | static_cast<std::uint64_t>(channel)];
  ++credit.released;
  // `peer` as take_credit writes it down.
  const MessageKey key(channel == Channel::kAll ? 0xffffffff : peer, channel, 0);
  StrandState* const strand = find_strand(&state, [&](const StrandState& each) {
    return each.state == State::kNeedsCredit && each.key == key;
  });
  if (strand == nullptr) return;
  strand->ready = std::max(strand->ready, event.time);
  if (strand->ready > strand->since) {
    report_.activity_ps[static_cast<std::size_t>(Activity::kWait)] += strand->ready - strand->since;
    if constexpr (kTraced) {
      if (event.path() != 0) strand->path = event.path();
    }
  }
  strand->since = -1;
  strand->state = State::kReady;
  run(event.rank);
}

// The strand has done the step: messages whose last use that was go back to their writers.
template <bool kTraced>
void Simulation<kTraced>::release(std::uint32_t id, std::uint32_t strand, std::uint32_t step,
                                  std::int64_t time) {
  RankState& state = states_[id];
  const StrandState& reader = strand == 0 ? state.first : state.more->strands[strand - 1];
  std::vector<Held>& held = state.more->held;
  std::size_t kept = 0;
  for (const Held& each : held) {
    if (each.strand != strand || each.step != step) {
      held[kept++] = each;
      continue;
    }
    Event event;
    event.time =
        time + (is_local(id, each.writer) ? machine_.shared_memory.latency_ps
                                          : network_.release_ps(node_, node_of(each.writer)));
    event.rank = each.writer;
    event.from = id;
    event.word = Subject{.kind = EventKind::kRelease, .channel = each.channel}.word();
    event.set_path(path_node(reader.path, id, each.writer, time));
    if constexpr (kTraced) path_[event.path()].came = event.time;
    push(event);
  }
  held.resize(kept);
}

}  // namespace carillon::sim
