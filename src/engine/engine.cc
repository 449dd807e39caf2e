// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <string>

#include "base/lent_messages.h"
#include "base/log.h"
#include "base/team_failure.h"
#include "engine/join_network.h"
#include "engine/node.h"
#include "engine/team.h"
#include "engine/until_quiet.h"
#include "engine/waiter.h"
#include "team/bootstrap.h"
#include "transport/shm/doorbell.h"

namespace carillon {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kRoundsPerLifeline = 512;  // of network progress: it is a system call
constexpr int kMostWatched = 256;  // processes after this one, while teams are being made
// What an entry of a list costs where copying is always cheaper.
constexpr std::int64_t kNeverPs = 1'000'000'000;

// Memory that was not freed stays readable when its context is gone, as malloc's does.
void keep_for_ever(const std::shared_ptr<shm::Segment>& segment) {
  static auto* const kept = new std::vector<std::shared_ptr<shm::Segment>>();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  kept->push_back(segment);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const crl_context_config_t& config,
                                               const Config& settings) {
  auto in_switch = carillon::switch_wish(settings);
  if (!in_switch.ok()) return in_switch.status();
  std::unique_ptr<Engine> engine(new Engine(settings));
  engine->threaded_ = engine->locks_ = config.threaded != 0;
  engine->idle_ = config.idle;
  engine->idle_arg_ = config.idle_arg;
  if (config.dead_peer_ms > 0) engine->settings_.dead_peer_ms = config.dead_peer_ms;
  shm::SegmentSizes sizes;
  sizes.heap_bytes = static_cast<std::uint64_t>(settings.heap_mib) * kMiB;
  if (settings.pool_mib >= 0) {
    sizes.reserve_bytes = static_cast<std::uint64_t>(settings.pool_mib) * kMiB;
  }
  engine->own_heap_ = {.base = static_cast<const std::byte*>(config.heap),
                       .bytes = config.heap != nullptr ? config.heap_bytes : 0,
                       .fd = config.heap_fd};
  auto place = join_node(config.oob, sizes, engine->own_heap_, settings);
  if (!place.ok()) return place.status();
  engine->segment_ = place.value().segment;
  engine->node_rank_ = place.value().rank;
  engine->domain_ = place.value().domain;
  engine->has_domains_ = place.value().has_domains;
  engine->oversubscribed_ =
      settings.crowded < 0 ? place.value().oversubscribed : settings.crowded != 0;
  engine->process_ = config.oob.rank;
  engine->world_ = place.value().world;
  engine->node_of_ = std::move(place.value().node_of);
  if (engine->joined()) engine->set_up_memory();
  if (Status status = engine->set_up_network(config.oob, in_switch.value()); !status.ok())
    return status;
  engine->set_up_servlet(place.value());
  return engine;
}

// Without a network, teams on one node can be served all the same.
Status Engine::set_up_network(const crl_oob_t& oob, const SwitchWish& in_switch) {
  const std::int32_t nodes = *std::max_element(node_of_.begin(), node_of_.end()) + 1;
  if (nodes == 1) return {};
  auto network = join_network(oob, settings_);
  if (network.ok()) {
    network_ = std::move(network.value());
    const auto suits = static_cast<std::int64_t>(network_->wire().capabilities().get_from_bytes);
    const std::int64_t from = settings_.fetch_bytes < 0 ? suits : settings_.fetch_bytes;
    if (from > 0) fetch_from_bytes_ = std::max<std::int64_t>(from, shm::kInlineBytes + 1);
    set_up_gathering();
    multicast_ = carillon::multicast_wish(settings_, network_->wire());
    switch_ = in_switch;
    if (joined() && network_->wait_descriptor() >= 0) {
      bell_ = std::make_unique<shm::Bell>(*segment_, node_rank_);
      if (bell_->fd() < 0) bell_.reset();
    }
    return set_up_lifeline(oob);
  }
  network_status_ = network.status();
  if (network_status_.code() == Code::kTimeout) return network_status_;
  if (settings_.network != "off") {
    log(LogLevel::kWarning, "between the " + std::to_string(nodes) +
                                " nodes carillon serves nothing: " + network_status_.to_string());
  }
  return {};
}

void Engine::set_up_memory() {
  shm::register_for_wakeups();
  const shm::SegmentShape& shape = segment_->shape();
  control_.emplace(segment_->base(), segment_->control(node_rank_), shape.control_bytes);
  heap_ = std::make_unique<OffsetAllocator>(segment_->heap(node_rank_), shape.heap_bytes);
  pool_ =
      std::make_unique<shm::Pool>(*segment_, node_rank_, chunk_bytes(settings_),
                                  Limits().large_slots, static_cast<int>(settings_.handed_chunks));
  const shm::PoolSizes pool = segment_->pool_sizes();
  message_ways_ = MessageWays(segment_->ranks(), static_cast<std::int64_t>(pool.small_bytes),
                              static_cast<std::int64_t>(pool.large_bytes));
  if (settings_.lend_bytes != 0) {
    const bool learns = settings_.lend_bytes < 0;
    const std::int64_t from = std::max<std::int64_t>(settings_.lend_bytes, shm::kInlineBytes + 1);
    lend_one_way_from_bytes_ = learns ? lent_from_bytes(true) : from;
    lend_from_bytes_ = learns ? lent_from_bytes(false) : from;
  }
}

Engine::~Engine() {
  end_servlet();
  leave_network();
  retired_.clear();
  if (!joined()) return;
  segment_->leave(node_rank_);
  if (!heap_blocks_.empty()) keep_for_ever(segment_);
}

void Engine::make_room_for_team() {
  for (std::vector<Team*>* const list : {&teams_, &agreeing_}) {
    if (list->size() == list->capacity()) list->reserve(2 * list->size() + 8);
  }
  const std::size_t most = retired_.size() + teams_.size() + 1;
  if (retired_.capacity() < most) retired_.reserve(2 * most);
}

void Engine::add_team(Team& team) {
  teams_.push_back(&team);
  agreeing_.push_back(&team);
}

void Engine::retire_team(std::unique_ptr<Team> team) {
  std::erase(teams_, team.get());
  std::erase(agreeing_, team.get());
  team->abandon();
  retired_.push_back(std::move(team));
  reap_teams();
}

void Engine::reap_teams() {
  std::erase_if(retired_, [](const std::unique_ptr<Team>& team) { return team->quiet(); });
}

void Engine::stop_fetching(const Status& why) {
  fetch_from_bytes_ = INT64_MAX;
  log(LogLevel::kWarning, "long messages between nodes are copied from now on: " + why.to_string());
}

// How lists go to other nodes. One entry is for a message's head.
void Engine::set_up_gathering() {
  const wire::Capabilities& device = network_->wire().capabilities();
  const auto most = static_cast<std::int64_t>(device.max_pieces) - 1;
  const auto suits = static_cast<std::int64_t>(device.gather_from_bytes);
  std::int64_t entries = settings_.gather_entries;
  if (entries < 0) entries = suits > 0 ? most : 1;
  if (most < 1) entries = 1;
  if (entries > most) {
    log(LogLevel::kDebug, "CARILLON_GATHER_ENTRIES=" + std::to_string(entries) + ", and " +
                              device.name + " takes " + std::to_string(most) +
                              " beside a message's head: longer lists are put in parts");
  }
  list_terms_.gather_entries = static_cast<std::int32_t>(std::max<std::int64_t>(entries, 1));
  list_terms_.request_entries =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(most, 1, INT32_MAX));
  const bool given = settings_.gather_bytes >= 0;
  const std::int64_t from = given ? settings_.gather_bytes : suits;
  gather_from_bytes_ = std::max<std::int64_t>(from, 1);
  const ListCosts costs;
  const bool never = !given && from == 0;
  list_terms_.entry_ps = never ? kNeverPs : costs.run_ps + from * costs.byte_fs / 1000;
  if (given || device.get_from_bytes > 0) {
    register_from_bytes_ =
        given ? gather_from_bytes_ : static_cast<std::int64_t>(device.get_from_bytes);
  }
}

void Engine::stop_gathering(const Status& why) {
  register_from_bytes_ = INT64_MAX;
  gather_from_bytes_ = INT64_MAX;
  log(LogLevel::kWarning,
      "lists of bytes for other nodes are copied from now on: " + why.to_string());
}

// Who lives on other nodes. Without, it is up to the network to tell.
Status Engine::set_up_lifeline(const crl_oob_t& oob) {
  auto lifeline = Lifeline::open(oob.rank, oob.size);
  LifelineAddress mine;
  if (lifeline.ok()) {
    mine = lifeline.value()->address();
  } else {
    log(LogLevel::kWarning, "the end of this process may not be noticed on other nodes: " +
                                lifeline.status().to_string());
  }
  auto addresses = exchange(oob, mine, static_cast<int>(settings_.join_timeout_s));
  if (!addresses.ok()) return addresses.status();
  if (!lifeline.ok()) return {};
  lifeline_ = std::move(lifeline.value());
  lifeline_->join(world_);
  const auto all = addresses.value()->all();
  lifelines_.assign(all.begin(), all.end());
  return {};
}

Lifeline::State Engine::look_at(int process, Status* reason) {
  if (!lifeline_) return Lifeline::State::kUnknown;
  lifeline_->watch(process, lifelines_[static_cast<std::size_t>(process)]);
  *reason = lifeline_->reason(process);
  const Lifeline::State state = lifeline_->state(process);
  if (may_still_come(process)) return Lifeline::State::kAlive;
  if (state == Lifeline::State::kDead && network_) network_->give_up_on(process, *reason);
  return state;
}

// It has ended, and what it has sent before is not all here yet.
bool Engine::may_still_come(int process) {
  if (!lifeline_ || !network_) return false;
  const Lifeline::State state = lifeline_->state(process);
  const bool ended = state == Lifeline::State::kDead || state == Lifeline::State::kLeft;
  return ended && network_->may_still_come(process);
}

bool Engine::lives(int process) {
  if (!lifeline_) return false;
  progress_lifeline();
  Status reason;
  const Lifeline::State state = look_at(process, &reason);
  return state == Lifeline::State::kAlive || state == Lifeline::State::kConnecting;
}

void Engine::progress_lifeline() {
  for (const int process : network_->take_new_processes()) {
    lifeline_->watch(process, lifelines_[static_cast<std::size_t>(process)]);
  }
  lifeline_->progress();
}

void Engine::progress_network() {
  if (multicasts_) progress_multicasts();
  if (lifeline_ && ++network_rounds_ % kRoundsPerLifeline == 0) progress_lifeline();
  if (network_->progress().ok() || !network_status_.ok()) return;
  network_status_ = network_->progress();
  if (g_say_team_failure.load(std::memory_order_acquire) == nullptr) {
    log(LogLevel::kError, network_status_.to_string());
  }
  // One line is for all teams: that of a team at work, if one is.
  for (const bool at_work : {true, false}) {
    for (Team* team : teams_) {
      if (!team->spans_nodes() || team->state() != Team::State::kReady) continue;
      if (team->at_work() == at_work) team->fail(network_status_);
    }
  }
}

void Engine::progress(int polls, Mover mover) {
  const bool by_servlet = mover == Mover::kServlet;
  if (network_) progress_network();
  bool begins = false;  // something may, that was started before its team was there
  if (!agreeing_.empty() && !by_servlet) {
    for (Team* team : agreeing_) team->progress_agreement();
    begins = std::erase_if(agreeing_,
                           [](Team* team) { return team->state() != Team::State::kAgreeing; }) > 0;
  }
  if (deferred_ > 0) begin_deferred();
  if (begins && servlet_has_work()) servlet_->wake();
  if (active_.empty()) return;
  // Runs that end may not disturb the walk: they leave the list afterwards.
  bool ended = false;
  for (Run* const run : active_) {
    ended |= by_servlet && run->needs_caller() ? run->done() : move_on(*run, polls);
  }
  if (!ended) return;
  forget_ended();
  // Another thread may be asleep until one of these runs has ended.
  if (locks_ && joined() && shm::anybody_sleeps(*segment_)) shm::wake(*segment_, node_rank_);
}

void Engine::progress_and_watch(Mover mover) {
  progress(0, mover);
  if (active_.empty() && agreeing_.empty()) return;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t now_ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
  if (now_ms < next_watch_ms_) return;
  // The first time, only the clock is set.
  if (next_watch_ms_ != 0) check_peers(mover);
  next_watch_ms_ = now_ms + settings_.dead_peer_ms / 4;
}

template <typename Done>
void Engine::wait_until(Done done) {
  const Waiting waiting(*this);
  Waiter waiter(*this);
  for (;;) {
    {
      const Lock lock(*this);
      progress(waiter.polls());
      if (done()) return;
    }
    waiter.pause(done);
  }
}

void Engine::wait(Run& run) {
  wait_until([&] { return run.done(); });
}

void Engine::wait(Team& team) {
  wait_until([&] { return team.state() != Team::State::kAgreeing; });
}

void Engine::join_multicast(Team& team, const crl_oob_t& oob) {
  {
    const Lock lock(*this);
    team.begin_joining(oob);
  }
  wait_until([&] {
    if (team.progress_joining()) return false;
    forget_ended();
    return true;
  });
}

Status Engine::find_death_on_node(const char* what) const {
  for (int i = 0; i < segment_->ranks(); ++i) {
    if (!segment_->died(i)) continue;
    return {Code::kPeerDead, "a process of this node (pid " +
                                 std::to_string(segment_->state(i).pid.load()) + ") died while " +
                                 what + " was being made"};
  }
  return {};
}

// Who the members of a team in the making are is not known yet: any process that died may be one.
Status Engine::find_death() {
  if (Status death = find_death_on_node("a team"); !death.ok()) return death;
  const auto processes = static_cast<int>(lifelines_.size());
  for (int i = 1; i < std::min(processes, kMostWatched); ++i) {
    const int process = (process_ + i) % processes;
    Status reason;
    if (look_at(process, &reason) != Lifeline::State::kDead) continue;
    return {Code::kPeerDead, "a process of another node died while a team was being made: " +
                                 std::string(reason.message())};
  }
  return {};
}

void Engine::check_peers(Mover mover) {
  if (!joined()) return;
  const bool moves_all = this->moves_all(mover);
  if (moves_all) {
    progress(0, mover);  // all that there was to do at the look before has been tried at this one
    note_look();
  }
  if (lifeline_) progress_lifeline();
  if (network_) {
    // Who has ended since has sent before: that is looked at first.
    look_until_quiet([&] { return network_->wire().counters().completions; },
                     [&] { (void)network_->progress(); }, [] { return true; });
    network_->check_buffers();
  }
  for (Team* team : teams_) {
    if (team->state() == Team::State::kAgreeing) {
      if (Status death = find_death(); !death.ok()) team->fail(std::move(death));
    } else if (team->state() == Team::State::kReady) {
      team->check_peers();
    }
  }
  if (moves_all) check_room(mover);
  forget_ended();
}

}  // namespace carillon
