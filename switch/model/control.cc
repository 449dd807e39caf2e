// SPDX-License-Identifier: Apache-2.0
//
// Jobs and groups of a switch: what requests make of them. A request that comes twice gets the
// same answer twice.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "switch/model/switch.h"

namespace carillon::aggregate {
namespace {

Shape read_shape(std::span<const std::byte> payload) {
  const Tree tree = load_tree(payload.data());
  Shape shape = {.parent = {tree.parent_ip, tree.parent_port},
                 .parent_child = tree.parent_child,
                 .window = tree.window,
                 .operand_bytes = tree.operand_bytes,
                 .children = {},
                 .places = {}};
  for (std::size_t i = 0; i < tree.children; ++i) {
    const Child child = load_child(payload.data() + kTreeBytes + i * kChildBytes);
    shape.children.push_back({child.ip, child.port});
  }
  return shape;
}

}  // namespace

void Switch::control(const Arrival& arrival, InstalledJob* job, Output& output) {
  const Header& header = arrival.packet.header;
  const auto payload = arrival.packet.payload;
  if (job != nullptr) job->touched = time_;
  Reason reason = Reason::kNone;
  Kind kind = Kind::kLimits;
  std::uint32_t group = header.group;
  switch (header.kind) {
    case Kind::kAskLimits:  // of a host that waits, or will
      if (Member* const member = find_group(header); member != nullptr) member->touched = time_;
      break;
    case Kind::kInstallJob:
      kind = Kind::kJobInstalled;
      reason = install_job(header, load_job(payload.data()));
      break;
    case Kind::kRemoveJob:
      kind = Kind::kJobRemoved;
      reason = remove_job(header, load_job(payload.data()));
      break;
    case Kind::kBuildGroup:
      kind = Kind::kGroupBuilt;
      reason = job == nullptr ? Reason::kUnknownJob : build_group(arrival, *job, &group);
      break;
    default:
      kind = Kind::kGroupFreed;
      if (const auto found = groups_.find(name_of_group(header)); found != groups_.end()) {
        (void)free_group(found);
      }
  }
  if (reason != Reason::kNone) {
    refuse(arrival, reason, output);
    return;
  }
  ++counters_.control;
  if (kind == Kind::kLimits) {
    tell_limits(arrival, output);
  } else {
    answer(arrival, kind, output, group);
  }
}

void Switch::answer(const Arrival& arrival, Kind kind, Output& output, std::uint32_t group,
                    std::span<const std::byte> payload) {
  std::array<std::byte, kHeaderBytes + kLimitsBytes> datagram{};
  Header header = arrival.packet.header;
  header.kind = kind;
  header.group = group;
  std::copy(payload.begin(), payload.end(), datagram.begin() + kHeaderBytes);
  const auto bytes = std::span(datagram).first(kHeaderBytes + payload.size());
  seal(arrival.key, header, bytes);
  output.send({&arrival.from, 1}, bytes);
}

void Switch::tell_limits(const Arrival& arrival, Output& output) {
  const Limits limits = {.children = config_.children,
                         .window = config_.window,
                         .operand_bytes = config_.operand_bytes,
                         .number = config_.number,
                         .groups = config_.groups,
                         .free_groups = static_cast<std::uint32_t>(config_.groups - groups_.size()),
                         .memory_bytes = config_.memory_bytes,
                         .free_memory_bytes = config_.memory_bytes - used_bytes_};
  std::array<std::byte, kLimitsBytes> payload{};
  store(payload.data(), limits);
  answer(arrival, Kind::kLimits, output, arrival.packet.header.group, payload);
}

Reason Switch::install_job(const Header& header, const Job& wanted) {
  const auto found = jobs_.find(header.job);
  if (found != jobs_.end()) {
    if (found->second.quota.nonce != wanted.nonce) return Reason::kJobDiffers;
    found->second.quota = wanted;
    return Reason::kNone;
  }
  if (jobs_.size() >= config_.jobs) return Reason::kNoRoom;
  jobs_[header.job] = {.key = job_key(config_.administrator, header.job, wanted.nonce),
                       .quota = wanted,
                       .touched = time_};
  if (observer_ != nullptr) observer_->on_job(header.job, jobs_[header.job].key);
  return Reason::kNone;
}

Reason Switch::remove_job(const Header& header, const Job& wanted) {
  const auto found = jobs_.find(header.job);
  if (found == jobs_.end()) return Reason::kNone;
  if (found->second.quota.nonce != wanted.nonce) return Reason::kJobDiffers;
  auto group = groups_.lower_bound(std::uint64_t{header.job} << 32);
  while (group != groups_.end() && group->first >> 32 == header.job) group = free_group(group);
  jobs_.erase(found);
  if (observer_ != nullptr) observer_->on_job_gone(header.job);
  return Reason::kNone;
}

bool Switch::can_be(const Shape& shape) const {
  const bool root = shape.is_root();
  if (!root && (!is_host(shape.parent) || shape.parent_child >= kMaxChildren)) return false;
  if (!std::has_single_bit(shape.window) || shape.window > config_.window) return false;
  if (shape.operand_bytes == 0 || shape.operand_bytes % 8 != 0 ||
      shape.operand_bytes > config_.operand_bytes || shape.children.size() > config_.children) {
    return false;
  }
  bool any = false;
  for (const Endpoint& child : shape.children) {
    if (child == Endpoint{}) continue;
    if (!is_host(child)) return false;
    any = true;
  }
  return any;
}

Reason Switch::allot(const Header& header, InstalledJob& job, std::uint32_t* group) const {
  constexpr std::uint32_t kMost = (1U << kGroupCounterBits) - 1;
  // None comes twice under one key: old packets are of no group then.
  do {
    if (job.allotted == kMost) return Reason::kNoRoom;
    *group = std::uint32_t{config_.number} << kGroupCounterBits | ++job.allotted;
  } while (groups_.contains(std::uint64_t{header.job} << 32 | *group));
  return Reason::kNone;
}

Reason Switch::build_group(const Arrival& arrival, InstalledJob& job, std::uint32_t* group) {
  const Header& header = arrival.packet.header;
  Shape shape = read_shape(arrival.packet.payload);
  if (!can_be(shape)) return Reason::kBadTree;
  shape.parent.own_ip = arrival.from.own_ip;  // where the parent has been told to find this switch
  const bool allots = header.group == 0;
  const std::uint64_t first = std::uint64_t{header.job} << 32;
  for (auto i = groups_.lower_bound(first); i != groups_.end() && i->first >> 32 == header.job;
       ++i) {
    const Member& member = i->second;
    const bool same = allots ? member.allotted && member.request == header.sequence &&
                                   member.asker == arrival.from
                             : i->first == name_of_group(header);
    if (!same) continue;
    *group = static_cast<std::uint32_t>(i->first);
    return member.group->shape() == shape ? Reason::kNone : Reason::kGroupDiffers;
  }
  const std::uint64_t bytes = shape.memory_bytes();
  if (job.groups >= job.quota.groups || bytes > job.quota.memory_bytes ||
      job.memory_bytes > job.quota.memory_bytes - bytes) {
    return Reason::kQuota;
  }
  if (groups_.size() >= config_.groups || bytes > config_.memory_bytes - used_bytes_) {
    return Reason::kNoRoom;
  }
  if (allots) {
    if (const Reason reason = allot(header, job, group); reason != Reason::kNone) return reason;
  }
  groups_[first | *group] = {.group = std::make_unique<Group>(header.job, *group, job.key,
                                                              std::move(shape), config_.first),
                             .asker = arrival.from,
                             .request = header.sequence,
                             .allotted = allots,
                             .touched = time_};
  ++job.groups;
  job.memory_bytes += bytes;
  used_bytes_ += bytes;
  if (observer_ != nullptr) {
    observer_->on_group(header.job, *group, groups_.at(first | *group).group->shape());
  }
  return Reason::kNone;
}

Switch::Groups::iterator Switch::free_group(Groups::iterator group) {
  const std::uint64_t bytes = group->second.group->shape().memory_bytes();
  InstalledJob& job = jobs_.at(static_cast<std::uint32_t>(group->first >> 32));
  --job.groups;
  job.memory_bytes -= bytes;
  used_bytes_ -= bytes;
  job.touched = time_;
  if (observer_ != nullptr) {
    observer_->on_group_gone(static_cast<std::uint32_t>(group->first >> 32),
                             static_cast<std::uint32_t>(group->first));
  }
  return groups_.erase(group);
}

}  // namespace carillon::aggregate
