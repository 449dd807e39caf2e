// SPDX-License-Identifier: Apache-2.0
//
// Simulation: messages, from the post to the release.
//
//   put, signal   payload ----------------------------------> wait ... last use
//                 (may go on) <------------------------------ release, where windows are short
//   multicast     payload, once --- copied by the switches ---> receive of each; they acknowledge
//   send, long    request ----------------------------------> recv
//                 grant <-------------------------------------
//                 payload ----------------------------------> (recv goes on)
#pragma once

#include <algorithm>
#include <unordered_set>

#include "sim/simulation.h"

namespace carillon::sim {

template <bool kFull>
std::uint32_t Simulation<kFull>::path_node(std::uint32_t path, std::uint32_t from, std::uint32_t to,
                                           std::int64_t sent) {
  if constexpr (!kFull) return 0;
  if (!options_.critical_path) return 0;
  path_.push_back(
      {path, static_cast<Rank>(owner_of(from)), static_cast<Rank>(owner_of(to)), sent, sent});
  if constexpr (kFull) path_.back().call = state_of(from).call;
  return static_cast<std::uint32_t>(path_.size() - 1);
}

// The strand goes on with what came at that time: if the rank had nothing else to do until then,
// all that it does from now on comes after it.
template <bool kFull>
void Simulation<kFull>::note_wait(std::uint32_t id, std::int64_t came, std::uint32_t path) {
  if constexpr (kFull) {
    if (path == 0 || came <= cpu_of(id)) return;
    path_[path].came = came;
    state_of(agent_of(id)).path = path;
  }
}

// A message that another strand or rank of the node finds in its memory at `time`.
template <bool kFull>
void Simulation<kFull>::deliver_here(std::uint32_t id, std::uint32_t to, std::int64_t sent,
                                     std::int64_t time, Subject subject, std::int32_t number) {
  subject.kind = EventKind::kDeliver;
  Event event;
  event.time = time + (crosses(id, to) ? machine_.shared_memory.cross_latency_ps : 0);
  event.rank = to;
  event.from = id;
  event.word = subject.word();
  event.number = number;
  event.set_path(path_node(path_of(id), id, to, sent));
  push(event);
}

// A message that is handed to the NIC at `time`.
template <bool kFull>
void Simulation<kFull>::send_between(std::uint32_t id, std::uint32_t to, std::int64_t time,
                                     Subject subject, std::int32_t number, std::uint32_t path) {
  subject.kind = EventKind::kMessage;
  const bool has_payload = subject.role == Role::kPayload;
  if (has_payload && cores_.are_shared() && !is_group(subject.channel)) {
    cores_.sent(owner_of(to), transfers_[subject.transfer].transfer.bytes);
  }
  Event event;
  event.time = network_.send(place_of(id), place_of(to), time,
                             transfers_[has_payload ? subject.transfer : empty_]);
  event.rank = to;
  event.from = id;
  event.word = subject.word();
  event.number = number;
  event.set_path(path_node(path, id, to, time));
  push(event);
}

// Whether the channel's window has room; else the strand waits for a release.
template <bool kFull>
bool Simulation<kFull>::take_credit(std::uint32_t id, StrandState* strand, const Step& step) {
  RankState& state = state_of(id);
  const std::uint64_t key = channel_key(id, *strand, step);
  if (!state.more) state.more = std::make_unique<More>();
  Credit& credit = state.more->credits[key];
  const Flight& flight = flight_of(id);
  const Call& call = flight.job->call;
  const std::int64_t readers =
      readers_of(step.channel, static_cast<Rank>(id - flight.base), call.shared.ranks, call.limits);
  if ((credit.posted - call.limits.window + 1) * readers > credit.released) {
    strand->state = StrandState::State::kNeedsCredit;
    strand->key = MessageKey(static_cast<std::uint32_t>(key >> 3), step.channel, 0);
    return false;
  }
  ++credit.posted;
  return true;
}

template <bool kFull>
bool Simulation<kFull>::post(std::uint32_t id, StrandState* strand, const Step& step) {
  const TransferTable::Costs& costs = transfers_[step.transfer];
  const bool to_all = has_readers(step.channel);
  const bool to_group = is_group(step.channel);
  const std::uint32_t peer = to_all ? id : peer_of(id, *strand, step);
  const bool remote = to_group || (!to_all && !is_local(id, peer));
  const std::int64_t remote_ps = to_group                     ? costs.multicast_ps
                                 : step.kind == OpKind::kSend ? costs.send_ps
                                                              : costs.put_ps;
  const std::int64_t remote_copy_ps = to_group                     ? costs.group_copy_ps
                                      : step.kind == OpKind::kSend ? costs.send_copy_ps
                                                                   : costs.put_copy_ps;
  const bool lent = is_lent(*strand, step);
  const auto& more = state_of(id).more;
  // Once a channel has been short of room it is counted to the end (of a schedule in windows). What
  // a rank's strands tell each other is not: they post in any order, and places are counted, while
  // the window is by number.
  const bool is_own = !to_all && !to_group && peer == id;
  const bool is_counted = more && !more->credits.empty() && step.kind != OpKind::kSend &&
                          more->credits.contains(channel_key(id, *strand, step));
  const bool credited = !is_own && (step.credited != 0 || is_counted);
  if (!strand->posting) {
    if (credited && !take_credit(id, strand, step)) {
      strand->since = strand->ready;
      return false;
    }
    const std::int64_t begin = strand->ready;
    std::int64_t end = begin;
    if (remote) {
      end = network_.room(place_of(id), begin) + remote_ps;
      if (remote_copy_ps > 0) end = network_.use_memory(node_, begin, end, costs.memory_ps);
    } else if (lent) {
      end += machine::lend_ps(machine_);
    } else if (to_all || peer != id) {
      end = network_.use_memory(node_, begin, begin + costs.local_put_ps, costs.memory_ps);
    }
    spend(id, strand, end, Activity::kSend, step);
    if (remote) {
      count_as_copy(Activity::kSend, remote_copy_ps);
    } else if (end > begin && !lent) {
      count_as_copy(Activity::kSend, costs.local_put_copy_ps);
    }
    count_message(costs.transfer.bytes);
    // The NIC is asked when it is time: others of the node, or other strands, may be first.
    strand->posting = (careful_ || shares_cpu(state_of(id))) && remote && end > begin;
    if (strand->posting) return true;
  }
  strand->posting = false;
  Subject subject{
      .credited = credited, .lent = lent, .channel = step.channel, .transfer = step.transfer};
  if (lent) lend(id, step);
  if (remote && step.kind == OpKind::kSend && !machine::is_eager(machine_, costs.transfer.bytes)) {
    subject.role = Role::kRequest;
    ++state_of(id).asking;
  }
  leave_cpu(id, strand, step, subject);
  next_step(id, strand);
  return true;
}

// What has been posted goes its way.
template <bool kFull>
void Simulation<kFull>::leave_cpu(std::uint32_t id, StrandState* strand, const Step& step,
                                  Subject subject) {
  const std::int32_t number = step.number + step.stride * strand->round;
  const std::int64_t sent = strand->ready;
  const std::int64_t seen = sent + machine_.shared_memory.latency_ps;
  if (is_group(step.channel)) return multicast(id, *strand, step, subject);
  if (is_shared(step.channel)) {
    const Flight& flight = flight_of(id);
    const Limits& limits = flight.job->call.limits;
    const bool in_domain = step.channel == Channel::kDomain && limits.domains;
    const Nodes* const parts = in_domain ? limits.domains.get() : limits.nodes.get();
    const auto ranks = static_cast<std::uint32_t>(flight.job->call.shared.ranks);
    for (std::uint32_t to = flight.base; parts == nullptr && to < flight.base + ranks; ++to) {
      if (to != id) deliver_here(id, to, sent, seen, subject, number);
    }
    if (parts == nullptr) return;
    for (const Rank member : parts->members(parts->node_of(static_cast<Rank>(id - flight.base)))) {
      const std::uint32_t to = flight.base + static_cast<std::uint32_t>(member);
      if (to != id) deliver_here(id, to, sent, seen, subject, number);
    }
    return;
  }
  const std::uint32_t peer = peer_of(id, *strand, step);
  if (is_local(id, peer)) {
    deliver_here(id, peer, sent, peer == id ? sent : seen, subject, number);
  } else {
    send_between(id, peer, sent, subject, number, path_of(id));
  }
}

// One message leaves the NIC; the first reader of each node takes it from the network, the others
// of the node, and of the writer's own, get copies from the NIC. One to nodes comes to each of them
// once (simulation_reception-inl.h).
template <bool kFull>
void Simulation<kFull>::multicast(std::uint32_t id, const StrandState& strand, const Step& step,
                                  Subject subject) {
  const Flight& flight = flight_of(id);
  const Call& call = flight.job->call;
  const auto writer = static_cast<Rank>(id - flight.base);
  std::vector<std::uint32_t> readers;
  std::int32_t levels = 0;
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    const std::uint32_t to = flight.base + static_cast<std::uint32_t>(rank);
    if (to == id || !hears(step.channel, writer, rank, call.limits)) continue;
    readers.push_back(to);
    levels = std::max(levels, network_.levels(place_of(id), place_of(to)));
  }
  const std::int64_t left =
      network_.leave(place_of(id), levels, strand.ready, transfers_[subject.transfer]);
  std::unordered_set<std::int32_t> reached{place_of(id)};
  subject.kind = EventKind::kMessage;
  for (const std::uint32_t to : readers) {
    const bool is_first = reached.insert(place_of(to)).second;
    if (!is_first && step.channel == Channel::kNodes) continue;
    subject.role = is_first ? Role::kPayload : Role::kCopy;
    Event event;
    event.time = left;
    if (!is_local(id, to)) {
      event.time +=
          machine::multicast_latency_ps(machine_, network_.levels(place_of(id), place_of(to)));
    }
    event.rank = to;
    event.from = id;
    event.word = subject.word();
    event.number = step.number + step.stride * strand.round;
    event.set_path(path_node(path_of(id), id, to, strand.ready));
    push(event);
  }
}

template <bool kFull>
bool Simulation<kFull>::await(std::uint32_t id, StrandState* strand, const Step& step) {
  RankState& state = state_of(id);
  const std::uint32_t peer = peer_of(id, *strand, step);
  const bool is_new = strand->since < 0;
  if (is_new) {
    strand->since = strand->ready;
    if (step.kind == OpKind::kRecv && !is_local(id, peer)) {
      strand->ready += machine::recv_post_ps(machine_);
      cpu_of(id) = strand->ready;
    }
  }
  const std::int32_t number = step.number + step.stride * strand->round;
  const MessageKey granted(peer, step.channel, number | kGranted);
  const MessageKey key =
      !is_new && strand->key == granted ? granted : MessageKey(peer, step.channel, number);
  const std::int64_t by = shares_cpu(state) ? strand->ready : INT64_MAX;
  const std::optional<Arrived> arrived = inboxes_.take(&state.inbox, key, by);
  if (arrived && arrived->time > by) {  // meanwhile another strand may go on
    strand->ready = arrived->time;
    return true;
  }
  if (!arrived || static_cast<Role>(arrived->flags >> 3 & 3) == Role::kRequest) {
    strand->state = StrandState::State::kNeedsMessage;
    strand->key = key;
    if (arrived) grant(id, strand, *arrived);
    if (is_new && step.channel == Channel::kNodes) wait_for_node(id, *strand, key);
    return false;
  }
  complete(id, strand, *arrived);
  return true;
}

// The message that the strand's wait or recv is for is there.
template <bool kFull>
void Simulation<kFull>::complete(std::uint32_t id, StrandState* strand, const Arrived& arrived) {
  const Step& step = strand->parts.part.shape->steps[strand->step];
  if (step.kind == OpKind::kAggregate) return take_result(id, strand, step, arrived);
  const std::uint32_t peer = peer_of(id, *strand, step);
  const TransferTable::Costs& costs = transfers_[step.transfer];
  const bool is_recv = step.kind == OpKind::kRecv;
  const Subject came = Subject::of(arrived.flags);
  const std::int64_t begin = std::max(strand->ready, arrived.time);
  std::int64_t end = begin;
  std::int64_t copy_ps = 0;  // of the time until then
  note_wait(id, arrived.time, arrived.path);
  strand->landed = came.lent && step.lending == Lending::kLands;
  if (step.kind == OpKind::kReceive) {
    const auto take = [&](std::int64_t cpu_ps) {
      end = network_.use_memory(node_, begin, end + cpu_ps, costs.memory_ps);
      copy_ps += costs.group_copy_ps;
    };
    if (came.role != Role::kCopy) take(costs.receive_group_ps);
    if (step.channel == Channel::kNodes) {
      if (came.role != Role::kCopy) {
        publish(id, end,
                {.credited = came.credited, .channel = step.channel, .transfer = step.transfer},
                peer, step.number + step.stride * strand->round);
      }
      take(costs.local_recv_ps);
    }
  } else if (!is_local(id, peer)) {
    end += is_recv ? costs.recv_ps : machine::wait_ps(machine_);
    if (cores_.are_shared()) {
      const std::int64_t bytes = transfers_[came.transfer].transfer.bytes;
      end += machine::shared_read_ps(machine_, bytes, cores_.read(owner_of(id), bytes));
    }
    if (is_recv) copy_ps = costs.recv_copy_ps;
  } else if (came.lent) {
    end = read_lent(begin, *strand, step, came.transfer, &copy_ps);
  } else if (peer != id) {
    end += is_recv ? costs.local_recv_ps : machine::local_wait_ps(machine_);
    if (is_recv) copy_ps = costs.local_recv_copy_ps;
  }
  if (is_recv && copy_ps > 0 && !came.lent) {
    end = network_.use_memory(node_, begin, end, costs.memory_ps);
  }
  strand->state = StrandState::State::kReady;
  // What nothing uses is not read.
  const bool is_read = step.kind != OpKind::kWait || step.link != strand->step;
  if (is_read && crosses(peer, id)) {
    const std::int64_t bytes = transfers_[came.transfer].transfer.bytes;
    end = network_.cross(domains_->node_of(static_cast<Rank>(id)), end,
                         machine::crossing_ps(machine_, bytes));
  }
  spend(id, strand, end, Activity::kWait, step);
  count_as_copy(Activity::kWait, copy_ps);
  if (came.credited || came.lent) {
    RankState& state = state_of(id);
    if (!state.more) state.more = std::make_unique<More>();
    const std::uint32_t last_use = is_recv ? strand->step : step.link;
    state.more->held.push_back(
        {index_of(state, strand), last_use, peer, step.channel, came.credited, came.lent});
  }
  next_step(id, strand);
}

// The recv of a long send has met its request: an answer goes back. What it now waits for has a key
// of its own: in a schedule by windows the next message of the channel, with no number either, must
// not be taken for it.
template <bool kFull>
void Simulation<kFull>::grant(std::uint32_t id, StrandState* strand, const Arrived& arrived) {
  Subject subject = Subject::of(arrived.flags);
  subject.role = Role::kGrant;
  const std::int64_t met = std::max(strand->ready, arrived.time);
  const Step& step = strand->parts.part.shape->steps[strand->step];
  subject.channel = step.channel;
  const std::int32_t number = (step.number + step.stride * strand->round) | kGranted;
  note_wait(id, arrived.time, arrived.path);
  strand->ready = met + machine_.two_sided.rendezvous_ps;
  cpu_of(id) = strand->ready;
  const std::uint32_t peer = peer_of(id, *strand, step);
  strand->key = MessageKey(peer, step.channel, number);
  send_between(id, peer, strand->ready, subject, number, path_of(id));
}

// A message's last byte is at the node.
template <bool kFull>
void Simulation<kFull>::receive(const Event& event) {
  if (sparse_ && !wake_up(event.rank)) return;
  const Subject subject = Subject::of(event.word);
  const bool is_copy = subject.role == Role::kCopy;
  const bool has_payload = is_copy || subject.role == Role::kPayload;
  const TransferTable::Costs& costs = transfers_[has_payload ? subject.transfer : empty_];
  Event later = event;
  later.time = is_copy ? network_.copy_out(node_, event.time, costs)
                       : network_.receive(node_, event.time, costs);
  if (subject.channel == Channel::kNodes) return come_to_node(later);
  if (subject.role == Role::kGrant) {
    if constexpr (kFull) path_[event.path()].came = later.time;
    Subject payload = subject;
    payload.role = Role::kPayload;
    send_between(event.rank, event.from, later.time + machine_.two_sided.rendezvous_ps, payload,
                 event.number, event.path());
    return granted(event.rank);
  }
  Subject told = subject;
  told.kind = EventKind::kDeliver;
  if (is_copy) told.role = Role::kPayload;
  later.word = told.word();
  // At once, unless that would overtake others: those that were too late for the window before,
  // say, or copies, which can be a long time coming; or others of the node at its memory, where
  // the reader copies as soon as it hears of the message.
  const bool copies_now = careful_ && network_.shares_memory() && !shares_cpu(state_of(event.rank));
  const bool soon = later.time < window_end_ && !is_group(subject.channel) && !copies_now;
  if (soon && delivers_until_ < now_ && !cores_.are_shared()) return deliver(later);
  push(later);
}

// The rank will not look for a message before. Of several strands one may have been ready for some
// time, and looks as of then.
template <bool kFull>
std::int64_t Simulation<kFull>::next_look(RankState* rank) {
  const StrandState* const next = next_strand(rank);
  if (next == nullptr) return now_;
  return shares_cpu(*rank) ? std::min(next->ready, now_) : std::max(next->ready, now_);
}

// The reader can see it.
template <bool kFull>
void Simulation<kFull>::deliver(const Event& event) {
  using State = typename StrandState::State;
  if (!wake_up(event.rank)) return;
  RankState& state = state_of(event.rank);
  Subject subject = Subject::of(event.word);
  const MessageKey key(event.from, subject.channel, event.number);
  subject.kind = EventKind::kRelease;  // which is 0, as is channel pair
  subject.channel = Channel::kPair;
  // The reader's time depends on what has come where cores are shared, or from another domain.
  const bool is_plain =
      subject.flags() == 0 && !cores_.are_shared() && !crosses(event.from, event.rank);
  const Arrived arrived{event.time, is_plain ? 0 : subject.word(), event.path()};
  StrandState* const strand = find_strand(&state, [&](const StrandState& each) {
    return each.state == State::kNeedsMessage && each.key == key;
  });
  if (strand == nullptr) return inboxes_.put(&state.inbox, key, arrived, next_look(&state));
  if (shares_cpu(state) || cores_.are_shared()) {
    inboxes_.put(&state.inbox, key, arrived, next_look(&state));
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
template <bool kFull>
void Simulation<kFull>::released(const Event& event) {
  using State = typename StrandState::State;
  RankState& state = state_of(event.rank);
  if constexpr (kFull) {
    if (replay_ && --state.flight->releases == 0) land(state.flight);
  }
  if (!state.more) return;  // it has ended
  const Subject subject = Subject::of(event.word);
  if (subject.lent) end_lending(event);
  if (!subject.credited || !state.more) return;
  const Channel channel = subject.channel;
  const std::uint32_t peer = has_readers(channel) ? 0xffffffff : event.from;
  Credit& credit =
      state.more->credits[std::uint64_t{peer} << 3 | static_cast<std::uint64_t>(channel)];
  ++credit.released;
  // `peer` as take_credit writes it down.
  const MessageKey key(peer, channel, 0);
  StrandState* const strand = find_strand(&state, [&](const StrandState& each) {
    return each.state == State::kNeedsCredit && each.key == key;
  });
  if (strand == nullptr) return;
  strand->ready = std::max(strand->ready, event.time);
  if (strand->ready > strand->since) {
    report_.activity_ps[static_cast<std::size_t>(Activity::kWait)] += strand->ready - strand->since;
    note_wait(event.rank, event.time, event.path());
  }
  strand->since = -1;
  strand->state = State::kReady;
  run(event.rank);
}

// The strand has done the step: messages whose last use that was go back to their writers.
template <bool kFull>
void Simulation<kFull>::release(std::uint32_t id, std::uint32_t strand, std::uint32_t step,
                                std::int64_t time) {
  RankState& state = state_of(id);
  std::vector<Held>& held = state.more->held;
  std::size_t kept = 0;
  for (const Held& each : held) {
    if (each.strand != strand || each.step != step) {
      held[kept++] = each;
      continue;
    }
    Event event;
    event.time =
        time + (is_group(each.channel)      ? machine_.multicast.ack_ps
                : is_local(id, each.writer) ? machine_.shared_memory.latency_ps
                                            : network_.release_ps(node_, node_of(each.writer)));
    event.rank = each.writer;
    event.from = id;
    event.word = Subject{.kind = EventKind::kRelease,
                         .credited = each.credited,
                         .lent = each.lent,
                         .channel = each.channel}
                     .word();
    if constexpr (kFull) {
      if (replay_) ++state.flight->releases;
    }
    event.set_path(path_node(path_of(id), id, each.writer, time));
    if constexpr (kFull) path_[event.path()].came = event.time;
    push(event);
  }
  held.resize(kept);
}

}  // namespace carillon::sim
