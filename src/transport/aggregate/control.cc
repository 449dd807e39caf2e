// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/control.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "transport/aggregate/text.h"

namespace carillon::aggregate {
namespace {

Request job_request(Kind kind, const Endpoint& at, std::uint32_t job, const Job& quota) {
  Request request = {.to = at, .header = {.kind = kind, .job = job}, .payload = {}};
  request.payload.resize(kJobBytes);
  store(request.payload.data(), quota);
  return request;
}

// The answer to a request has the next number.
Kind answer_to(Kind kind) { return static_cast<Kind>(static_cast<std::uint8_t>(kind) + 1); }
static_assert(static_cast<int>(Kind::kLimits) == static_cast<int>(Kind::kAskLimits) + 1);
static_assert(static_cast<int>(Kind::kJobInstalled) == static_cast<int>(Kind::kInstallJob) + 1);
static_assert(static_cast<int>(Kind::kJobRemoved) == static_cast<int>(Kind::kRemoveJob) + 1);
static_assert(static_cast<int>(Kind::kGroupBuilt) == static_cast<int>(Kind::kBuildGroup) + 1);
static_assert(static_cast<int>(Kind::kGroupFreed) == static_cast<int>(Kind::kFreeGroup) + 1);

Status bad_plan(const std::string& what) {
  return {Code::kInvalidArgument, "aggregate: the switches are not a tree: " + what};
}

}  // namespace

void Requests::start(std::vector<Request> requests, std::int64_t now_ns) {
  asked_.clear();
  least_limits_ = {
      .children = kMaxChildren, .window = kMaxWindow, .operand_bytes = kMaxOperandBytes};
  status_ = {};
  unanswered_ = requests.size();
  for (Request& request : requests) {
    Asked asked = {.request = std::move(request), .datagram = {}, .due_ns = now_ns};
    Header& header = asked.request.header;
    header.version = kVersion;
    header.sequence = next_id_++;
    const auto& payload = asked.request.payload;
    asked.datagram.resize(kHeaderBytes);
    asked.datagram.insert(asked.datagram.end(), payload.begin(), payload.end());
    seal(key_, header, asked.datagram);
    asked_.push_back(std::move(asked));
  }
}

void Requests::progress(std::int64_t now_ns, Output& output) {
  if (done()) return;
  const std::int64_t most =
      std::max<std::int64_t>(times_.give_up_ns / std::max<std::int64_t>(times_.retry_ns, 1), 1);
  for (Asked& asked : asked_) {
    if (asked.answered || asked.due_ns > now_ns) continue;
    // By number and not by time: who slept has not asked meanwhile.
    if (asked.times == most) {
      status_ = Status(Code::kTimeout, "aggregate: no answer from " + text(asked.request.to) +
                                           ": does carillon switchd run there, with this key?");
      return;
    }
    ++asked.times;
    asked.due_ns = now_ns + times_.retry_ns;
    output.send({&asked.request.to, 1}, asked.datagram);
  }
}

bool Requests::take(const Endpoint& from, std::span<const std::byte> datagram) {
  const auto packet = parse(datagram);
  if (!packet) return false;
  const Header& header = packet->header;
  const auto asked = std::find_if(asked_.begin(), asked_.end(), [&](const Asked& one) {
    return !one.answered && one.request.to == from &&
           one.request.header.sequence == header.sequence && one.request.header.job == header.job;
  });
  if (asked == asked_.end()) return false;
  const bool refused = header.kind == Kind::kRefuseControl;
  if (!refused && header.kind != answer_to(asked->request.header.kind)) return false;
  if (!(refused ? is_refusal_of(key_, asked->datagram, datagram) : is_authentic(key_, datagram))) {
    return false;
  }
  if (refused) {
    if (status_.ok()) status_ = refusal_status(from, header.reason);
    return true;
  }
  asked->answered = true;
  --unanswered_;
  if (asked == asked_.begin()) first_answer_ = header;
  if (header.kind == Kind::kLimits) note(load_limits(packet->payload.data()));
  return true;
}

void Requests::note(const Limits& limits) {
  Limits& least = least_limits_;
  least.children = std::min(least.children, limits.children);
  least.window = std::min(least.window, limits.window);
  least.operand_bytes = std::min(least.operand_bytes, limits.operand_bytes);
}

Request install_job(const Endpoint& at, std::uint32_t job, const Job& quota) {
  return job_request(Kind::kInstallJob, at, job, quota);
}

Request remove_job(const Endpoint& at, std::uint32_t job, std::uint64_t nonce) {
  return job_request(Kind::kRemoveJob, at, job, {.nonce = nonce});
}

Request ask_limits(const Endpoint& at, std::uint32_t job) {
  return {.to = at, .header = {.kind = Kind::kAskLimits, .job = job}, .payload = {}};
}

Status check_plan(const TreePlan& plan) {
  if (plan.switches.empty()) return bad_plan("there are none");
  if (!std::has_single_bit(plan.window) || plan.window > kMaxWindow) {
    return bad_plan("a window of " + std::to_string(plan.window) + " is no power of two up to " +
                    std::to_string(kMaxWindow));
  }
  for (std::size_t i = 0; i < plan.switches.size(); ++i) {
    const TreeSwitch& one = plan.switches[i];
    if (one.parent.has_value() != (i > 0) || (i > 0 && *one.parent >= i)) {
      return bad_plan(text(one.at) + " does not come after its parent");
    }
    if (one.children.size() > kMaxChildren) return bad_plan(text(one.at) + " has too many ports");
    for (std::size_t j = 0; j < i; ++j) {
      if (plan.switches[j].at == one.at) return bad_plan(text(one.at) + " is there twice");
    }
    if (i == 0) continue;
    const auto& ports = plan.switches[*one.parent].children;
    if (std::count(ports.begin(), ports.end(), one.at) != 1) {
      return bad_plan(text(one.at) + " is not at one port of its parent");
    }
  }
  return {};
}

Request TreeControl::build_request(std::size_t index) const {
  const TreeSwitch& one = plan_.switches[index];
  Tree tree = {.window = plan_.window,
               .operand_bytes = plan_.operand_bytes,
               .children = static_cast<std::uint16_t>(one.children.size())};
  if (one.parent) {
    const TreeSwitch& parent = plan_.switches[*one.parent];
    const auto port = std::find(parent.children.begin(), parent.children.end(), one.at);
    tree.parent_ip = parent.at.ip;
    tree.parent_port = parent.at.port;
    tree.parent_child = static_cast<std::uint16_t>(port - parent.children.begin());
  }
  Request request = {.to = one.at,
                     .header = {.kind = Kind::kBuildGroup, .job = job_, .group = group_},
                     .payload = {}};
  request.payload.resize(kTreeBytes + one.children.size() * kChildBytes);
  store(request.payload.data(), tree);
  std::byte* to = request.payload.data() + kTreeBytes;
  for (const Endpoint& child : one.children) {
    store(to, Child{child.ip, child.port});
    to += kChildBytes;
  }
  return request;
}

void TreeControl::build(TreePlan plan, std::int64_t now_ns) {
  plan_ = std::move(plan);
  group_ = 0;
  status_ = {};
  step_ = Step::kRoot;
  requests_.start({build_request(0)}, now_ns);
}

void TreeControl::free(std::int64_t now_ns) {
  step_ = Step::kFree;
  std::vector<Request> requests;
  requests.reserve(plan_.switches.size());
  for (const TreeSwitch& one : plan_.switches) {
    requests.push_back({.to = one.at,
                        .header = {.kind = Kind::kFreeGroup, .job = job_, .group = group_},
                        .payload = {}});
  }
  requests_.start(std::move(requests), now_ns);
}

void TreeControl::progress(std::int64_t now_ns, Output& output) {
  if (step_ == Step::kDone) return;
  requests_.progress(now_ns, output);
  if (!requests_.done()) return;
  const bool failed = !requests_.status().ok();
  if (failed && status_.ok()) status_ = requests_.status();
  if (step_ == Step::kRoot && !failed) {
    group_ = requests_.first_answer().group;
    step_ = Step::kOthers;
    std::vector<Request> requests;
    for (std::size_t i = 1; i < plan_.switches.size(); ++i) requests.push_back(build_request(i));
    requests_.start(std::move(requests), now_ns);
  } else if (step_ == Step::kOthers && failed) {
    free(now_ns);  // what there is of it
  } else {
    step_ = Step::kDone;
    return;
  }
  progress(now_ns, output);
}

}  // namespace carillon::aggregate
