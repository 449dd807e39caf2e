// SPDX-License-Identifier: Apache-2.0
//
// How a team ends that cannot go on: its runs fail, the callers' memory is taken back, and members
// are told. Who fails first, and what the others then find.
#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/team_failure.h"
#include "engine/engine.h"
#include "engine/team.h"
#include "engine/wake.h"

namespace carillon {

void Team::fail(Status why) {
  tell_why(why);
  if (pair_ids_ && state() == State::kAgreeing) engine_.network()->end_making(*pair_ids_);
  // Members may know of the area already, and take the team for made.
  if (area_ && !endpoint_) {
    shm::Endpoint::give_up_area(engine_.segment(), area_->area, -static_cast<int>(why.code()));
  }
  // Members that have not seen it fail may write to its area: it is not used again.
  area_.reset();
  reception_.reset();
  // While it is set up, the caller may write into it.
  if (state() == State::kAgreeing && multicast_) multicast_.release()->abandon();
  if (state() == State::kAgreeing && aggregation_) aggregation_.release()->abandon();
  status_ = std::move(why);
  state_.store(State::kFailed, std::memory_order_release);
  std::vector<Run*> runs = std::exchange(in_flight_, {});
  std::erase(runs, nullptr);
  for (Run* run : runs) run->fail(status_);
  for (Run* run : waiting_) run->fail(status_);
  waiting_.clear();
  // What it joins by may be what has called this: progress_joining() lets go of it.
  const std::unique_ptr<TeamAggregation> aggregation = std::move(aggregation_);
  std::unique_ptr<TeamMulticast> multicast;
  if (joining_ == nullptr) multicast = std::move(multicast_);
  if (!endpoint_) return;
  for (Run* run : runs) run->withdraw_messages();
  endpoint_->give_up(-static_cast<int>(status_.code()));
  wake_readers(*this, shm::Pool::kToAll);
  if (links_) take_memory_back(runs);
}

// Before anything else: who is told next may end the job at once, while this rank still takes its
// memory back. What happens while a team is made is said by the call that makes it.
void Team::tell_why(const Status& why) const {
  if (state() != State::kReady) return;
  const bool of_network = why.message() == engine_.network_status().message();
  try {
    if (const auto say = g_say_team_failure.load(std::memory_order_acquire); say != nullptr) {
      if (of_network && engine_.network_failure_said()) return;
      const auto oldest = std::ranges::find_if(in_flight_, [](Run* run) { return run != nullptr; });
      const bool any = oldest != in_flight_.end();
      say({name_, rank(), size(), any ? (*oldest)->collective_name() : "", why});
    } else if (!of_network) {  // which is logged where it is found
      log(LogLevel::kError, why.to_string());
    }
  } catch (const std::bad_alloc&) {  // it fails all the same
  }
}

// The failed calls' buffers are their callers' again: the network must be done with them. First
// with what this rank reads of others and sends; only then are they told, and so know that it reads
// nothing of theirs any more. Then with what others still read here, or send.
void Team::take_memory_back(const std::vector<Run*>& runs) {
  net::Network& network = *engine_.network();
  links_->withdraw_announced();
  if (!end_what_is_under_way(runs)) {
    for (const int process : under_way(runs)) {
      network.cut_off(process,
                      {Code::kPeerDead, network.name() + ": process " + std::to_string(process) +
                                            " of the job did not answer for too long "
                                            "after a collective had failed"});
    }
  }
  links_->give_up(endpoint_->done_word());
  network.settle([&] {
    return !may_be_sent_to() &&
           std::none_of(runs.begin(), runs.end(), [](Run* run) { return run->may_be_read(); });
  });
  for (Run* run : runs) run->take_back();
}

// The processes from which the network reads for these runs, or to which it sends from their
// memory.
std::vector<int> Team::under_way(const std::vector<Run*>& runs) const {
  std::vector<int> processes =
      engine_.network()->lent_to([&](const net::Pair* pair) { return links_->owns(pair); });
  for (const Run* run : runs) {
    const std::vector<int> more = run->gets_from();
    processes.insert(processes.end(), more.begin(), more.end());
  }
  return processes;
}

// False: some did not end.
bool Team::end_what_is_under_way(const std::vector<Run*>& runs) {
  constexpr std::chrono::milliseconds kStep(100);
  net::Network& network = *engine_.network();
  const auto none_under_way = [&] {
    for (Run* run : runs) run->tell_awaited();
    return under_way(runs).empty();
  };
  if (network.settle(none_under_way)) return true;
  for (Run* run : runs) run->stop_awaiting();
  if (network.settle(none_under_way, kStep)) return true;
  if (!network.wire().capabilities().manual_progress) return false;
  // What is sent to a process stays here until that makes a call, and it may only be busy. To cut
  // it off would be the end of its other teams.
  const auto lives = [&](int process) { return engine_.lives(process); };
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(engine_.settings().join_timeout_s);
  while (network.progress().ok() && std::chrono::steady_clock::now() < end &&
         std::ranges::any_of(under_way(runs), lives)) {
    if (network.settle(none_under_way, kStep)) return true;
  }
  return false;
}

// May members of other nodes have lent the network something for this rank, and not know yet that
// it has given up? Where it must make progress for that to arrive, it stays to do so: its next call
// may be long in coming. Who gives up has nothing under way (take_memory_back); who does not, and
// calls later, sees first that this rank has (Run::takes_lists).
bool Team::may_be_sent_to() {
  if (limits_.gather_entries <= 1) return false;
  if (!engine_.network()->wire().capabilities().manual_progress) return false;
  for (int i = 0; i < size(); ++i) {
    const net::Pair* const pair = links_->pair(i);
    if (pair != nullptr && pair->is_used() && endpoint_->gave_up(i) == 0 && reaches(i)) return true;
  }
  return false;
}

bool Team::reaches(int rank) {
  const net::Pair& pair = *links_->pair(rank);
  if (!pair.status().ok() || pair.peer_closed()) return false;
  Status reason;
  const Lifeline::State life = engine_.look_at(pair.place().process, &reason);
  return life != Lifeline::State::kDead && life != Lifeline::State::kLeft;
}

Status Team::unreachable(int rank, std::uint64_t collective, const Status& why) const {
  return {why.code(), "rank " + std::to_string(this->rank()) + " cannot reach rank " +
                          std::to_string(rank) + " of a team of " + std::to_string(size()) +
                          " (its collective " + std::to_string(collective) +
                          " on the team): " + std::string(why.message())};
}

// It has written what no carillon writes.
Status Team::damaged(int rank, const Run& run, const std::string& what) const {
  return {Code::kInvalidArgument, "rank " + std::to_string(rank) + " of a team of " +
                                      std::to_string(size()) + " has for its " +
                                      std::string(run.collective_name()) + " (its collective " +
                                      std::to_string(run.collective()) + " on the team) " + what +
                                      ", which there cannot be; its process is damaged"};
}

Status Team::given_up_by(int rank, std::uint64_t collective) {
  const int error = endpoint_->gave_up(rank);
  return {error == 0 ? Code::kPeerDead : static_cast<Code>(-error),
          "rank " + std::to_string(rank) + " gave up a team of " + std::to_string(size()) +
              " (its own message says why); collective " + std::to_string(collective) +
              " of the team cannot complete at rank " + std::to_string(this->rank())};
}

void Team::fail_ended(int rank, std::uint64_t collective, bool died, const Status& reason) {
  const int node_rank = endpoint_->peer(rank).node_rank;
  const std::string where =
      node_rank < 0 ? "on another node" + (reason.ok() ? "" : ": " + std::string(reason.message()))
                    : "pid " + std::to_string(engine_.segment().state(node_rank).pid.load());
  fail(Status(Code::kPeerDead,
              "rank " + std::to_string(rank) + " of a team of " + std::to_string(size()) + " (" +
                  where + ") " + (died ? "died" : "has destroyed its context") + "; collective " +
                  std::to_string(collective) + " of the team cannot complete at rank " +
                  std::to_string(this->rank())));
}

void Team::fail_for_want_of_room() {
  const Run& oldest = *oldest_run();
  const std::uint64_t mib = engine_.pool().bytes() >> 20;
  fail(Status(Code::kNoMemory,
              "rank " + std::to_string(rank()) + " of a team of " + std::to_string(size()) +
                  " has no room for a message of " + std::to_string(oldest.wants_room()) +
                  " bytes of its " + std::string(oldest.collective_name()) + " (its collective " +
                  std::to_string(oldest.collective()) + " on the team): its " +
                  std::to_string(mib) +
                  " MiB of the node's shared memory are full of messages whose readers wait, too; "
                  "set a larger CARILLON_POOL_MIB or a smaller CARILLON_SLOT_BYTES, or have fewer "
                  "collectives in flight at once"));
}

void Team::fail_mismatch(int rank, std::uint64_t collective) {
  fail(Status(Code::kMismatch,
              "rank " + std::to_string(rank) + " of a team of " + std::to_string(size()) +
                  " waits in or has ended another call than rank " + std::to_string(this->rank()) +
                  " waits in (its collective " + std::to_string(collective) +
                  " on the team); do all ranks call the same collectives in the same order, with "
                  "the same sizes, roots and operators?"));
}

}  // namespace carillon
