// SPDX-License-Identifier: Apache-2.0
#include "switch/model/switch.h"

#include <array>

namespace carillon::aggregate {
namespace {

// What a refusal may answer; nothing else is, so that two switches cannot go on for ever.
bool is_request(Kind kind) {
  switch (kind) {
    case Kind::kContribute:
    case Kind::kAskLimits:
    case Kind::kInstallJob:
    case Kind::kRemoveJob:
    case Kind::kBuildGroup:
    case Kind::kFreeGroup: return true;
    default: return false;
  }
}

}  // namespace

Switch::Member* Switch::find_group(const Header& header) {
  const auto found = groups_.find(name_of_group(header));
  if (found == groups_.end()) return nullptr;
  return &found->second;
}

void Switch::receive(const Endpoint& from, std::span<const std::byte> datagram, Output& output) {
  const auto packet = parse(datagram);
  if (!packet) {
    ++counters_.malformed;
    return;
  }
  const Header& header = packet->header;
  const auto job = jobs_.find(header.job);
  const bool administrators = is_administrators(header);
  if (!administrators && job == jobs_.end()) {
    ++counters_.unknown_job;
    if (is_request(header.kind)) refuse_unknown_job(from, header, output);
    return;
  }
  const SipKey& key = administrators ? config_.administrator : job->second.key;
  // A parent that does not know the job cannot make its tag; the group looks at what it has.
  const bool untagged = header.kind == Kind::kRefuse && header.reason == Reason::kUnknownJob;
  if (!untagged && !is_authentic(key, datagram)) {
    ++counters_.bad_tag;
    return;
  }
  dispatch({from, *packet, datagram, key}, job == jobs_.end() ? nullptr : &job->second, output);
}

void Switch::dispatch(const Arrival& arrival, InstalledJob* job, Output& output) {
  switch (arrival.packet.header.kind) {
    case Kind::kContribute: contribute(arrival, output); return;
    case Kind::kResult:
    case Kind::kRefuse: from_parent(arrival, output); return;
    default: break;
  }
  if (is_request(arrival.packet.header.kind)) {
    control(arrival, job, output);
  } else {
    ++counters_.unexpected;
  }
}

void Switch::contribute(const Arrival& arrival, Output& output) {
  Member* const member = find_group(arrival.packet.header);
  if (member == nullptr) {
    refuse(arrival, Reason::kUnknownGroup, output);
    return;
  }
  if (!member->group->is_child(arrival.packet.header.child, arrival.from)) {
    ++counters_.wrong_source;
    return;
  }
  member->touched = time_;
  member->group->note_way(arrival.packet.header.child, arrival.from);
  const Reason reason = member->group->contribute(arrival.packet, counters_, output);
  if (reason != Reason::kNone) refuse(arrival, reason, output);
}

void Switch::from_parent(const Arrival& arrival, Output& output) {
  Member* const member = find_group(arrival.packet.header);
  if (member == nullptr) {
    ++counters_.unknown_group;
    return;
  }
  const Shape& shape = member->group->shape();
  if (shape.is_root() || !(shape.parent == arrival.from)) {
    ++counters_.wrong_source;
    return;
  }
  if (arrival.packet.header.kind == Kind::kRefuse) {
    member->group->take_refusal(arrival.packet, arrival.datagram, counters_, output);
    return;
  }
  member->touched = time_;
  member->group->take_result(arrival.packet, arrival.datagram, counters_, output);
}

// It repeats the tag, which only who sees the packet knows, and is no longer than what it answers.
void Switch::refuse_unknown_job(const Endpoint& from, const Header& header, Output& output) {
  std::array<std::byte, kHeaderBytes> datagram{};
  store(datagram.data(), refusal_of(header, Reason::kUnknownJob));
  output.send({&from, 1}, datagram);
}

void Switch::refuse(const Arrival& arrival, Reason reason, Output& output) {
  ++counters_.refused;
  std::array<std::byte, kHeaderBytes> datagram{};
  seal(arrival.key, refusal_of(arrival.packet.header, reason), datagram);
  output.send({&arrival.from, 1}, datagram);
}

void Switch::pass_time(std::uint64_t most) {
  ++time_;
  for (auto group = groups_.begin(); group != groups_.end();) {
    if (time_ - group->second.touched > most) {
      group = free_group(group);
      ++counters_.idle_groups;
    } else {
      ++group;
    }
  }
  std::erase_if(jobs_, [&](const auto& job) {
    const bool idle = job.second.groups == 0 && time_ - job.second.touched > most;
    if (idle && observer_ != nullptr) observer_->on_job_gone(job.first);
    return idle;
  });
}

}  // namespace carillon::aggregate
