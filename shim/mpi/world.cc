// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>

#include "bootstrap.h"
#include "check.h"
#include "communicator.h"
#include "device_runtime.h"
#include "flight.h"
#include "joined.h"
#include "left.h"
#include "meeting.h"
#include "memory.h"
#include "neighbours.h"
#include "process.h"
#include "record.h"
#include "settings.h"
#include "stats.h"
#include "windows.h"

namespace carillon::shim {

constinit std::atomic<World*> g_worlds = nullptr;
constinit std::atomic<int> g_walkers = 0;

namespace {

struct Worlds {
  std::mutex mutex;       // of World::lives, of how they are linked, and of the following
  bool closed = false;    // no more, because one could not be made
  std::int32_t left = 0;  // how often this process has left all
};

std::atomic<bool> g_recorded = false;  // in this process, or is being

Worlds& worlds() {
  static Worlds& all = *new Worlds();  // never destroyed: threads may be in a call at the end
  return all;
}

// body(world). With the lock held, as what follows.
template <typename Body>
void each_world(Body body) {
  for (World* one = g_worlds.load(std::memory_order_relaxed); one != nullptr;
       one = one->earlier.load(std::memory_order_relaxed)) {
    body(*one);
  }
}

World* find_world(const World* wanted) {
  World* found = nullptr;
  each_world([&](World& world) {
    if (&world == wanted) found = &world;
  });
  return found;
}

bool has_all(const World& world, const std::vector<int>& places) {
  return std::all_of(places.begin(), places.end(), [&](int place) {
    return place != MPI_UNDEFINED && world.lives[static_cast<std::size_t>(place)] >= 0;
  });
}

// Communicators of those that are left in it find a later one.
bool is_superseded(const World& world) {
  const auto is_there = [](std::int32_t life, std::int32_t later) {
    return life < 0 || later >= 0;
  };
  bool found = false;
  each_world([&](const World& later) {
    found = found || (later.id > world.id && std::equal(world.lives.begin(), world.lives.end(),
                                                        later.lives.begin(), is_there));
  });
  return found;
}

// The lock need not be held.
void destroy(const World& world) {
  forget_memory(world.context);
  forget_windows(world.context);
  count_traffic(world.context);
  crl_context_destroy(world.context);
}

// Of what the program has freed, too, nothing remains in use.
void release_worlds() {
  destroy_freed_teams();
  std::vector<std::unique_ptr<World>> released;
  {
    const std::lock_guard lock(worlds().mutex);
    std::atomic<World*>* link = &g_worlds;
    while (World* const one = link->load(std::memory_order_relaxed)) {
      // Partner: drop_world.
      const bool used = one->users.load(std::memory_order_acquire) > 0;
      if (used || !(one->joined || is_superseded(*one))) {
        link = &one->earlier;
        continue;
      }
      link->store(one->earlier.load(std::memory_order_relaxed), std::memory_order_release);
      released.emplace_back(one);
    }
  }
  if (released.empty()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // partner: WorldsStay
  while (g_walkers.load(std::memory_order_acquire) > 0) sched_yield();
  for (const auto& world : released) destroy(*world);
}

std::uint64_t make_id(std::uint32_t clock, std::uint32_t random) {
  return (std::uint64_t{clock} << 32U) + random;
}

Hello greet(const Meeting& meeting, bool refused) {
  Hello mine{.on = meeting.settings.on,
             .refused = static_cast<std::uint16_t>(refused ? 1 : 0),
             .by_session = process().begun == Begun::kBySession,
             .joins = static_cast<std::uint16_t>(meeting.settings.joins ? 1 : 0),
             .random = std::random_device()()};
  const std::lock_guard lock(worlds().mutex);
  mine.left = worlds().left;
  std::size_t count = 0, common = 0;
  each_world([&](const World& world) {
    ++count;
    mine.clock = std::max(mine.clock, static_cast<std::uint32_t>(world.id >> 32U));
    // Threads may have made more than kMostWorlds at once.
    if (common < kMostWorlds && has_all(world, meeting.places)) mine.worlds[common++] = world.id;
  });
  const bool strange = std::count(meeting.places.begin(), meeting.places.end(), MPI_UNDEFINED) > 0;
  // What MPI_Init has begun is one world, and ends with it.
  const bool has_begun = process().begun == Begun::kByInit && meeting.comm != g_host.comm_world;
  const bool unfit = !meeting.joins && (strange || has_begun);
  if (worlds().closed || unfit || meeting.places.empty()) {
    mine.closed = 1;
  } else if (count >= kMostWorlds) {
    mine.closed = kFull;
  }
  return mine;
}

// A process may have left worlds by which others would still reach it.
void forget_who_left(const Meeting& meeting, const std::vector<Hello>& all) {
  const std::lock_guard lock(worlds().mutex);
  each_world([&](World& world) {
    for (std::size_t rank = 0; rank < meeting.places.size(); ++rank) {
      if (meeting.places[rank] == MPI_UNDEFINED) continue;
      std::int32_t& life = world.lives[static_cast<std::size_t>(meeting.places[rank])];
      if (all[rank].left > life) life = -1;
    }
  });
}

// Whether they are all in a world, and all know that already: another thread may be about to enter
// one.
bool is_in_common(const Meeting& meeting, const std::vector<Hello>& all) {
  const auto& mine = all[static_cast<std::size_t>(meeting.rank)].worlds;
  return std::any_of(mine.begin(), mine.end(), [&](std::uint64_t id) {
    return id != 0 &&
           first_rank(all, [id](const Hello& hello) {
             return std::find(hello.worlds.begin(), hello.worlds.end(), id) == hello.worlds.end();
           }) < 0;
  });
}

// On, or off on all of them with one line that says why.
bool agree_to_start(const Meeting& meeting, const std::vector<Hello>& all,
                    const std::string& refused) {
  static std::atomic<bool> said = false;
  const int off = first_rank(all, [](const Hello& hello) { return hello.on == 0; });
  const int on = first_rank(all, [](const Hello& hello) { return hello.on != 0; });
  if (off >= 0 && on == meeting.rank && !said.exchange(true)) {
    say("%s, because CARILLON=off on rank %d", scope_of(meeting).c_str(), off);
  }
  const int without = first_rank(all, [](const Hello& hello) { return hello.refused != 0; });
  if (off < 0 && without == meeting.rank && !said.exchange(true)) {
    say("%s: %s", scope_of(meeting).c_str(), refused.c_str());
  }
  return off < 0 && without < 0;
}

// Called by carillon while it waits.
void idle(void* arg) {
  if (settles_slowly()) advance_flights();
  progress_worlds(static_cast<const World*>(arg));
  advance_checks();
  progress_host();
}

crl_status_t make_context(const Meeting& meeting, World& world) {
  Bootstrap bootstrap{meeting.comm, meeting.rank, meeting.size};
  crl_context_config_t config{};
  config.struct_bytes = sizeof(config);
  config.oob = bootstrap.oob();
  config.idle = idle;
  config.idle_arg = &world;
  config.threaded = process().threaded ? 1 : 0;
  tell_heap(&config);
  return crl_context_create(&config, &world.context);
}

void enter(const Meeting& meeting, const std::vector<Hello>& all, std::unique_ptr<World> world) {
  world->lives.resize(static_cast<std::size_t>(process().world_size), -1);
  for (std::size_t rank = 0; rank < all.size() && !meeting.joins; ++rank) {
    world->lives[static_cast<std::size_t>(meeting.places[rank])] = all[rank].left;
  }
  const std::lock_guard lock(worlds().mutex);
  if (meeting.joins) {  // memory of MPI_Alloc_mem is the first one's
    std::atomic<World*>* last = &g_worlds;
    while (World* const one = last->load(std::memory_order_relaxed)) last = &one->earlier;
    last->store(world.release(), std::memory_order_release);  // partner: progress_worlds
    return;
  }
  world->earlier.store(g_worlds.load(std::memory_order_relaxed), std::memory_order_relaxed);
  g_worlds.store(world.release(), std::memory_order_release);  // partner: progress_worlds
}

// What is not set on all ranks is on none. There is one recording, of the first world of all
// processes.
void agree_to_observe(Meeting& meeting, const std::vector<Hello>& all) {
  Settings& settings = meeting.settings;
  const auto me = static_cast<std::size_t>(meeting.rank);
  const int silent = first_rank(all, [](const Hello& hello) { return hello.records != kRecords; });
  if (silent >= 0) settings.record.clear();
  if (silent >= 0 && all[me].records == kRecords) {
    g_recorded.store(false);
    const bool later = all[static_cast<std::size_t>(silent)].records == kHasRecorded;
    if (meeting.rank < 2) {
      say(later ? "nothing is recorded here, because rank %d has made its recording with others"
                : "nothing is recorded, because CARILLON_RECORD is not set on rank %d",
          silent);
    }
  }
  const int careless = first_rank(all, [](const Hello& hello) { return hello.checks == 0; });
  if (careless >= 0 && std::exchange(settings.check, false) && meeting.rank < 2) {
    say("nothing is checked, because CARILLON_CHECK is not set on rank %d", careless);
  }
}

// What is not set on all ranks of MPI_COMM_WORLD is on none.
void agree_to_join(const std::vector<Hello>& all) {
  const int apart = first_rank(all, [](const Hello& hello) { return hello.joins == 0; });
  const int joins = first_rank(all, [](const Hello& hello) { return hello.joins != 0; });
  process().joins = apart < 0;
  if (apart >= 0 && joins == process().world_rank) {
    say("communicators that are merged with processes of other jobs are left to the MPI, because "
        "CARILLON_MERGED is not on on rank %d",
        apart);
  }
}

std::uint16_t wishes_to_record(const Settings& settings) {
  if (settings.record.empty()) return 0;
  return g_recorded.exchange(true) ? kHasRecorded : kRecords;
}

bool make_world(Meeting& meeting, const std::vector<Hello>& first) {
  Settings& settings = meeting.settings;
  const int all_size = process().world_size;
  if (meeting.size < all_size && !settings.record.empty()) {
    static std::atomic<bool> said = false;
    settings.record.clear();
    if (meeting.rank == 0 && !said.exchange(true)) {
      say("nothing is recorded of %d of %d processes: that begins with a communicator of all",
          meeting.size, all_size);
    }
  }
  std::uint32_t clock = 0;
  for (const Hello& hello : first) clock = std::max(clock, hello.clock);
  auto world = std::make_unique<World>();
  world->id = make_id(clock + 1, first[0].random);
  world->joined = meeting.joins;
  world->users = meeting.joins ? 1 : 0;
  meeting.made = world.get();
  const crl_status_t status = make_host_objects() ? make_context(meeting, *world) : CRL_ERR_SYSTEM;
  // The other ranks know by the library that this one does not take part, and wait for it here.
  if (status == CRL_ERR_INVALID_ARGUMENT) end_job_over_settings(meeting, crl_last_error());
  const auto all = exchange(meeting, {.started = status == CRL_OK,
                                      .records = wishes_to_record(settings),
                                      .checks = static_cast<std::uint16_t>(settings.check ? 1 : 0),
                                      .reduces = reduces_locally(),
                                      .grid_orders = grid_orders()});
  agree_to_observe(meeting, all);
  const int failed = first_rank(all, [](const Hello& hello) { return hello.started == 0; });
  if (failed < 0) {
    world->reduces = first_rank(all, [](const Hello& hello) { return hello.reduces == 0; }) < 0;
    world->grid_orders = all[0].grid_orders;
    for (const Hello& hello : all) world->grid_orders &= hello.grid_orders;
    if (!settings.record.empty()) start_recording(settings.record, meeting.comm);
    world->checked = settings.check && start_checking(meeting.comm);
    if (settings.check && !world->checked && meeting.rank == 0) {
      say("nothing is checked, because the MPI refuses what that takes");
    }
    enter(meeting, first, std::move(world));
    return true;
  }
  meeting.made = nullptr;
  if (failed == meeting.rank) say("%s: %s", scope_of(meeting).c_str(), crl_last_error());
  if (status == CRL_OK) crl_context_destroy(world->context);
  if (meeting.joins) return false;
  // Else a communicator that is left now might be served later, and by others sooner than by some.
  const std::lock_guard lock(worlds().mutex);
  worlds().closed = true;
  return false;
}

std::vector<Hello> ask_all(const Meeting& meeting, bool refused) {
  auto all = exchange(meeting, greet(meeting, refused));
  forget_who_left(meeting, all);
  return all;
}

// False: they cannot have a world.
bool meet(Meeting& meeting, const std::string& refused) {
  if (!meeting.settings.error.empty()) {
    end_job_over_settings(meeting, meeting.settings.error.c_str());
  }
  auto all = ask_all(meeting, !refused.empty());
  // Whose worlds are so many may have heard only now that the others of them have left.
  if (first_rank(all, [](const Hello& hello) { return hello.closed == kFull; }) >= 0 &&
      !is_in_common(meeting, all)) {
    release_worlds();
    all = ask_all(meeting, !refused.empty());
  }
  // Of sessions some had before MPI_Init, what MPI_Init makes is to serve communicators, too.
  const int earlier = first_rank(all, [](const Hello& hello) { return hello.by_session != 0; });
  std::string why = refused;
  if (is_of_init(meeting)) {
    agree_to_join(all);
    process().beside_sessions = earlier >= 0;
    if (earlier >= 0) {
      if (!begin_as_others()) why = kNoSession;
      all = ask_all(meeting, !why.empty());
    }
  }
  if (!agree_to_start(meeting, all, why)) return false;
  if (is_in_common(meeting, all)) return true;
  const int closed = first_rank(all, [](const Hello& hello) { return hello.closed != 0; });
  if (closed < 0) return make_world(meeting, all);
  static std::atomic<bool> said = false;
  const bool full = all[static_cast<std::size_t>(closed)].closed == kFull;
  if (full && meeting.rank == closed && !said.exchange(true)) {
    say("collectives of %d processes are left to the MPI: rank %d is in %d groups with carillon, "
        "of "
        "which none has them all; so will others be",
        meeting.size, process().world_rank, static_cast<int>(kMostWorlds));
  }
  return false;
}

}  // namespace

std::vector<int> places_of(MPI_Comm comm, int size) {
  MPI_Group group{}, all = process().world_group;
  const bool has_objects = process().has_objects;  // else MPI_Init has started nothing
  if (!has_objects && host().Comm_group(g_host.comm_world, &all) != MPI_SUCCESS) return {};
  if (host().Comm_group(comm, &group) != MPI_SUCCESS) return {};
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> places(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const int status = host().Group_translate_ranks(group, size, ranks.data(), all, places.data());
  host().Group_free(&group);
  if (!has_objects) host().Group_free(&all);
  if (status != MPI_SUCCESS) places.clear();
  return places;
}

bool has_strangers(MPI_Comm comm) {
  int size = 0;
  host().Comm_size(comm, &size);
  const std::vector<int> places = places_of(comm, size);
  return std::count(places.begin(), places.end(), MPI_UNDEFINED) > 0;
}

World* use_world(MPI_Comm comm, int size) {
  if (is_left_for_good(comm)) return nullptr;
  const std::vector<int> places = places_of(comm, size);
  const World* const joined = joined_world(comm);
  World* found = nullptr;
  const std::lock_guard lock(worlds().mutex);
  each_world([&](World& world) {
    if (&world != joined && (places.empty() || !has_all(world, places))) return;
    if (found == nullptr || world.id > found->id) found = &world;
  });
  if (found != nullptr) found->users.fetch_add(1, std::memory_order_relaxed);
  return found;
}

void drop_world(World* world) {
  // Partner: release_worlds.
  if (world != nullptr) world->users.fetch_sub(1, std::memory_order_release);
}

bool use_again(const World* world) {
  const std::lock_guard lock(worlds().mutex);
  World* const found = find_world(world);
  if (found != nullptr) found->users.fetch_add(1, std::memory_order_relaxed);
  return found != nullptr;
}

void drop_again(const World* world) {
  const std::lock_guard lock(worlds().mutex);
  drop_world(find_world(world));
}

bool join_world(MPI_Comm comm, const char* function, const std::string& refused) {
  const Process& state = process();
  release_worlds();
  Meeting meeting{.comm = comm, .function = function, .settings = read_settings()};
  host().Comm_rank(comm, &meeting.rank);
  host().Comm_size(comm, &meeting.size);
  if (state.has_objects) {
    meeting.places = places_of(comm, meeting.size);
  } else {  // all that were started together are here, or this process is refused
    meeting.places.resize(static_cast<std::size_t>(meeting.size));
    std::iota(meeting.places.begin(), meeting.places.end(), 0);
  }
  const bool on = meet(meeting, refused);
  const Settings& settings = meeting.settings;
  set_stats(settings.stats);
  static std::atomic<bool> said = false;
  if (!on && meeting.rank == 0 && !said.exchange(true)) {
    if (!settings.record.empty()) say("nothing is recorded, because carillon is off");
    if (settings.check) say("nothing is checked, because carillon is off");
  }
  return on;
}

// It is not recorded, nor checked.
World* join_jobs(MPI_Comm comm, const char* function, const std::string& refused) {
  release_worlds();
  Meeting meeting{.comm = comm, .function = function, .joins = true, .settings = read_settings()};
  host().Comm_rank(comm, &meeting.rank);
  host().Comm_size(comm, &meeting.size);
  meeting.places = places_of(comm, meeting.size);
  meeting.settings.record.clear();
  meeting.settings.check = false;
  (void)meet(meeting, refused);
  return meeting.made;
}

void leave_worlds() {
  World* next = g_worlds.exchange(nullptr, std::memory_order_relaxed);
  while (next != nullptr) {
    const std::unique_ptr<World> world(next);
    next = world->earlier.load(std::memory_order_relaxed);
    destroy(*world);
  }
  const std::lock_guard lock(worlds().mutex);
  worlds().closed = false;
  ++worlds().left;
}

}  // namespace carillon::shim
