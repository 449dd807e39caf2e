// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "check.h"
#include "errors.h"
#include "flight.h"
#include "observe.h"
#include "process.h"
#include "stats.h"
#include "world.h"

namespace carillon::shim {
namespace {

struct Communicators {
  std::mutex mutex;  // of the lists; never held while the host or carillon is called
  std::vector<std::unique_ptr<Communicator>> known;
  std::vector<std::unique_ptr<Communicator>> freed;  // their teams still to be destroyed
  std::uint64_t taken[kCalls] = {};                  // by communicators that are gone
  Communicator* world = nullptr;
  Communicator* self = nullptr;
  int keyval = MPI_KEYVAL_INVALID;
  std::uintptr_t life = 0;  // how often carillon has started
};

// Never destroyed: the host may free communicators while the process ends.
Communicators& communicators() {
  static Communicators& all = *new Communicators();
  return all;
}

// Stands for every communicator that has no record, for one reason.
Communicator& unserved(Reason reason) {
  static Communicator* const all = [] {
    auto* const made = new Communicator[kReasons];
    for (std::size_t i = 0; i < kReasons; ++i) made[i].reason = static_cast<Reason>(i);
    return made;
  }();
  return all[static_cast<std::size_t>(reason)];
}

// One that is being freed. Its attribute is gone if there is a communicator.
struct Freed {
  MPI_Comm comm{};
  Communicator* communicator = nullptr;
  std::uintptr_t life = 0;  // of the communicator
  Freed* next = nullptr;
};

// By this thread. The host may call an error handler that never returns: such a one stays until its
// communicator is freed. (Not on the stack therefore; nor in what ends with the thread: the program
// may free communicators while the process ends.)
constinit thread_local Freed* t_being_freed = nullptr;

Freed** find_freed(MPI_Comm comm) {
  Freed** place = &t_being_freed;
  while (*place != nullptr && (*place)->comm != comm) place = &(*place)->next;
  return place;
}

// Its team is still to be destroyed. The lists are locked.
void put_aside(Communicators& all, const Communicator& communicator) {
  for (std::size_t i = 0; i < kCalls; ++i) all.taken[i] += communicator.taken[i];
  const std::size_t place = communicator.place;
  all.freed.push_back(std::move(all.known[place]));
  all.known[place] = std::move(all.known.back());
  if (all.known[place] != nullptr) all.known[place]->place = place;
  all.known.pop_back();
}

// With the lists locked: where what is still in flight may fail.
void tell_errors_on(const Communicators& all, Communicator& communicator, MPI_Comm comm) {
  communicator.handle = comm;
  for (const auto& one : all.known) {
    if (one->sibling_of == &communicator) one->handle = comm;
  }
}

// With the lists locked.
void forget(Communicators& all, const Communicator& communicator) {
  for (const auto& one : all.known) {
    if (one->sibling_of == &communicator) one->sibling_of = nullptr;
  }
  put_aside(all, communicator);
  g_communicators.advance();
}

// With the lists locked. Else carillon has ended since.
bool is_of_now(const Communicators& all, std::uintptr_t life) {
  return !all.known.empty() && life == all.life;
}

// The host may be in the middle of something here, and hold its locks: the team is only put aside.
int on_communicator_freed(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* life) {
  Communicators& all = communicators();
  const std::lock_guard lock(all.mutex);
  if (!is_of_now(all, reinterpret_cast<std::uintptr_t>(life))) return MPI_SUCCESS;
  auto& communicator = *static_cast<Communicator*>(value);
  Freed* const freed = *find_freed(communicator.handle);
  tell_errors_on(all, communicator, comm_of_errors());
  if (freed == nullptr) {
    forget(all, communicator);
  } else {
    freed->communicator = &communicator;
    freed->life = all.life;
  }
  return MPI_SUCCESS;
}

void destroy(Communicator& communicator) {
  if (communicator.team != nullptr) count_decisions(communicator.team);
  crl_team_destroy(std::exchange(communicator.team, nullptr));
  drop_world(std::exchange(communicator.world, nullptr));
  communicator.bootstrap.release();
}

// Local. Collective over the communicator, if it can be served at all; then its team is in the
// making.
bool begin_team(Communicator& communicator, MayWait may_wait) {
  int is_inter = 0;
  host().Comm_test_inter(communicator.handle, &is_inter);
  if (is_inter != 0) {
    communicator.reason = Reason::kIntercommunicator;
    return false;
  }
  host().Comm_rank(communicator.handle, &communicator.rank);
  host().Comm_size(communicator.handle, &communicator.size);
  World*& world = communicator.world;
  if (world == nullptr) world = use_world(communicator.handle, communicator.size);
  if (world == nullptr) {
    communicator.reason = Reason::kOtherWorld;
    return false;
  }
  communicator.host_reduces = world->reduces;
  communicator.grid_orders = world->grid_orders;
  communicator.bootstrap = {communicator.handle, communicator.rank, communicator.size};
  if (may_wait == MayWait::kNo) communicator.bootstrap.copy();
  communicator.tables.resize(4 * static_cast<std::size_t>(communicator.size));
  const crl_oob_t oob = communicator.bootstrap.oob();
  const crl_status_t status = crl_team_create(world->context, &oob, &communicator.team);
  if (status != CRL_OK) {
    communicator.broken = status;
    return false;
  }
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  host().Comm_get_name(communicator.handle, name, &length);
  crl_team_set_name(communicator.team, name);
  return true;
}

// The first collective is a blocking one.
void wait_for_team(Communicator& communicator) {
  crl_status_t status = CRL_IN_PROGRESS;
  while ((status = crl_team_test(communicator.team)) == CRL_IN_PROGRESS) {
    advance_flights();
    sched_yield();
  }
  if (status == CRL_OK) return;
  crl_team_destroy(std::exchange(communicator.team, nullptr));
  communicator.reason = Reason::kNotServed;
  if (status != CRL_ERR_UNSUPPORTED) communicator.broken = status;
}

Communicator& add(std::unique_ptr<Communicator> communicator) {
  Communicators& all = communicators();
  Communicator& added = *communicator;
  const std::lock_guard lock(all.mutex);
  added.place = all.known.size();
  all.known.push_back(std::move(communicator));
  return added;
}

Communicator& keep(std::unique_ptr<Communicator> communicator) {
  Communicators& all = communicators();
  Communicator& kept = add(std::move(communicator));
  if (kept.handle == g_host.comm_world) {
    all.world = &kept;
  } else if (kept.handle == g_host.comm_self) {
    all.self = &kept;
  } else {
    host().Comm_set_attr(kept.handle, all.keyval, &kept);
  }
  return kept;
}

Communicator* known_communicator(MPI_Comm comm, int* status) {
  Communicators& all = communicators();
  *status = MPI_SUCCESS;
  if (comm == g_host.comm_world) return all.world;
  if (comm == g_host.comm_self) return all.self;
  void* value = nullptr;
  int found = 0;
  *status = host().Comm_get_attr(comm, all.keyval, &value, &found);
  return *status == MPI_SUCCESS && found != 0 ? static_cast<Communicator*>(value) : nullptr;
}

}  // namespace

// No thread is to remember it. MPICH goes on to the next attribute where one refuses, and returns
// what the last one says: which must be one of the program's.
BeingFreed::BeingFreed(MPI_Comm comm) : comm_(comm) {
  g_communicators.advance();
  if (!is_any(comm)) t_being_freed = new Freed{.comm = comm, .next = t_being_freed};
  const bool has_attribute = comm != g_host.comm_world && comm != g_host.comm_self &&
                             process().phase.load(std::memory_order_acquire) == Phase::kRunning;
  if (!has_attribute) return;
  hide_channel(comm);
  const Unobserved unobserved;  // as in find_communicator_slow
  if (known_communicator(comm, &status_) == nullptr) return;
  const InsideHost guard;
  host().Comm_delete_attr(comm, communicators().keyval);
}

BeingFreed::~BeingFreed() {
  end_channel(comm_);
  Freed** const place = find_freed(comm_);
  if (*place == nullptr) return;
  const std::unique_ptr<const Freed> freed(std::exchange(*place, (*place)->next));
  if (freed->communicator == nullptr) return;
  Communicators& all = communicators();
  const std::lock_guard lock(all.mutex);
  if (is_of_now(all, freed->life)) forget(all, *freed->communicator);
}

void BeingFreed::refuse() const {
  show_channel(comm_);
  Freed* const freed = *find_freed(comm_);
  if (freed == nullptr || freed->communicator == nullptr) return;
  const InsideHost guard;
  Communicators& all = communicators();
  if (host().Comm_set_attr(comm_, all.keyval, freed->communicator) != MPI_SUCCESS) return;
  const std::lock_guard lock(all.mutex);
  tell_errors_on(all, *freed->communicator, comm_);
  freed->communicator = nullptr;
}

bool BeingFreed::is_any(MPI_Comm comm) { return *find_freed(comm) != nullptr; }

void destroy_freed_teams() {
  std::vector<std::unique_ptr<Communicator>> freed;
  {
    Communicators& all = communicators();
    const std::lock_guard lock(all.mutex);
    const auto unused = std::partition(all.freed.begin(), all.freed.end(), [](const auto& one) {
      return one->agreeing.load(std::memory_order_acquire) ||
             one->in_flight.load(std::memory_order_acquire) > 0;
    });
    std::move(unused, all.freed.end(), std::back_inserter(freed));
    all.freed.erase(unused, all.freed.end());
  }
  for (const auto& communicator : freed) destroy(*communicator);
}

bool start_communicators() {
  Communicators& all = communicators();
  return host().Comm_create_keyval(copy_no_attribute<MPI_Comm>, on_communicator_freed, &all.keyval,
                                   reinterpret_cast<void*>(++all.life)) == MPI_SUCCESS;
}

void stop_communicators() {
  Communicators& all = communicators();
  g_communicators.advance();
  destroy_freed_teams();
  std::vector<std::unique_ptr<Communicator>> known;
  {
    const std::lock_guard lock(all.mutex);
    known.swap(all.known);
    for (const auto& communicator : known) {
      for (std::size_t i = 0; i < kCalls; ++i) all.taken[i] += communicator->taken[i];
    }
    all.world = all.self = nullptr;
  }
  for (const auto& communicator : known) destroy(*communicator);
  // Of those in which something has failed that the program was not told of.
  for (const auto& communicator : all.freed) destroy(*communicator);
  // Else the host is ending, and forgets it.
  if (process().begun == Begun::kBySession) host().Comm_free_keyval(&all.keyval);
}

Communicator& find_communicator_slow(MPI_Comm comm, MayWait may_wait) {
  if (t_cache.depth > 0) return unserved(Reason::kNested);
  switch (process().phase.load(std::memory_order_acquire)) {
    case Phase::kNotStarted:
    case Phase::kFinished: return unserved(Reason::kNotInitialised);
    case Phase::kOff: return unserved(Reason::kOff);
    case Phase::kRunning: break;
  }
  if (observers() != 0) return unserved(Reason::kObserved);
  if (comm == g_host.comm_null) return unserved(Reason::kSuspect);
  if (BeingFreed::is_any(comm)) return unserved(Reason::kNested);
  const std::uint64_t generation = g_communicators.now();
  ThreadCache::Comm& remembered = t_cache.comms[hash_of(comm) >> 60];
  static_assert(ThreadCache::kComms == 16);
  if (remembered.handle == comm && remembered.generation == generation) {
    t_cache.last = remembered;
    return *remembered.communicator;
  }
  int status = MPI_SUCCESS;
  Communicator* found = nullptr;
  {
    // Not inside the host: for what is no communicator, it calls an error handler of the program's.
    const Unobserved guard;
    found = known_communicator(comm, &status);
  }
  if (status != MPI_SUCCESS) return unserved(Reason::kSuspect);
  if (found == nullptr) {
    auto fresh = std::make_unique<Communicator>();
    fresh->handle = comm;
    bool begun = false;
    {
      const InsideHost guard;
      destroy_freed_teams();
      begun = begin_team(*fresh, may_wait);
    }
    if (begun && may_wait == MayWait::kYes) wait_for_team(*fresh);
    if (begun && may_wait == MayWait::kNo) {
      fresh->agreeing = true;
      watch_agreement(*fresh);
    }
    const InsideHost guard;
    found = &keep(std::move(fresh));
  }
  if (found->agreeing) {
    advance_flights();
    while (may_wait == MayWait::kYes && found->agreeing) {
      sched_yield();
      advance_flights();
    }
    if (found->agreeing) return *found;
  }
  remembered = t_cache.last = {comm, generation, found};
  return *found;
}

Communicator& make_sibling(Communicator& communicator) {
  auto fresh = std::make_unique<Communicator>();
  fresh->handle = communicator.handle;
  fresh->world = communicator.world;
  if (fresh->world != nullptr) fresh->world->users.fetch_add(1, std::memory_order_relaxed);
  bool begun = false;
  {
    const InsideHost guard;
    destroy_freed_teams();
    begun = begin_team(*fresh, MayWait::kYes);
  }
  if (begun) wait_for_team(*fresh);
  fresh->sibling_of = &communicator;
  return add(std::move(fresh));
}

void drop_sibling(const Communicator& sibling) {
  Communicators& all = communicators();
  const std::lock_guard lock(all.mutex);
  put_aside(all, sibling);
}

std::uint64_t taken_calls(std::size_t call) {
  Communicators& all = communicators();
  const std::lock_guard lock(all.mutex);
  std::uint64_t sum = all.taken[call];
  for (const auto& communicator : all.known) sum += communicator->taken[call];
  return sum;
}

}  // namespace carillon::shim
