// SPDX-License-Identifier: Apache-2.0
//
// Emission by windows: the windows of a schedule, one after another, are the schedule; and what is
// simulated by windows takes as long as what is emitted whole.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/registry.h"
#include "support/shapes.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

constexpr Rank kRanks = 17;

// An op without the numbers of messages, which mean nothing in a window, and without the places in
// scratch, where messages that are received land at the first that is free of its window.
std::string text_of(const Schedule& schedule, const Op& op) {
  const auto part = [](const Buffer& b) {
    const std::int64_t offset = b.space == Space::kScratch ? 0 : b.range.offset;
    return std::to_string(static_cast<int>(b.space)) + ":" + std::to_string(offset) + "+" +
           std::to_string(b.range.length) + "by" + std::to_string(b.range.stride) + "t" +
           std::to_string(static_cast<int>(b.table)) + "e" + std::to_string(b.entry) + "m" +
           std::to_string(b.message.peer) + " ";
  };
  std::string text = std::string(op_name(op.kind)) + " " + std::to_string(op.message.peer) + " " +
                     std::to_string(static_cast<int>(op.message.channel)) + " x" +
                     std::to_string(op.count) + "," + std::to_string(op.body) + " = ";
  for (const Buffer& buffer : schedule.dst(op)) text += part(buffer);
  text += "<- ";
  for (const Buffer& buffer : schedule.src(op)) text += part(buffer);
  return text;
}

std::vector<std::string> texts_of(const Schedule& schedule, const Strand& strand) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < strand.op_count; ++i) {
    texts.push_back(text_of(schedule, schedule.ops[strand.first_op + i]));
  }
  return texts;
}

// The ops of each strand that has any, put together from windows of `size` positions.
std::vector<std::vector<std::string>> by_windows(const Algorithm& algorithm, const Call& call,
                                                 std::int64_t size) {
  Builder builder(call);
  builder.restart(call, {0, 0});
  emit_prepared(algorithm, call, builder);
  EXPECT_TRUE(builder.end().ok());
  EXPECT_TRUE(builder.built().ops.empty());
  const std::int64_t positions = builder.positions();
  std::vector<std::int64_t> starts(builder.strand_positions().begin(),
                                   builder.strand_positions().end());
  starts.push_back(positions);
  std::vector<std::vector<std::string>> strands;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    std::vector<std::string> texts;
    for (std::int64_t at = starts[i]; at < starts[i + 1]; at += size) {
      builder.restart(call, {at, std::min(at + size, starts[i + 1])});
      emit_prepared(algorithm, call, builder);
      EXPECT_TRUE(builder.end().ok());
      EXPECT_EQ(builder.positions(), positions);
      EXPECT_EQ(builder.built().strands.size(), 1U);
      const Schedule& part = builder.built();
      const std::vector<std::string> more = texts_of(part, part.strands.front());
      texts.insert(texts.end(), more.begin(), more.end());
    }
    if (!texts.empty()) strands.push_back(texts);
  }
  return strands;
}

class Windows : public testing::TestWithParam<const Algorithm*> {
 protected:
  [[nodiscard]] static std::vector<std::int64_t> counts() { return {0, 3, 200}; }

  static Shared shared(const Algorithm& algorithm, Rank ranks, std::int64_t count) {
    return {.collective = algorithm.collective,
            .ranks = ranks,
            .root = has_root(algorithm.collective) ? ranks / 2 : 0,
            .count = count,
            .element_bytes = 8};
  }
  // A small slot, so that there are segments.
  static Limits limits(const std::shared_ptr<const Nodes>& nodes) {
    return {.slot_bytes = 256, .nodes = nodes};
  }
  // Every rank's blocks are five times as many elements as it has a number, those of rank 0 empty.
  struct Uneven {
    explicit Uneven(Rank ranks) : bytes(static_cast<std::size_t>(ranks)), offsets(bytes) {
      for (std::size_t i = 1; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::int64_t>(i) * 40;
        offsets[i] = offsets[i - 1] + bytes[i - 1];
      }
    }
    std::vector<std::int64_t> bytes, offsets;
    [[nodiscard]] Tables tables() const { return {bytes, offsets, bytes, offsets}; }
  };
};

TEST_P(Windows, TogetherAreTheSchedule) {
  const Algorithm& algorithm = *GetParam();
  for (Rank ranks = 1; ranks <= kRanks; ++ranks) {
    const Uneven uneven(ranks);
    for (const std::int64_t count : counts()) {
      for (const Rank ppn : {1, 17}) {
        for (const bool two_sided : {false, true}) {
          if (two_sided && !algorithm.has_transfer()) continue;
          const Result<sim::Job> job = sim_job(algorithm, shared(algorithm, ranks, count),
                                               limits(predict::even_nodes(ranks, ppn)),
                                               {.two_sided = two_sided}, uneven.tables());
          ASSERT_TRUE(job.ok()) << job.status().to_string();
          Call call = job.value().call;
          for (call.rank = 0; call.rank < ranks; ++call.rank) {
            Builder builder(call);
            emit_prepared(algorithm, call, builder);
            ASSERT_TRUE(builder.end().ok());
            if (!builder.has_windows()) continue;
            std::vector<std::vector<std::string>> whole;
            for (const Strand& strand : builder.built().strands) {
              if (strand.op_count > 0) whole.push_back(texts_of(builder.built(), strand));
            }
            for (const std::int64_t size : {1, 3}) {
              ASSERT_EQ(by_windows(algorithm, call, size), whole)
                  << ranks << " ranks, " << count << " elements, rank " << call.rank
                  << ", windows of " << size << (two_sided ? ", two-sided" : "");
            }
          }
        }
      }
    }
  }
}

TEST_P(Windows, TakeAsLongAsTheWhole) {
  const Algorithm& algorithm = *GetParam();
  machine::Machine machine;
  machine.in_switch = {.ports = 3, .window = 2, .operand_bytes = 100};
  for (const Rank ranks : {1, 2, 5, 8, 17}) {
    for (const std::int64_t count : counts()) {
      for (const Rank ppn : {1, 3, 17}) {
        // By send and receive also with long messages, which ask first.
        for (const std::int64_t eager : {-1, 100, 8192}) {
          const bool two_sided = eager > 0;
          if (two_sided && !algorithm.has_transfer()) continue;
          if (two_sided) machine.two_sided.eager_bytes = eager;
          const std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks), count * 8);
          const Result<sim::Job> job = sim_job(
              algorithm, shared(algorithm, ranks, count), limits(predict::even_nodes(ranks, ppn)),
              {.two_sided = two_sided}, {bytes, bytes, bytes, bytes});
          ASSERT_TRUE(job.ok()) << job.status().to_string();
          sim::Options options{.skew_ps = 3'000'000};
          const sim::Report whole = simulated(job.value(), machine, options);
          options.whole_positions = 0;
          for (const std::int64_t window : {1, 3, 50}) {
            options.window_positions = window;
            const sim::Report part = simulated(job.value(), machine, options);
            const std::string text = std::to_string(ranks) + " ranks, " + std::to_string(ppn) +
                                     " per node, " + std::to_string(count) + " elements, window " +
                                     std::to_string(window) + ", eager " + std::to_string(eager);
            ASSERT_EQ(part.messages, whole.messages) << text;
            ASSERT_EQ(part.bytes, whole.bytes) << text;
            ASSERT_EQ(part.latency_ps, whole.latency_ps) << text;
          }
        }
      }
    }
  }
}

// A window's messages have no numbers: those that have come to a receiver stay in their order, also
// when another rank takes over, which does so as late as by numbers.
TEST(WindowsOfNodes, TakeAsLongWhereAReceiverIsLate) {
  machine::Machine machine;
  const Algorithm& algorithm = *find_algorithm("bcast.multicast_dynamic");
  const Shared shared{Collective::kBcast, 6, 0, 1000, 8};
  const Result<sim::Job> job =
      sim_job(algorithm, shared, {.slot_bytes = 256, .nodes = predict::even_nodes(6, 2)});
  ASSERT_TRUE(job.ok()) << job.status().to_string();
  for (const std::int64_t late_ps :
       {machine.multicast.patience_ps / 2, machine.multicast.patience_ps + 1'000'000,
        20 * machine.multicast.patience_ps}) {
    sim::Options options{.starts_ps = {0, 7000, 0, 0, late_ps, 500}, .rank_times = true};
    const sim::Report whole = simulated(job.value(), machine, options);
    options.whole_positions = 0;
    options.window_positions = 1;
    const sim::Report part = simulated(job.value(), machine, options);
    EXPECT_EQ(part.messages, whole.messages) << late_ps;
    EXPECT_EQ(part.rank_ps, whole.rank_ps) << late_ps;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Windows, testing::ValuesIn(one_stage_algorithms()),
                         name_of_algorithm);

}  // namespace
}  // namespace carillon::test
