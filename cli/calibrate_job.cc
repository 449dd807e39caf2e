// SPDX-License-Identifier: Apache-2.0
#include "calibrate_job.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "carillon/carillon.h"
#include "support/failure.h"

namespace carillon::cli {
namespace {

using machine::MemoryCost;
using machine::PingPong;

constexpr int kRanks = 2;
constexpr int kBatches = 15;
constexpr unsigned kPatienceS = 120;
constexpr std::size_t kMeetingBytes = 1024;

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::nanoseconds(now).count());
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The memory of both processes: for the bootstrap, two rounds' worth (a rank is at most one round
// ahead of the other), and for what comes out.
struct Meeting {
  std::atomic<long> arrived{0};  // over all rounds
  char data[2][kRanks][kMeetingBytes] = {};
  PingPong result;
  char error[256] = {};
};

struct Member {
  Meeting* meeting = nullptr;
  int rank = 0;
  long round = 0;
  void* out = nullptr;
  std::size_t bytes = 0;
};

int gather_post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
  Member& member = *static_cast<Member*>(arg);
  if (bytes > kMeetingBytes) return 1;
  std::memcpy(member.meeting->data[member.round % 2][member.rank], in, bytes);
  member.out = out;
  member.bytes = bytes;
  member.meeting->arrived.fetch_add(1, std::memory_order_release);  // partner: gather_test
  *request_p = &member;
  return 0;
}

int gather_test(void* /*arg*/, void* request) {
  Member& member = *static_cast<Member*>(request);
  const Meeting& meeting = *member.meeting;
  // partner: gather_post
  if (meeting.arrived.load(std::memory_order_acquire) < kRanks * (member.round + 1)) return 1;
  for (int i = 0; i < kRanks; ++i) {
    std::memcpy(static_cast<char*>(member.out) + static_cast<std::size_t>(i) * member.bytes,
                meeting.data[member.round % 2][i], member.bytes);
  }
  ++member.round;
  return 0;
}

// One of the two processes.
class Player {
 public:
  Player(Meeting* meeting, int rank) : member_{.meeting = meeting, .rank = rank} {}

  int run() {
    const crl_oob_t oob{.arg = &member_,
                        .rank = member_.rank,
                        .size = kRanks,
                        .allgather_post = gather_post,
                        .allgather_test = gather_test};
    crl_context_config_t config{};
    config.struct_bytes = sizeof config;
    config.oob = oob;
    crl_context_h context = nullptr;
    if (!done(crl_context_create(&config, &context))) return 1;
    if (!done(crl_team_create(context, &oob, &team_))) return 1;
    crl_status_t status = CRL_IN_PROGRESS;
    while ((status = crl_team_test(team_)) == CRL_IN_PROGRESS) sched_yield();
    if (!done(status)) return 1;
    for (std::size_t i = 0; i < PingPong::kBytes.size(); ++i) {
      if (!measure(static_cast<std::size_t>(PingPong::kBytes[i]),
                   &member_.meeting->result.points[i])) {
        return 1;
      }
    }
    crl_team_destroy(team_);
    crl_context_destroy(context);
    return 0;
  }

 private:
  bool done(crl_status_t status) {
    if (status == CRL_OK) return true;
    const char* const reason = crl_last_error();
    std::snprintf(member_.meeting->error, sizeof member_.meeting->error, "%s",
                  reason == nullptr || *reason == '\0' ? crl_status_string(status) : reason);
    return false;
  }

  bool measure(std::size_t bytes, PingPong::Point* point) {
    std::vector<char> buffer(bytes, 1);
    const int rounds = bytes > 4096 ? 100 : 400;
    std::vector<double> one_way, root;
    for (int batch = 0; batch < kBatches; ++batch) {
      const double begin = now_ns();
      for (int i = 0; i < rounds; ++i) {
        if (!there_and_back(&buffer, nullptr)) return false;
      }
      one_way.push_back((now_ns() - begin) / (2 * rounds));
      double posting = 0;
      for (int i = 0; i < rounds; ++i) {
        if (!there_and_back(&buffer, &posting)) return false;
      }
      root.push_back(posting / rounds);
    }
    if (member_.rank == 0) *point = {median(one_way), median(root)};
    return true;
  }

  // Adds to `posting` how long the call takes in which this rank is the root.
  bool there_and_back(std::vector<char>* buffer, double* posting) {
    for (int root = 0; root < kRanks; ++root) {
      const bool timed = posting != nullptr && root == member_.rank;
      const double begin = timed ? now_ns() : 0;
      if (!done(crl_bcast(team_, buffer->data(), buffer->size(), root))) return false;
      if (timed) *posting += std::max(0.0, now_ns() - begin - clock_ns_);
    }
    return true;
  }

  static double clock_cost_ns() {
    constexpr int kTimes = 1000;
    const double begin = now_ns();
    for (int i = 0; i < kTimes; ++i) now_ns();
    return (now_ns() - begin) / kTimes;
  }

  Member member_;
  crl_team_h team_ = nullptr;
  double clock_ns_ = clock_cost_ns();
};

// The least of several runs: what the machine does when nobody is in the way.
double least_ns(const std::function<void()>& body) {
  double least = 1e18;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = now_ns();
    body();
    least = std::min(least, now_ns() - begin);
  }
  return least;
}

// Of an operation on vectors of doubles, whose result is not to be thought away.
MemoryCost measure_memory(std::int64_t cache_bytes,
                          const std::function<void(std::size_t count)>& operate) {
  constexpr int kCalls = 1000;
  const auto per_call = [&](std::int64_t bytes, int calls) {
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(double);
    operate(count);
    return least_ns([&] {
             for (int i = 0; i < calls; ++i) operate(count);
           }) /
           calls;
  };
  const std::int64_t fits = std::min<std::int64_t>(cache_bytes / 8, 65536);
  const double small = per_call(8, kCalls), middle = per_call(fits, kCalls / 10);
  const std::int64_t exceeds = 16 * std::max<std::int64_t>(cache_bytes, 1 << 20);
  MemoryCost cost;
  cost.cached_ns_per_byte = std::max(0.0, (middle - small) / static_cast<double>(fits - 8));
  cost.call_ns = std::max(0.0, small - 8 * cost.cached_ns_per_byte);
  cost.ns_per_byte =
      std::max(cost.cached_ns_per_byte, per_call(exceeds, 1) / static_cast<double>(exceeds));
  return cost;
}

// What stands before it is in memory.
void keep() { std::atomic_signal_fence(std::memory_order_seq_cst); }

std::vector<double> operand(std::int64_t cache_bytes) {
  const std::int64_t longest = 16 * std::max<std::int64_t>(cache_bytes, 1 << 20);
  return std::vector<double>(static_cast<std::size_t>(longest) / sizeof(double), 1.0);
}

}  // namespace

PingPong measure_ping_pong(const std::string& parameters, bool between_nodes) {
  void* const memory =
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for the ranks of a ping-pong");
  Meeting* const meeting = new (memory) Meeting();
  std::fflush(nullptr);
  pid_t players[kRanks] = {};
  for (int rank = 0; rank < kRanks; ++rank) {
    players[rank] = fork();
    if (players[rank] != 0) continue;
    alarm(kPatienceS);  // ends this process if it hangs
    // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet
    setenv("CARILLON_ALGORITHM", ("bcast=binomial" + parameters).c_str(), 1);
    if (between_nodes) setenv("CARILLON_NODE_RANKS", "1", 1);
    // NOLINTEND(concurrency-mt-unsafe)
    _exit(Player(meeting, rank).run());
  }
  bool ok = true;
  for (const pid_t player : players) {
    int status = -1;
    ok = player > 0 && waitpid(player, &status, 0) == player && status == 0 && ok;
  }
  const PingPong result = meeting->result;
  const std::string error = meeting->error;
  munmap(memory, sizeof(Meeting));
  if (!ok) {
    fail("the ping-pong between two {} did not end well: {}",
         between_nodes ? "nodes" : "ranks of a node",
         error.empty() ? "a process was killed or took too long" : error);
  }
  return result;
}

MemoryCost measure_copy(std::int64_t cache_bytes) {
  const std::vector<double> from = operand(cache_bytes);
  std::vector<double> to = from;
  return measure_memory(cache_bytes, [&](std::size_t count) {
    std::memcpy(to.data(), from.data(), count * sizeof(double));
    keep();
  });
}

MemoryCost measure_reduce(std::int64_t cache_bytes) {
  const std::vector<double> left = operand(cache_bytes), right = left;
  std::vector<double> sum = left;
  return measure_memory(cache_bytes, [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sum[i] = left[i] + right[i];
    keep();
  });
}

}  // namespace carillon::cli
