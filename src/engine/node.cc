// SPDX-License-Identifier: Apache-2.0
#include "engine/node.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bitset>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>

#include "base/log.h"
#include "team/bootstrap.h"

namespace carillon {
namespace {

constexpr int kMaxCores = 1024;

// What each process tells all others. Plain data: it travels as bytes.
struct Introduction {
  std::uint64_t host = 0;           // equal where memory can be shared
  std::uint64_t exchange_name = 0;  // 0: cannot listen
  std::array<std::uint64_t, kMaxCores / 64> cores = {};
};

struct Outcome {
  std::int32_t joined = 0;
};

// Processes with equal values reach each other's abstract sockets and are one user's.
std::uint64_t host_id() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  struct stat network = {};
  if (stat("/proc/self/ns/net", &network) == 0) text += " " + std::to_string(network.st_ino);
  text += " " + std::to_string(geteuid());
  return std::hash<std::string>()(text);
}

std::array<std::uint64_t, kMaxCores / 64> own_cores() {
  std::array<std::uint64_t, kMaxCores / 64> mask = {};
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return mask;
  for (std::size_t i = 0; i < kMaxCores; ++i) {
    if (CPU_ISSET(i, &cores)) mask[i / 64] |= UINT64_C(1) << (i % 64);
  }
  return mask;
}

// The object is left alone on a timeout: the caller's exchange may still write into it.
template <typename T>
Result<std::unique_ptr<Gather<T>>> exchange(const crl_oob_t& oob, const T& mine, int timeout_s) {
  auto gather = std::make_unique<Gather<T>>();
  if (Status status = gather->post(oob, mine); !status.ok()) return status;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  for (;;) {
    const Code code = gather->test();
    if (code == Code::kOk) return gather;
    if (code != Code::kInProgress) {
      return Status(code, "start-up: the caller's bootstrap allgather failed");
    }
    if (std::chrono::steady_clock::now() > end) {
      (void)gather.release();
      return Status(Code::kTimeout,
                    "start-up: not all " + std::to_string(oob.size) + " ranks came within " +
                        std::to_string(timeout_s) +
                        " s; does every rank run with carillon? (CARILLON_JOIN_TIMEOUT_S)");
    }
    sched_yield();
  }
}

Status open_segment(shm::Exchange& own, std::uint64_t leader_name, int timeout_s,
                    const shm::SegmentSizes& sizes, NodePlace& place) {
  const int timeout_ms = timeout_s * 1000;
  Result<std::shared_ptr<shm::Segment>> segment = Status();
  if (place.rank == 0) {
    segment = shm::Segment::create(place.size, sizes);
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

}  // namespace

Result<NodePlace> join_node(const crl_oob_t& oob, const shm::SegmentSizes& sizes, int timeout_s) {
  auto listener = shm::Exchange::listen();
  Introduction mine{.host = host_id(), .cores = own_cores()};
  if (listener.ok()) mine.exchange_name = listener.value().name();
  auto met = exchange(oob, mine, timeout_s);
  if (!met.ok()) return met.status();

  NodePlace place{.size = 0};
  std::uint64_t leader_name = 0;
  std::bitset<kMaxCores> cores;
  const auto all = met.value()->all();
  std::vector<int> node_members;
  for (int i = 0; i < oob.size; ++i) {
    const Introduction& other = all[static_cast<std::size_t>(i)];
    if (other.host != mine.host) continue;
    if (place.size == 0) leader_name = other.exchange_name;
    if (i == oob.rank) place.rank = place.size;
    ++place.size;
    node_members.push_back(i);
    for (std::size_t c = 0; c < kMaxCores; ++c) {
      if ((other.cores[c / 64] >> (c % 64) & 1) != 0) cores.set(c);
    }
  }
  place.oversubscribed = static_cast<std::size_t>(place.size) > cores.count();

  shm::SegmentSizes own_sizes = sizes;
  if (place.oversubscribed) own_sizes.pool_bytes = sizes.crowded_pool_bytes;
  Status opened = listener.status();
  if (listener.ok()) {
    opened = open_segment(listener.value(), leader_name, timeout_s, own_sizes, place);
    if (!opened.ok()) listener = opened;  // closed: whoever still asks need not wait
  }
  auto outcomes = exchange(oob, Outcome{opened.ok() ? 1 : 0}, timeout_s);
  if (!outcomes.ok()) return outcomes.status();
  for (const int member : node_members) {
    if (outcomes.value()->all()[static_cast<std::size_t>(member)].joined == 0) {
      place.segment.reset();
    }
  }
  if (!opened.ok()) {
    log(LogLevel::kWarning, opened.to_string() + "; this node's collectives are not served");
  }
  return place;
}

}  // namespace carillon
