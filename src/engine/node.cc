// SPDX-License-Identifier: Apache-2.0
#include "engine/node.h"

#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/boot_id.h"
#include "base/cores.h"
#include "base/forms.h"
#include "base/log.h"
#include "team/bootstrap.h"
#include "team/numa.h"

namespace carillon {
namespace {

constexpr const char* kNodeRanks = "CARILLON_NODE_RANKS";
constexpr const char* kDomainRanks = "CARILLON_DOMAIN_RANKS";

// What each process tells all others first. Of the same size in all versions. Plain data: it
// travels as bytes.
struct Greeting {
  static constexpr std::uint64_t kRefuses = 0;  // instead of a version: it will not take part
  std::uint64_t magic = shm::kMagic;
  std::uint64_t version = shm::kVersion;
};

// What each process tells all others. Plain data: it travels as bytes.
struct Introduction {
  std::uint64_t world = 0;          // random; the job's is that of its first process
  std::uint64_t machine = 0;        // equal where cores are shared: containers, virtual nodes
  std::uint64_t host = 0;           // equal where memory can be shared
  std::uint64_t exchange_name = 0;  // 0: cannot listen
  std::uint64_t heap_bytes = 0;     // of the process's own that others may map
  std::uint64_t room_bytes = 0;     // of address space that it may still take
  std::array<std::uint64_t, kMaxCores / 64> cores = {};
};

struct Outcome {
  std::int32_t joined = 0;
};

// Processes with equal values reach each other's abstract sockets and are one user's.
std::uint64_t host_id() {
  std::string text = boot_id();
  struct stat network = {};
  if (stat("/proc/self/ns/net", &network) == 0) text += " " + std::to_string(network.st_ino);
  text += " " + std::to_string(geteuid());
  return std::hash<std::string>()(text);
}

// What `ulimit -v` leaves.
std::uint64_t address_room() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::uint64_t used = pages * shm::kPageBytes;
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

std::uint64_t random_number() {
  std::uint64_t value = 0;
  return getrandom(&value, sizeof value, 0) == sizeof value ? value : 0;
}

// A machine that has more has some of them under one bit.
std::array<std::uint64_t, kMaxCores / 64> own_cores() {
  std::array<std::uint64_t, kMaxCores / 64> mask = {};
  for (const int core : allowed_cores()) {
    const std::size_t bit = static_cast<std::size_t>(core) % kMaxCores;
    mask[bit / 64] |= UINT64_C(1) << (bit % 64);
  }
  return mask;
}

std::string strange(const Greeting& greeting) {
  if (greeting.magic != shm::kMagic) return "sent no greeting of carillon";
  if (greeting.version == Greeting::kRefuses) {
    return "does not take part, because of a setting of its own: its error says which";
  }
  return "runs version " + std::to_string(greeting.version) +
         " of carillon's protocol, this one version " + std::to_string(shm::kVersion) +
         "; install the same on all nodes";
}

// From what all told: which node each process is on, and what there is of the own one.
NodePlace find_place(std::span<const Introduction> all, int rank) {
  const Introduction& mine = all[static_cast<std::size_t>(rank)];
  NodePlace place{.size = 0, .world = all.front().world};
  std::bitset<kMaxCores> cores;
  std::size_t neighbours = 0;  // on the same cores
  std::map<std::uint64_t, std::int32_t> nodes;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const Introduction& other = all[static_cast<std::size_t>(i)];
    const auto next = static_cast<std::int32_t>(nodes.size());
    place.node_of.push_back(nodes.try_emplace(other.host, next).first->second);
    if (other.machine == mine.machine) {
      ++neighbours;
      for (std::size_t c = 0; c < kMaxCores; ++c) {
        if ((other.cores[c / 64] >> (c % 64) & 1) != 0) cores.set(c);
      }
    }
    if (other.host != mine.host) continue;
    if (i == rank) place.rank = place.size;
    ++place.size;
  }
  place.oversubscribed = neighbours > cores.count();
  place.spare_cores = 2 * neighbours <= cores.count();
  for (std::size_t c = 0; c < kMaxCores; ++c) {
    if (cores[c]) CPU_SET(c, &place.used_cores);
  }
  return place;
}

// The first process of the node.
const Introduction& leader_of(std::span<const Introduction> all, std::uint64_t host) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const Introduction& other) { return other.host == host; });
}

// A process of the node that cannot listen has no socket to ask with, either: nobody waits for it.
Status find_mute(std::span<const Introduction> all, std::uint64_t host) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Introduction& one) {
    return one.host == host && one.exchange_name == 0;
  });
  if (found == all.end()) return {};
  return {Code::kSystem, "joining the node: process " + std::to_string(found - all.begin()) +
                             " of the job has no socket (it says why)"};
}

Cores cores_of(const Introduction& process) {
  Cores cores;
  for (std::size_t c = 0; c < kMaxCores; ++c) {
    cores.set(c, (process.cores[c / 64] >> (c % 64) & 1) != 0);
  }
  return cores;
}

// By the node's first process, for all of it.
void tell_domains(std::span<const Introduction> all, std::uint64_t host, const std::string& setting,
                  shm::Segment& segment) {
  std::vector<Cores> cores;
  for (const Introduction& process : all) {
    if (process.host == host) cores.push_back(cores_of(process));
  }
  const std::vector<int> domains = setting.empty() ? numa_domains(cores) : std::vector<int>();
  for (int rank = 0; rank < static_cast<int>(cores.size()); ++rank) {
    const int domain = setting.empty() ? domains[static_cast<std::size_t>(rank)]
                                       : part_of_rank(kDomainRanks, setting, rank).value();
    segment.state(rank).domain.store(domain + 1, std::memory_order_relaxed);
  }
}

// What the node's first process has told.
void note_domains(NodePlace& place) {
  const auto domain_of = [&](int rank) {
    // partner: tell_domains(), by way of the exchange
    return place.segment->state(rank).domain.load(std::memory_order_relaxed) - 1;
  };
  place.domain = domain_of(place.rank);
  std::set<int> known;
  for (int rank = 0; rank < place.size; ++rank) known.insert(domain_of(rank));
  known.erase(-1);
  place.has_domains = known.size() > 1;
}

// How long the longest of the node's heaps is, if each of its processes has room for all of them.
std::uint64_t heap_room(std::span<const Introduction> all, std::uint64_t host, int ranks,
                        const shm::SegmentSizes& sizes) {
  std::uint64_t longest = 0, room = UINT64_MAX;
  for (const Introduction& other : all) {
    if (other.host != host) continue;
    longest = std::max(longest, other.heap_bytes);
    room = std::min(room, other.room_bytes);
  }
  constexpr std::uint64_t kRest = UINT64_C(256) << 20;  // for what the programs take later
  const std::uint64_t part = sizes.control_bytes + sizes.pool.bytes() + sizes.reserve_bytes +
                             sizes.heap_bytes + longest + shm::kHugePageBytes;
  if (longest == 0 || room >= static_cast<std::uint64_t>(ranks) * part + kRest) return longest;
  log(LogLevel::kInfo,
      "the processes' heaps are not read by the others: they take more address space than ulimit "
      "-v "
      "leaves; a smaller CARILLON_SHARED_HEAP_MIB may fit");
  return 0;
}

// Who asked for messages to be lent is told that they are not. One line for the node: mostly all of
// its ranks, or none, can read the others.
void tell_reading(const Status& reads, const Config& settings, shm::Segment& segment) {
  if (reads.ok() || settings.lend_bytes == 0) return;
  const LogLevel level = settings.lend_bytes > 0 ? LogLevel::kWarning : LogLevel::kInfo;
  if (!log_enabled(level)) return;
  const std::uint32_t line = level == LogLevel::kWarning ? 2 : 1;
  if ((segment.header().told.fetch_or(line, std::memory_order_relaxed) & line) != 0) return;
  log(level,
      "long messages within the node go through shared memory, where they are copied twice: other "
      "ranks' memory cannot be read here (" +
          reads.to_string() + "); that takes the rights of ptrace, see kernel.yama.ptrace_scope");
}

// With room for the processes' heaps, and for exchanges of all of them, if there is as much: files
// may not be so long (ulimit -f), nor are addresses without end.
Result<std::shared_ptr<shm::Segment>> create_segment(int ranks, shm::SegmentSizes sizes) {
  auto segment = shm::Segment::create(ranks, sizes);
  if (!segment.ok() && sizes.program_bytes != 0) {
    log(LogLevel::kInfo,
        "the processes' heaps are not read by the others: " + segment.status().to_string() +
            "; a smaller CARILLON_SHARED_HEAP_MIB may fit");
    sizes.program_bytes = 0;
    segment = shm::Segment::create(ranks, sizes);
  }
  if (segment.ok() || sizes.reserve_bytes <= shm::SegmentSizes::kReserveBytes) return segment;
  log(LogLevel::kInfo,
      "long exchanges of all ranks of the node may find no room: " + segment.status().to_string());
  sizes.reserve_bytes = shm::SegmentSizes::kReserveBytes;
  return shm::Segment::create(ranks, sizes);
}

Status open_segment(shm::Exchange& own, std::uint64_t leader_name, int timeout_s,
                    const shm::SegmentSizes& sizes, NodePlace& place) {
  // They have just met. Who fails here goes on to where all tell how it was, and waits there for
  // so long: half of it leaves those that wait here time to come.
  const int timeout_ms = timeout_s * 1000 / 2;
  Result<std::shared_ptr<shm::Segment>> segment = Status();
  if (place.rank == 0) {
    segment = create_segment(place.size, sizes);
    if (!segment.ok()) return segment.status();
    if (Status status = own.serve(segment.value()->fd(), place.size - 1, timeout_ms);
        !status.ok()) {
      return status;
    }
  } else {
    auto fd = shm::Exchange::request(leader_name, timeout_ms);
    if (!fd.ok()) return fd.status();
    segment = shm::Segment::attach(std::move(fd.value()));
    if (!segment.ok()) return segment.status();
  }
  place.segment = segment.value();
  return place.segment->enter(place.rank);
}

void tell_unread(int heaps) {
  if (heaps == 0) return;
  log(LogLevel::kInfo,
      "the heaps of " + std::to_string(heaps) +
          " other processes of the node cannot be mapped here, and are not read by anybody: is "
          "/proc/PID/fd of theirs to be seen, and did they close their files?");
}

// Without it, what is in the heap is copied as other memory is.
void offer_heap(const shm::ProcessHeap& heap, NodePlace& place) {
  if (heap.bytes == 0 || place.segment->shape().program_bytes == 0) return;
  if (Status status = place.segment->offer_heap(place.rank, heap); !status.ok()) {
    log(LogLevel::kWarning, status.to_string() + "; others do not read what is in it");
  }
}

}  // namespace

Status greet(const crl_oob_t& oob, const Status& alone, std::int64_t timeout_s) {
  Greeting mine;
  if (!alone.ok()) mine.version = Greeting::kRefuses;
  auto greetings = exchange(oob, mine, static_cast<int>(timeout_s));
  if (!alone.ok()) return alone;
  if (!greetings.ok()) return greetings.status();
  const auto all = greetings.value()->all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].magic == shm::kMagic && all[i].version == shm::kVersion) continue;
    return {Code::kUnsupported,
            "start-up: process " + std::to_string(i) + " of the job " + strange(all[i])};
  }
  return {};
}

Result<NodePlace> join_node(const crl_oob_t& oob, const shm::SegmentSizes& sizes,
                            const shm::ProcessHeap& heap, const Config& settings) {
  const auto timeout_s = static_cast<int>(settings.join_timeout_s);
  const auto pretended = part_of_rank(kNodeRanks, settings.node_ranks, oob.rank);
  if (!pretended.ok()) return pretended.status();
  auto listener = shm::Exchange::listen();
  Introduction mine{
      .world = random_number(),
      .machine = std::hash<std::string>()(settings.machine.empty() ? boot_id() : settings.machine),
      .host = host_id() + static_cast<std::uint64_t>(pretended.value()),
      .heap_bytes = heap.bytes,
      .room_bytes = address_room(),
      .cores = own_cores()};
  if (listener.ok()) mine.exchange_name = listener.value().name();
  auto met = exchange(oob, mine, timeout_s);
  if (!met.ok()) return met.status();

  const auto all = met.value()->all();
  NodePlace place = find_place(all, oob.rank);
  shm::SegmentSizes own_sizes = sizes;
  if (place.oversubscribed) own_sizes.pool = sizes.crowded_pool;
  if (settings.pool_mib < 0) {
    own_sizes.reserve_bytes = shm::SegmentSizes::enough_reserve(
        static_cast<std::uint64_t>(place.size), chunk_bytes(settings));
  }
  own_sizes.program_bytes = heap_room(all, mine.host, place.size, own_sizes);
  Status opened = listener.ok() ? find_mute(all, mine.host) : listener.status();
  if (opened.ok()) {
    const std::uint64_t leader = leader_of(all, mine.host).exchange_name;
    opened = open_segment(listener.value(), leader, timeout_s, own_sizes, place);
    if (opened.ok()) offer_heap(heap, place);
    if (!opened.ok()) listener = opened;  // closed: whoever still asks need not wait
    if (opened.ok() && place.rank == 0) {
      tell_domains(all, mine.host, settings.domain_ranks, *place.segment);
    }
  }
  auto outcomes = exchange(oob, Outcome{opened.ok() ? 1 : 0}, timeout_s);
  if (!outcomes.ok()) return outcomes.status();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].host == mine.host && outcomes.value()->all()[i].joined == 0) place.segment.reset();
  }
  if (place.segment != nullptr) {
    tell_reading(place.segment->try_reading(place.rank), settings, *place.segment);
    tell_unread(place.segment->map_heaps(place.rank));
    note_domains(place);
  }
  if (!opened.ok()) {
    log(LogLevel::kWarning, opened.to_string() + "; this node's collectives are not served");
  }
  return place;
}

}  // namespace carillon
