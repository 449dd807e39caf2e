// SPDX-License-Identifier: Apache-2.0
//
// Messages within a node that are lent: read once, in their writer's memory. Times that can be
// added up on paper.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/lent_messages.h"
#include "machine/costs.h"
#include "support/paper_machine.h"
#include "support/registry.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

using Times = std::vector<std::int64_t>;

constexpr std::int64_t kBytes = 65536;
constexpr Range kAll{0, kBytes};
constexpr std::int64_t kSeen = 80 * kNs, kOverhead = 10 * kNs, kLine = 2 * kNs;
constexpr std::int64_t kTold = kOverhead + kLine;            // where it is
constexpr std::int64_t kRead = 500 * kNs + 2 * kBytes * 20;  // 0.04 ns per byte
constexpr std::int64_t kWritten = kOverhead + 4 * kNs + kBytes * 60;
constexpr std::int64_t kCopied = 31 * kNs + kBytes * 50;

Machine lending() {
  Machine m = paper();
  m.shared_memory.lent_ps = 500 * kNs;
  m.shared_memory.lent_byte_fs = 40'000;
  return m;
}

sim::Job bcast_job(Rank ranks, const std::function<void(const Call&, Builder&)>& emit,
                   std::int64_t bytes = kBytes) {
  sim::Job job = hand_job(ranks, ranks, emit);
  job.call.shared = {.collective = Collective::kBcast, .ranks = ranks, .count = bytes};
  job.call.limits.slot_bytes = bytes;
  return job;
}

Times times(const sim::Job& job, const Machine& machine) {
  return simulated(job, machine, {.rank_times = true}).rank_ps;
}

// The root gives its vector, rank 1 copies it to where it stays.
void give(const Call& call, Builder& b) {
  if (call.rank == 0) b.put(1, b.output(kAll));
  if (call.rank == 1) b.copy(b.output(kAll), b.slot(b.wait(0), kAll));
}

TEST(Lending, OneCopyInPlaceOfTwo) {
  const std::int64_t copied = kWritten + kSeen + kOverhead + kCopied;
  EXPECT_EQ(times(bcast_job(2, give), paper()), (Times{kWritten, copied}));
  const std::int64_t read = kTold + kSeen + kOverhead + kRead;
  EXPECT_EQ(times(bcast_job(2, give), lending()), (Times{read + kSeen, read}))
      << "the writer ends when it knows that its memory has been read";
}

TEST(Lending, CountsAsCopying) {
  const sim::Report report = simulated(bcast_job(2, give), lending());
  EXPECT_EQ(report.messages, 1);
  EXPECT_EQ(report.bytes, kBytes);
  const auto of = [&](sim::Activity activity) {
    return static_cast<std::int64_t>(report.activity_ps[static_cast<std::size_t>(activity)]);
  };
  EXPECT_EQ(of(sim::Activity::kSend), kTold);
  EXPECT_EQ(of(sim::Activity::kCopy), kRead);
  EXPECT_EQ(of(sim::Activity::kWait),
            (kTold + kSeen + kOverhead) + (kSeen + kOverhead + kRead + kSeen));
}

TEST(Lending, OnlyWhereItIsQuicker) {
  Machine m = lending();
  // As long as both copies and that the sender's turn comes: not lent any more.
  const std::int64_t both = kCopied + (kWritten - kOverhead);
  m.shared_memory.lent_ps += both - kRead;
  EXPECT_EQ(times(bcast_job(2, give), m)[0], kWritten);
  m.shared_memory.lent_ps -= 1;
  EXPECT_EQ(times(bcast_job(2, give), m)[0], kTold + kSeen + kOverhead + both - 1 + kSeen);
}

TEST(Lending, FromTheSameLengthOnAsTheEngine) {
  const auto is_lent = [](std::int64_t bytes, bool one_way) {
    const auto emit = [&](const Call& call, Builder& b) {
      const Range all{0, bytes};
      if (call.rank == 0) b.put(1, b.output(all));
      if (call.rank == 1) b.copy(b.output(all), b.slot(b.wait(0), all));
      if (!one_way && call.rank == 0) b.wait(1);
      if (!one_way && call.rank == 1) b.signal(0);
    };
    Machine m = lending();
    m.shared_memory.lent_ps = 0;
    const sim::Report report = simulated(bcast_job(2, emit, bytes), m);
    return static_cast<std::int64_t>(
               report.activity_ps[static_cast<std::size_t>(sim::Activity::kCopy)]) == bytes * 40;
  };
  for (const bool one_way : {true, false}) {
    const std::int64_t from = lent_from_bytes(one_way);
    EXPECT_TRUE(is_lent(from, one_way)) << one_way;
    EXPECT_FALSE(is_lent(from - 1, one_way)) << one_way;
  }
}

TEST(Lending, NotWhatIsOverwritten) {
  const auto emit = [](const Call& call, Builder& b) {
    give(call, b);
    if (call.rank == 0) b.copy(b.output(kAll), b.input(kAll));
  };
  sim::Job job = bcast_job(2, emit);
  job.call.shared.collective = Collective::kAllgather;
  EXPECT_EQ(times(job, lending()), times(job, paper()));
}

// Two readers read, each for itself; three would wait for one another.
TEST(Lending, ToTwoReadersAtMost) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put_all(b.output(kAll));
    if (call.rank > 0) b.copy(b.output(kAll), b.slot(b.wait_all(0), kAll));
  };
  const std::int64_t read = kTold + kSeen + kOverhead + kRead;
  EXPECT_EQ(times(bcast_job(3, emit), lending()), (Times{read + kSeen, read, read}));
  EXPECT_EQ(times(bcast_job(4, emit), lending()), times(bcast_job(4, emit), paper()));
}

// What has landed is lent on; what a rank holds in shared memory only is not.
TEST(Lending, PassesOnWhatHasLanded) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) return b.put(1, b.output(kAll));
    const Message message = b.wait(call.rank - 1);
    if (call.rank < 2) b.put(call.rank + 1, b.slot(message, kAll));
    b.copy(b.output(kAll), b.slot(message, kAll));
  };
  const std::int64_t first = kTold + kSeen + kOverhead + kRead;
  const std::int64_t passed_on = first + kTold;
  const std::int64_t second = passed_on + kSeen + kOverhead + kRead;
  EXPECT_EQ(times(bcast_job(3, emit), lending()),
            (Times{passed_on + kSeen, second + kSeen, second}))
      << "a message is in use until it has been passed on";
  const auto overwrite = [&](const Call& call, Builder& b) {
    emit(call, b);
    if (call.rank == 0) b.copy(b.output(kAll), b.input(kAll));
  };
  sim::Job job = bcast_job(3, overwrite);
  job.call.shared.collective = Collective::kAllgather;
  EXPECT_EQ(times(job, lending()), times(job, paper())) << "the first one has not landed";
}

// Of so many ranks rank 1 reduces what rank 0 has.
sim::Job reduce_job(Rank ranks) {
  sim::Job job = bcast_job(ranks, [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put(1, b.input(kAll));
    if (call.rank == 1) b.reduce(b.output(kAll), b.input(kAll), b.slot(b.wait(0), kAll));
  });
  job.call.shared = {.collective = Collective::kReduce, .ranks = ranks, .count = kBytes};
  return job;
}

// A reduction has no place of its own for what it reads.
TEST(Lending, ReadsBeforeItReduces) {
  const sim::Job job = reduce_job(2);
  Machine m = lending();
  const std::int64_t reduced = machine::reduce_ps(m.memory, kBytes);
  // Lent if reading takes less than writing, or than the reduction if that is longer.
  ASSERT_LT(kRead, std::max(kWritten - kOverhead, reduced));
  const std::int64_t end = kTold + kSeen + kOverhead + kRead + reduced;
  EXPECT_EQ(times(job, m), (Times{end + kSeen, end}));
}

TEST(Lending, NotWhatThreeReduce) {
  sim::Job job = reduce_job(3);
  EXPECT_EQ(times(job, lending()), times(job, paper()));
  job.call.limits.nodes = predict::even_nodes(3, 2);
  EXPECT_NE(times(job, lending()), times(job, paper())) << "two on the writer's node";
}

TEST(Lending, ReceivesToWhereItBelongs) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.send(1, b.output(kAll));
    if (call.rank == 1) b.recv(0, b.output(kAll));
  };
  sim::Job job = bcast_job(2, emit);
  job.call.params.two_sided = true;
  const std::int64_t read = kTold + kSeen + kOverhead + kRead;
  EXPECT_EQ(times(job, lending()), (Times{read + kSeen, read}));
}

// Between nodes nothing is lent; within them it is, in the same call.
TEST(Lending, WithinNodesOnly) {
  Machine m = lending();
  sim::Job job = bcast_job(2, give);
  job.call.limits.nodes = predict::even_nodes(2, 1);
  EXPECT_EQ(times(job, m), times(job, paper()));
}

// A broadcast that the registry has: the stream of a long one takes what its reader's reads take.
TEST(Lending, AStreamOfABroadcast) {
  constexpr std::int64_t kPieces = 4;
  const Shared shared = predict::example_problem(Collective::kBcast, 2, kPieces * kBytes);
  Limits limits{.nodes = predict::even_nodes(2, 2)};
  limits.slot_bytes = kBytes;
  const Result<sim::Job> job = sim_job(*find_algorithm("bcast.binomial"), shared, limits);
  ASSERT_TRUE(job.ok()) << job.status().to_string();
  const std::int64_t end = kTold + kSeen + kPieces * (kOverhead + kRead);
  EXPECT_EQ(times(job.value(), lending()), (Times{end + kSeen, end}));
}

// Calls in a row, each rank the root in turn: each is lent, and ends when it has been read.
TEST(Lending, CallAfterCall) {
  const AlgorithmChoice choice{.algorithm = find_algorithm("bcast.binomial")};
  const Shared shared = predict::example_problem(Collective::kBcast, 2, kBytes);
  Limits limits{.nodes = predict::even_nodes(2, 2)};
  limits.slot_bytes = kBytes;
  const Result<std::int64_t> ps = predict::simulate_repeated(3, choice, shared, limits, lending());
  ASSERT_TRUE(ps.ok()) << ps.status().to_string();
  EXPECT_EQ(ps.value(), 3 * (kTold + kSeen + kOverhead + kRead) + kSeen);
}

// Whatever is lent, every algorithm ends, and takes as long as a program of this one call.
TEST(Lending, EveryAlgorithm) {
  int compared = 0, changed = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const Rank ranks : {2, 3, 8}) {
      for (const Rank ppn : {2, 8}) {
        const AlgorithmChoice choice{.algorithm = algorithm};
        const Limits limits{.nodes = predict::even_nodes(ranks, ppn)};
        const Shared shared = predict::example_problem(algorithm->collective, ranks, 300'000);
        if (has_tables(shared.collective) || !suits(choice, shared, limits)) continue;
        const Result<sim::Report> alone = predict::simulate(choice, shared, limits, lending());
        if (!alone.ok()) continue;
        const Result<std::int64_t> program =
            predict::simulate_repeated(1, choice, shared, limits, lending());
        ASSERT_TRUE(program.ok()) << algorithm->id << ": " << program.status().to_string();
        EXPECT_EQ(program.value(), alone.value().latency_ps) << algorithm->id << ", " << ranks;
        ++compared;
        const Result<sim::Report> copied = predict::simulate(choice, shared, limits, paper());
        changed += copied.value().latency_ps != alone.value().latency_ps ? 1 : 0;
      }
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(changed, 50);
}

}  // namespace
}  // namespace carillon::test
