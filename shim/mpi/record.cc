// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "process.h"
#include "program/text.h"
#include "record_merge.h"
#include "world.h"

namespace carillon::shim {

namespace {

using Clock = ObserverClock;

// What the program did up to the end of a call.
struct Event {
  std::int64_t compute_ns = 0, took_ns = 0;
  std::uint32_t call = 0;    // place in Recorder::definitions, or kOther + the collective
  std::uint32_t flight = 0;  // as which one in flight it was started, or, kEnd, waited for
};
constexpr std::uint32_t kOther = UINT32_C(1) << 31;
constexpr std::uint32_t kEnd = kOther + kCalls + 1;
constexpr std::size_t kInMemory = 65536;  // events; more are in a file that has no name

struct Recorder {
  std::string file;
  bool finished = false;
  std::string error;  // why there will be no recording
  MPI_Comm comm{};    // of the world, ours alone
  int rank = 0, size = 0;
  std::vector<int> ranks;  // in it, by the place of a process (places_of); -1: it is not there
  std::mutex mutex;        // of what follows
  std::thread::id thread;
  Clock::time_point free_since;  // when the program went on
  std::vector<Event> events;
  std::FILE* spill = nullptr;
  std::vector<std::string> teams;  // their names, by Communicator::recorded_team
  Definitions definitions;
  std::unordered_map<std::string, std::uint32_t> known;  // calls, by what they are
  std::vector<bool> in_flight = {true};                  // by Flight::recorded; 0 is none
  std::vector<std::uint32_t> ended;                      // within the call being recorded
};

Recorder* g_recorder = nullptr;

std::int64_t ns(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

void stop_recording(const std::string& error) {
  g_recorder->error = error;
  observe_no_more(kRecording);
}

void keep(const Event& event) {
  Recorder& recorder = *g_recorder;
  recorder.events.push_back(event);
  if (recorder.events.size() < kInMemory) return;
  if (recorder.spill == nullptr) recorder.spill = std::tmpfile();
  if (recorder.spill == nullptr ||
      std::fwrite(recorder.events.data(), sizeof(Event), kInMemory, recorder.spill) != kInMemory) {
    stop_recording("there is no room for its events in the folder of temporary files");
  }
  recorder.events.clear();
}

// The ranks of the world that are the communicator's. Empty: it has other processes, too.
std::vector<Rank> world_ranks(const Communicator& communicator) {
  const std::vector<int>& all = g_recorder->ranks;
  std::vector<Rank> of_world;
  for (const int place : places_of(communicator.handle, communicator.size)) {
    const int rank = place == MPI_UNDEFINED ? -1 : all[static_cast<std::size_t>(place)];
    if (rank < 0) return {};
    of_world.push_back(rank);
  }
  return of_world;
}

// Whether it has a team, known by its members, equally on all of them.
bool find_team(Communicator& communicator) {
  Recorder& recorder = *g_recorder;
  if (communicator.recorded_team == Communicator::kTeamNotKnown) {
    const std::vector<Rank> ranks = world_ranks(communicator);
    communicator.recorded_team = Communicator::kNoTeam;
    if (!ranks.empty()) {
      communicator.recorded_team = static_cast<int>(recorder.teams.size());
      recorder.teams.push_back(recorder.definitions.add_team(ranks, recorder.size));
    }
  }
  return communicator.recorded_team != Communicator::kNoTeam;
}

std::int64_t size_of(MPI_Datatype type) {
  const TypeInfo* const info = find_type(type);
  return info != nullptr ? info->size : 0;
}

// Bytes to or from each member, as one side of a call says.
std::vector<std::int64_t> bytes_of(const Rule& rule, const Side& side, const Buffer& buffer,
                                   const Blocks& blocks, const Communicator& communicator,
                                   int root) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(communicator.size));
  if (!counts_at(side.at, rule.rooted && root == communicator.rank)) return bytes;
  for (int i = 0; i < communicator.size; ++i) {
    std::int64_t& to = bytes[static_cast<std::size_t>(i)];
    if (blocks.counts != nullptr) {
      const MPI_Datatype type = blocks.types != nullptr ? blocks.types[i] : buffer.type;
      to = blocks.count(i) * size_of(type);
    } else if (!rule.rooted || i == root) {
      to = buffer.count * size_of(buffer.type);
    }
  }
  return bytes;
}

// What this rank sends and receives. In place it is what the list says that there is.
void describe_tables(const Rule& rule, const Communicator& communicator, const Call& call,
                     program::Call& made) {
  const auto table = [&](const Side& side, const Buffer& buffer, const Blocks& blocks) {
    return bytes_of(rule, side, buffer, blocks, communicator, call.root);
  };
  const auto self = static_cast<std::size_t>(communicator.rank);
  const bool out_in_place = call.out.address == MPI_IN_PLACE;
  made.send_bytes = table(rule.in, call.in, call.in_blocks);
  if (rule.kind == Kind::kReduceScatter) {
    made.recv_bytes.assign(made.send_bytes.size(), made.send_bytes[self]);
    return;
  }
  made.in_place = false;
  if (!out_in_place) made.recv_bytes = table(rule.out, call.out, call.out_blocks);
  if (!out_in_place && call.in.address != MPI_IN_PLACE) return;
  if (rule.kind == Kind::kLists) {
    made.send_bytes = made.recv_bytes;
    return;
  }
  const std::int64_t own = (out_in_place ? made.send_bytes : made.recv_bytes)[self];
  auto& bytes = out_in_place ? made.recv_bytes : made.send_bytes;
  bytes.assign(static_cast<std::size_t>(communicator.size), rule.rooted ? 0 : own);
  bytes[rule.rooted ? static_cast<std::size_t>(call.root) : self] = own;
}

// An alltoallv in which most blocks are empty.
void describe_neighbours(const Communicator& communicator, const Call& call, program::Call& made) {
  const Neighbours found = find_neighbours(communicator.handle, communicator.rank);
  const auto table = [&](const Buffer& buffer, const Blocks& blocks, const Neighbours::End& end) {
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(communicator.size));
    for_each_block(end, [&](int rank, int block) {
      const MPI_Datatype type = blocks.types != nullptr ? blocks.types[block] : buffer.type;
      const std::int64_t count = blocks.counts != nullptr ? blocks.count(block) : buffer.count;
      bytes[static_cast<std::size_t>(rank)] += count * size_of(type);
    });
    return bytes;
  };
  made.send_bytes = table(call.in, call.in_blocks, found.destinations);
  made.recv_bytes = table(call.out, call.out_blocks, found.sources);
}

// The size of an element is that of its reduction.
void describe_reduction(const Call& call, std::int64_t count, program::Call& made) {
  int commutes = 1;
  host().Op_commutative(call.op, &commutes);
  const std::int64_t bytes = std::max<std::int64_t>(size_of(call.in.type), 1);
  const bool fits = bytes <= program::kMaxElementBytes;
  made.count = fits ? count : count * bytes;
  made.element_bytes = fits ? static_cast<std::int32_t>(bytes) : 1;
  made.commutative = commutes != 0;
}

carillon::Collective name_of(Collective collective) {
  switch (collective) {
    case Collective::kBcast: return carillon::Collective::kBcast;
    case Collective::kReduce: return carillon::Collective::kReduce;
    case Collective::kAllreduce: return carillon::Collective::kAllreduce;
    case Collective::kReduceScatterBlock: return carillon::Collective::kReduceScatterBlock;
    case Collective::kAllgather: return carillon::Collective::kAllgather;
    case Collective::kGather: return carillon::Collective::kGather;
    case Collective::kScatter: return carillon::Collective::kScatter;
    case Collective::kAlltoall: return carillon::Collective::kAlltoall;
    case Collective::kAlltoallv:
    case Collective::kAlltoallw:
    case Collective::kNeighborAllgather:
    case Collective::kNeighborAllgatherv:
    case Collective::kNeighborAlltoall:
    case Collective::kNeighborAlltoallv:
    case Collective::kNeighborAlltoallw: return carillon::Collective::kAlltoallv;
    case Collective::kAllgatherv: return carillon::Collective::kAllgatherv;
    case Collective::kGatherv: return carillon::Collective::kGatherv;
    case Collective::kScatterv: return carillon::Collective::kScatterv;
    case Collective::kReduceScatter: return carillon::Collective::kReduceScatter;
    case Collective::kScan: return carillon::Collective::kScan;
    case Collective::kExscan: return carillon::Collective::kExscan;
    default: return carillon::Collective::kBarrier;
  }
}

// The call as this rank makes it.
program::Call describe(Collective collective, const Communicator& communicator, const Call& call) {
  const Rule& rule = rule_of(collective);
  program::Call made{.collective = name_of(collective), .root = rule.rooted ? call.root : 0};
  const bool is_root = rule.rooted && call.root == communicator.rank;
  const bool in_place_in = rule.in_place == InPlace::kInput && call.in.address == MPI_IN_PLACE;
  const bool in_place_out = rule.in_place == InPlace::kOutput && call.out.address == MPI_IN_PLACE;
  const bool has_in = counts_at(rule.in.at, is_root) && !in_place_in;
  made.in_place = in_place_in || (in_place_out && is_root);
  switch (rule.kind) {
    case Kind::kData: {
      const Buffer& block = has_in ? call.in : call.out;
      made.count = block.count * size_of(block.type);
      break;
    }
    case Kind::kReduction: describe_reduction(call, call.in.count, made); break;
    case Kind::kReduceScatter: describe_reduction(call, 0, made); [[fallthrough]];
    case Kind::kLists:
    case Kind::kOneList: describe_tables(rule, communicator, call, made); break;
    case Kind::kNeighbours: describe_neighbours(communicator, call, made); break;
    case Kind::kBarrier: break;
  }
  return made;
}

// What tells calls apart, without the work of writing them.
std::string key_of(const program::Call& call, int team) {
  const std::int64_t words[] = {static_cast<std::int64_t>(call.collective),
                                team,
                                call.root,
                                call.count,
                                call.element_bytes,
                                call.commutative ? 1 : 0,
                                call.in_place ? 1 : 0};
  std::string key(reinterpret_cast<const char*>(words), sizeof(words));
  for (const auto* const bytes : {&call.send_bytes, &call.recv_bytes}) {
    key.append(reinterpret_cast<const char*>(bytes->data()), bytes->size() * sizeof(std::int64_t));
  }
  return key;
}

// Whether the call can be described; else only its time is known.
bool is_known(std::size_t called, Communicator& communicator, Reason left) {
  if (called >= kCollectives || communicator.size == 0) return false;
  return (left == Reason::kNone || left == Reason::kNotServed) && find_team(communicator);
}

// Whether this thread's calls can be recorded; with the lock held.
bool may_record() {
  Recorder& recorder = *g_recorder;
  if (!is_observed_by(kRecording)) return false;
  if (recorder.thread == std::thread::id()) recorder.thread = std::this_thread::get_id();
  if (recorder.thread == std::this_thread::get_id()) return true;
  stop_recording("it calls collectives from several threads");
  return false;
}

// The call among those of this rank, as which it is added if it is new.
std::uint32_t place_of(Collective collective, Communicator& communicator, const Call& call) {
  Recorder& recorder = *g_recorder;
  const program::Call made = describe(collective, communicator, call);
  const auto& team = recorder.teams[static_cast<std::size_t>(communicator.recorded_team)];
  const auto next = static_cast<std::uint32_t>(recorder.definitions.calls.size());
  const auto [row, is_new] =
      recorder.known.try_emplace(key_of(made, communicator.recorded_team), next);
  if (is_new) recorder.definitions.add_call(made, team);
  return row->second;
}

// What the program did until `begin` was computation; it goes on now.
void keep_after(Clock::time_point begin, Event event) {
  Recorder& recorder = *g_recorder;
  event.compute_ns = std::max<std::int64_t>(0, ns(begin - recorder.free_since));
  keep(event);
  if (event.call == kEnd) recorder.in_flight[event.flight] = false;
  for (const std::uint32_t flight : std::exchange(recorder.ended, {})) {
    keep({.call = kEnd, .flight = flight});
    recorder.in_flight[flight] = false;
  }
  recorder.free_since = Clock::now();
}

// The steps of this rank, handed over in pieces.
class Steps {
 public:
  explicit Steps(const std::vector<std::string>& names) : names_(names) {}
  /// The next piece; empty at the end.
  std::string next() {
    Recorder& recorder = *g_recorder;
    std::string text;
    if (recorder.spill != nullptr) {
      std::vector<Event> events(kInMemory / 4);
      events.resize(std::fread(events.data(), sizeof(Event), events.size(), recorder.spill));
      for (const Event& event : events) add(event, &text);
      if (!text.empty()) return text;
    }
    for (const Event& event : std::exchange(recorder.events, {})) add(event, &text);
    return text;
  }

 private:
  void add(const Event& event, std::string* text) const {
    if (event.compute_ns > 0) *text += program::compute_line(event.compute_ns) + "\n";
    const std::string flight = "f" + std::to_string(event.flight);
    if (event.call == kEnd) {
      *text += program::wait_line(flight) + "\n";
    } else if (event.call < kOther) {
      const std::string& name = names_[event.call];
      *text += (event.flight == 0 ? program::do_line(name) : program::start_line(name, flight));
      *text += '\n';
    } else if (event.call != kOther + kCalls) {
      *text += program::other_line(call_name(event.call - kOther), event.took_ns) + "\n";
    }
  }

  const std::vector<std::string>& names_;
};

}  // namespace

void record_call(const RecordedTime& time, std::size_t called, Communicator& communicator,
                 const Call& call, Reason left) {
  Event event{.took_ns = ns(time.end - time.begin),
              .call = kOther + static_cast<std::uint32_t>(called)};
  const std::lock_guard lock(g_recorder->mutex);
  if (!may_record()) return;
  if (is_known(called, communicator, left)) {
    event.call = place_of(static_cast<Collective>(called), communicator, call);
  }
  keep_after(time.begin, event);
}

void record_known(std::size_t called, const Call& call, Flight* flight) {
  const std::lock_guard lock(g_recorder->mutex);
  if (!may_record()) return;
  const auto collective = static_cast<Collective>(called % kCollectives);
  const bool known = find_team(*flight->communicator);
  flight->known_as = known ? place_of(collective, *flight->communicator, call)
                           : kOther + static_cast<std::uint32_t>(called);
}

void record_start(Clock::time_point begin, Flight* flight) {
  Recorder& recorder = *g_recorder;
  const std::lock_guard lock(recorder.mutex);
  if (!may_record()) return;
  if (flight->known_as >= kOther) return keep_after(begin, {.call = flight->known_as});
  auto free = std::find(recorder.in_flight.begin(), recorder.in_flight.end(), false);
  if (free == recorder.in_flight.end()) {
    recorder.in_flight.push_back(false);
    free = recorder.in_flight.end() - 1;
  }
  *free = true;
  flight->recorded = static_cast<std::uint32_t>(free - recorder.in_flight.begin());
  keep_after(begin, {.call = flight->known_as, .flight = flight->recorded});
}

void record_end(Clock::time_point begin, std::uint32_t recorded) {
  Recorder& recorder = *g_recorder;
  const std::lock_guard lock(recorder.mutex);
  if (recorded == 0 || !may_record()) return;
  if ((t_observed & kRecording) != 0) {
    recorder.ended.push_back(recorded);
  } else {
    keep_after(begin, {.call = kEnd, .flight = recorded});
  }
}

void start_recording(const std::string& file, MPI_Comm world) {
  auto recorder = std::make_unique<Recorder>();
  if (host().Comm_dup(world, &recorder->comm) != MPI_SUCCESS) return;
  recorder->file = file;
  host().Comm_rank(world, &recorder->rank);
  host().Comm_size(world, &recorder->size);
  recorder->ranks.assign(static_cast<std::size_t>(process().world_size), -1);
  int rank = 0;
  for (const int place : places_of(world, recorder->size)) {
    recorder->ranks[static_cast<std::size_t>(place)] = rank++;
  }
  recorder->free_since = Clock::now();
  g_recorder = recorder.release();  // never destroyed: threads may be in a call at the end
  observe(kRecording);
}

bool has_recording() { return g_recorder != nullptr && !g_recorder->finished; }

void finish_recording() {
  if (!has_recording()) return;
  Recorder& recorder = *g_recorder;
  recorder.finished = true;
  observe_no_more(kRecording);
  keep({.compute_ns = ns(Clock::now() - recorder.free_since), .call = kOther + kCalls});
  if (recorder.spill != nullptr && std::fseek(recorder.spill, 0, SEEK_SET) != 0) {
    stop_recording("its events cannot be read again");
  }
  const Merge merge{recorder.comm, recorder.rank, recorder.size, recorder.file};
  std::vector<std::string> names;
  Steps steps(names);
  merge.run(recorder.definitions, recorder.error, &names, [&] { return steps.next(); });
  if (recorder.spill != nullptr) std::fclose(recorder.spill);
  host().Comm_free(&recorder.comm);
}

}  // namespace carillon::shim
