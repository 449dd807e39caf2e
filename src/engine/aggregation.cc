// SPDX-License-Identifier: Apache-2.0
#include "engine/aggregation.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "team/bootstrap.h"
#include "transport/aggregate/key_file.h"
#include "transport/aggregate/one_switch.h"
#include "transport/aggregate/text.h"

namespace carillon {
namespace {

using aggregate::Endpoint;

constexpr std::uint32_t kBurstWindow = 64;  // of packets of the usual length, or the same bytes
constexpr std::uint32_t kLeastWindow = 16;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kTrialNs = 2 * kSecond;
constexpr std::int64_t kLingerNs = kSecond / 20;  // several times what a host waits before it asks
constexpr aggregate::ControlTimes kControlTimes = {.retry_ns = 50'000'000,
                                                   .give_up_ns = 2 * kSecond};
constexpr aggregate::StreamTimes kStreamTimes = {.give_up_ns = kSecond};

bool draw(void* to, std::size_t bytes) {
  return getrandom(to, bytes, 0) == static_cast<ssize_t>(bytes);
}

// As much in flight whatever the packets' length; a power of two.
std::uint16_t window_of(std::uint16_t operand_bytes, std::uint16_t most) {
  constexpr std::uint32_t kBytes = kBurstWindow * aggregate::kBurstOperandBytes;
  const std::uint32_t packets = kBytes / std::max<std::uint32_t>(operand_bytes, 1);
  const std::uint32_t window = std::clamp(std::bit_ceil(packets), kLeastWindow, kBurstWindow);
  return static_cast<std::uint16_t>(std::min(window, std::bit_floor(std::uint32_t{most})));
}

Status broken(const Status& exchange) {
  return {exchange.code(), "switch: " + std::string(exchange.message())};
}

}  // namespace

// Whether a member can join, in words that travel.
struct TeamAggregation::Word {
  std::int32_t code = 0;
  char why[200] = {};

  Word() = default;
  explicit Word(const Status& status) : code(static_cast<std::int32_t>(status.code())) {
    const std::string_view text = status.message();
    std::copy_n(text.begin(), std::min(text.size(), sizeof why - 1), why);
  }
  [[nodiscard]] Status status() const {
    return code == 0 ? Status() : Status(Code::kUnsupported, why);
  }
};

// What each member tells first: where its packets come from, how long they may be, and its
// switches, if it leads a node.
struct TeamAggregation::Place {
  Endpoint at;
  std::uint32_t operand_bytes = 0;
  aggregate::WayUp way;
  Word word;
};

// Then rank 0 what it has been allotted; and last, each leader whether that works.
struct TeamAggregation::Verdict {
  std::uint32_t job = 0, group = 0;
  std::uint16_t window = 0, operand_bytes = 0;
  SipKey key;
  Word word;
};

struct TeamAggregation::Exchanges {
  Gather<Place> places;
  Gather<Verdict> verdicts;
  Gather<Word> trials;
  bool posted = false;  // the step's
};

Result<SwitchWish> switch_wish(const Config& settings) {
  if (settings.in_switch.empty()) return SwitchWish();
  auto path = aggregate::parse_path(settings.in_switch);
  if (!path.ok()) return path.status();
  return SwitchWish{.path = std::move(path.value()),
                    .key_file = settings.switch_key,
                    .state = SwitchWish::State::kWanted};
}

std::int64_t TeamAggregation::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TeamAggregation::TeamAggregation(const crl_oob_t& oob, const Nodes& nodes, const SwitchWish& wish)
    : oob_(oob),
      wish_(wish),
      nodes_(nodes.count()),
      node_(nodes.node_of(oob.rank)),
      is_leader_(nodes.members(node_).front() == oob.rank),
      exchanges_(std::make_unique<Exchanges>()) {
  for (int node = 0; node < nodes_; ++node) leaders_.push_back(nodes.members(node).front());
  if (is_leader_) open_port();
  Place mine{.operand_bytes = operand_bytes_, .word = Word(mine_)};
  if (port_) mine.at = port_->at();
  std::ranges::copy(wish_.path, mine.way.at.begin());
  mine.way.levels = static_cast<std::uint32_t>(wish_.path.size());
  if (Status status = exchanges_->places.post(oob_, mine); !status.ok())
    broken_ = std::move(status);
}

TeamAggregation::~TeamAggregation() {
  stop_thread();
  // An exchange that is not over may still be written into.
  if (step_ != Step::kOver) (void)exchanges_.release();
}

void TeamAggregation::abandon() {
  member_.reset();
  port_.reset();
}

// At the address that packets for the switch leave by.
void TeamAggregation::open_port() {
  // All members have said that they want it: what they say next is waited for.
  if (wish_.path.empty()) {
    mine_ = Status(Code::kUnsupported, "another team has found since that its switch is gone");
    return;
  }
  const auto route = aggregate::route_to(wish_.path.front());
  if (!route.ok()) {
    mine_ = route.status();
    return;
  }
  operand_bytes_ = route.value().operand_bytes;
  auto port = aggregate::UdpPort::open({.ip = route.value().from, .port = 0});
  if (port.ok()) {
    port_ = std::move(port.value());
  } else {
    mine_ = port.status();
  }
}

void TeamAggregation::on_datagram(const Endpoint& from, std::span<const std::byte> datagram) {
  if (member_ && member_->take(from, datagram, now_ns(), *port_)) return;
  if (jobs_ && jobs_->take(from, datagram)) return;
  if (tree_) (void)tree_->take(from, datagram);
}

void TeamAggregation::move_port() {
  if (!port_) return;
  if (Status status = port_->receive(*this); !status.ok() && mine_.ok()) mine_ = std::move(status);
  if (member_) member_->progress(now_ns(), *port_);
  if (jobs_) jobs_->progress(now_ns(), *port_);
  if (tree_) tree_->progress(now_ns(), *port_);
  port_->flush();
}

Result<bool> TeamAggregation::set_up() {
  if (!broken_.ok()) return broken_;
  move_port();
  auto over = move_on();
  if (!over.ok() || !over.value()) return over;
  step_ = Step::kOver;
  if (!status_.ok() && jobs_) (void)group_is_freed();  // one packet: the switch forgets it anyway
  if (status_.ok() && member_ && port_) {
    port_->allow_fragments();
    start_thread();
  }
  return true;
}

Result<bool> TeamAggregation::move_on() {
  if (step_ == Step::kPlaces) {
    const Code code = exchanges_->places.test();
    if (code == Code::kInProgress) return false;
    if (code != Code::kOk) return broken(exchanges_->places.failure(code));
    status_ = take_places();
    if (!status_.ok()) return true;
    step_ = Step::kGroup;
    if (oob_.rank == 0) begin_control();
  }
  if (step_ == Step::kGroup) {
    auto over = end_group();
    if (!over.ok() || !over.value() || !status_.ok()) return over;
    step_ = Step::kTrial;
    exchanges_->posted = false;
    if (is_leader_) begin_trial();
  }
  auto over = end_trial();
  if (!over.ok() || !over.value()) return over;
  // Something on the way may take no packets as long as all interfaces do.
  if (status_.ok() || allotted_operand_bytes_ <= aggregate::kBurstOperandBytes) return true;
  try_shorter_packets();
  return false;
}

// What rank 0 has been allotted is told to all.
Result<bool> TeamAggregation::end_group() {
  if (!exchanges_->posted) {
    if (oob_.rank == 0 && !control_is_over()) return false;
    exchanges_->posted = true;
    Verdict mine{.job = job_,
                 .group = tree_ ? tree_->group() : 0,
                 .window = window_,
                 .operand_bytes = operand_bytes_,
                 .word = Word(mine_)};
    if (oob_.rank == 0) mine.key = aggregate::job_key(administrator_, job_, nonce_);
    if (Status status = exchanges_->verdicts.post(oob_, mine); !status.ok()) return status;
  }
  const Code code = exchanges_->verdicts.test();
  if (code == Code::kInProgress) return false;
  if (code != Code::kOk) return broken(exchanges_->verdicts.failure(code));
  const Verdict& allotted = exchanges_->verdicts.all().front();
  status_ = allotted.word.status();
  allotted_operand_bytes_ = allotted.operand_bytes;
  return true;
}

Result<bool> TeamAggregation::end_trial() {
  if (!exchanges_->posted) {
    if (is_leader_ && !trial_is_over()) return false;
    exchanges_->posted = true;
    if (Status status = exchanges_->trials.post(oob_, Word(mine_)); !status.ok()) return status;
  }
  const Code code = exchanges_->trials.test();
  if (code == Code::kInProgress) return false;
  if (code != Code::kOk) return broken(exchanges_->trials.failure(code));
  for (const Word& one : exchanges_->trials.all()) {
    if (status_.ok()) status_ = one.status();
  }
  return true;
}

// With another group; the one before goes with the job.
void TeamAggregation::try_shorter_packets() {
  exchanges_ = std::make_unique<Exchanges>();
  member_.reset();
  trial_.reset();
  status_ = mine_ = {};
  operand_bytes_ = aggregate::kBurstOperandBytes;
  step_ = Step::kGroup;
  if (oob_.rank == 0) build_group();
}

Status TeamAggregation::take_places() {
  const auto places = exchanges_->places.all();
  std::vector<aggregate::WayUp> ways;
  operand_bytes_ = aggregate::kMaxOperandBytes;
  for (const Rank leader : leaders_) {
    const Place& place = places[static_cast<std::size_t>(leader)];
    if (place.word.code != 0) {
      return {Code::kUnsupported,
              "rank " + std::to_string(leader) + " has no way to its switch: " + place.word.why};
    }
    hosts_.push_back(place.at);
    ways.push_back(place.way);
    operand_bytes_ = std::min(operand_bytes_, static_cast<std::uint16_t>(place.operand_bytes));
  }
  if (!aggregate::one_switch_joins(static_cast<std::int64_t>(hosts_.size()))) {
    return {Code::kUnsupported, "a group has " + std::to_string(aggregate::kMaxChildren) +
                                    " hosts at most, and the team " +
                                    std::to_string(hosts_.size()) + " nodes"};
  }
  if (operand_bytes_ == 0) {
    return {Code::kUnsupported, "a node's MTU towards its switch leaves no room for operands"};
  }
  auto tree = aggregate::tree_of(hosts_, ways);
  if (!tree.ok()) return tree.status();
  host_tree_ = std::move(tree.value());
  return {};
}

void TeamAggregation::begin_control() {
  const auto key = aggregate::read_key_file(wish_.key_file, "CARILLON_SWITCH_KEY");
  std::uint32_t first_request = 0;
  if (!key.ok()) {
    mine_ = key.status();
  } else if (!draw(&job_, sizeof job_) || !draw(&nonce_, sizeof nonce_) ||
             !draw(&first_request, sizeof first_request)) {
    mine_ = Status(Code::kSystem, "the system gives no random bytes");
  } else {
    administrator_ = key.value();
    job_ = std::max(job_, 1U);
    constexpr std::uint64_t kJobMemory = std::uint64_t{64} << 20;
    const aggregate::Job quota = {.nonce = nonce_, .groups = 2, .memory_bytes = kJobMemory};
    jobs_ = std::make_unique<aggregate::Requests>(administrator_, first_request, kControlTimes);
    std::vector<aggregate::Request> requests;
    for (const aggregate::TreeSwitch& one : host_tree_.switches) {
      requests.push_back(aggregate::install_job(one.at, job_, quota));
      requests.push_back(aggregate::ask_limits(one.at, 0));
    }
    jobs_->start(std::move(requests), now_ns());
  }
}

bool TeamAggregation::control_is_over() {
  if (!mine_.ok()) return true;
  if (!jobs_->done()) return false;
  if (!jobs_->status().ok()) {
    mine_ = jobs_->status();
    return true;
  }
  if (!tree_) {
    build_group();
    return false;
  }
  if (!tree_->done()) return false;
  mine_ = tree_->status();
  return true;
}

// Of what all interfaces and all switches take.
void TeamAggregation::build_group() {
  const aggregate::Limits& limits = jobs_->least_limits();
  constexpr unsigned kWord = 8;
  operand_bytes_ = static_cast<std::uint16_t>(
      std::min<unsigned>(operand_bytes_, limits.operand_bytes) / kWord * kWord);
  window_ = window_of(operand_bytes_, limits.window);
  tree_ = std::make_unique<aggregate::TreeControl>(
      job_, aggregate::job_key(administrator_, job_, nonce_), next_request_, kControlTimes);
  next_request_ += static_cast<std::uint32_t>(2 * host_tree_.switches.size());
  tree_->build(
      {.switches = host_tree_.switches, .window = window_, .operand_bytes = operand_bytes_},
      now_ns());
}

// A packet of everybody's, as long as packets get, through the switch and back: the path may take
// shorter ones only.
void TeamAggregation::begin_trial() {
  const Verdict& allotted = exchanges_->verdicts.all().front();
  job_ = allotted.job;
  const auto number = static_cast<std::uint16_t>(node_);
  member_ = std::make_unique<aggregate::Member>(
      aggregate::StreamConfig{.job = allotted.job,
                              .group = allotted.group,
                              .key = allotted.key,
                              .child = host_tree_.ports[number],
                              .window = allotted.window,
                              .operand_bytes = allotted.operand_bytes,
                              .path = wish_.path,
                              .times = kStreamTimes},
      aggregate::Hosts{.at = hosts_, .places = host_tree_.places, .own = number});
  trial_data_.assign(allotted.operand_bytes, std::byte{0});
  trial_ = member_->post({.op = aggregate::Op::kSum,
                          .type = aggregate::Type::kInt64,
                          .input = trial_data_.data(),
                          .output = trial_data_.data(),
                          .count = trial_data_.size() / sizeof(std::int64_t)});
  trial_ends_ns_ = now_ns() + kTrialNs;
}

bool TeamAggregation::trial_is_over() {
  if (!mine_.ok()) return true;
  const Status& lost = member_->fall_back_reason();
  if (lost.ok() && member_->done(*trial_)) return true;
  if (!lost.ok()) {
    mine_ = lost;
  } else if (now_ns() > trial_ends_ns_) {
    mine_ = Status(Code::kTimeout, "rank " + std::to_string(oob_.rank) + " has sent a packet of " +
                                       std::to_string(trial_data_.size()) +
                                       " bytes through the switch at " +
                                       aggregate::text(wish_.path.front()) +
                                       " and heard nothing for 2 s: do all packets get there?");
  }
  return !mine_.ok();
}

bool TeamAggregation::post(std::uint64_t number, const aggregate::Operation& operation,
                           std::uint64_t* ticket) {
  const std::lock_guard lock(mutex_);
  if (number != next_posted_) return false;
  const auto posted = member_->post(operation);
  if (!posted) return false;
  *ticket = *posted;
  ++next_posted_;
  member_->progress(now_ns(), *port_);
  port_->flush();
  return true;
}

bool TeamAggregation::done(std::uint64_t ticket) const {
  const std::lock_guard lock(mutex_);
  return member_->done(ticket);
}

std::uint64_t TeamAggregation::take_numbers(std::uint64_t count) {
  return std::exchange(next_number_, next_number_ + count);
}

Status TeamAggregation::progress() {
  if (!member_) return {};
  const std::lock_guard lock(mutex_);
  moved_ns_ = now_ns();
  move_port();
  return mine_.ok() ? member_->status() : mine_;
}

bool TeamAggregation::take_fall_back(Status* why, bool* was_told) {
  if (told_ || !member_) return false;
  const std::lock_guard lock(mutex_);
  if (member_->fall_back_reason().ok()) return false;
  told_ = true;
  *why = member_->fall_back_reason();
  *was_told = member_->was_told();
  return true;
}

std::optional<std::int64_t> TeamAggregation::due_ns() const {
  if (!member_) return {};
  const std::lock_guard lock(mutex_);
  return member_->due_ns();
}

// Of two empty packets: who has the result of the first is needed by nobody, and who has that of
// the second knows that so it is with all. Only then the switch is told: it may be asked once more.
bool TeamAggregation::quiet() {
  if (!member_) return true;
  if (Status status = progress(); !status.ok()) return true;
  const std::lock_guard lock(mutex_);
  if (!has_said(farewell_)) return false;
  if (said_farewell_ns_ == 0) said_farewell_ns_ = now_ns();
  const bool alone = !member_->fall_back_reason().ok();
  // Hosts that do the switch's work may be asked once more, too.
  const bool over = alone ? now_ns() - said_farewell_ns_ >= kLingerNs : has_said(last_word_);
  return over && (oob_.rank != 0 || group_is_freed());
}

bool TeamAggregation::has_said(std::optional<std::uint64_t>& word) {
  if (!word) word = member_->post({});
  return word && member_->done(*word);
}

bool TeamAggregation::group_is_freed() {
  if (!removing_) {
    removing_ = true;
    std::vector<aggregate::Request> requests;
    requests.reserve(host_tree_.switches.size());
    for (const aggregate::TreeSwitch& one : host_tree_.switches) {
      requests.push_back(aggregate::remove_job(one.at, job_, nonce_));
    }
    jobs_->start(std::move(requests), now_ns());
    move_port();
  }
  return (member_ && !member_->fall_back_reason().ok()) || jobs_->done();
}

}  // namespace carillon
