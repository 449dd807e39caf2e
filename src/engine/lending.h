// SPDX-License-Identifier: Apache-2.0
//
// Which way long messages within the node come to their readers sooner: copied to shared memory and
// from there, or read in the sender's private memory. That depends on how far apart the cores are,
// and on what is done with them: bytes that are reduced are read where they are in shared memory,
// but private ones are copied first; and pieces of a stream are written while those before them are
// taken. It is learned as messages come, each way now and then: readers tell what taking costs
// them, and each writer, who knows what it costs to write, decides for the messages to each reader.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/lent_messages.h"
#include "transport/shm/layout.h"

namespace carillon {

class Lending {
 public:
  using Clock = std::chrono::steady_clock;

  /// Of a node with so many ranks.
  explicit Lending(int ranks = 0)
      : sent_(static_cast<std::size_t>(ranks) + 1), pays_(static_cast<std::size_t>(ranks)) {}

  /// Does the next message that could be lent to this rank of the node (-1: to several), which
  /// takes it so, go the way that is not preferred? One in so many does, that its readers learn how
  /// that is; many one after another, as pieces of a stream that stand side by side are read by one
  /// call, and as the first ones find the caches cold.
  [[nodiscard]] bool tries(int reader, shm::Taken taken) const {
    return sent_[place(reader)][index(taken)] / kTrialMessages % kTrials == 0;
  }
  /// One has gone, either way.
  void note_sent(int reader, shm::Taken taken) { ++sent_[place(reader)][index(taken)]; }

  /// Is it time to look at the clock for one more message that goes by shared memory: as it is
  /// copied there, or as it is taken? All kinds are counted apart, since they may come in turn.
  bool write_is_due(bool streamed) { return ++writes_seen_[streamed ? 1 : 0] % kEvery == 0; }
  bool take_is_due(shm::Taken taken) { return ++takes_seen_[index(taken)] % kEvery == 0; }
  /// Took so long to copy a message, or a stream's piece, to shared memory.
  void note_written(bool streamed, Clock::duration took, std::int64_t bytes) {
    if (++writes_ > kFirst) written_[streamed ? 1 : 0].note(took, bytes);
  }
  /// Took so long to take one from there, to a copy of its own or into a sum.
  void note_shared(shm::Taken taken, Clock::duration took, std::int64_t bytes) {
    if (++takes_ > kFirst) shared_[index(taken)].note(took, bytes);
  }
  /// Took so long from the sender's memory to there.
  void note_private(shm::Taken taken, Clock::duration took, std::int64_t bytes) {
    private_[index(taken)].note(took, bytes);
  }

  /// What messages cost this process that it takes so.
  [[nodiscard]] shm::TakeCosts take_costs(shm::Taken taken) const {
    return {.shared_fs = shared_[index(taken)].known_fs(),
            .lent_fs = private_[index(taken)].known_fs()};
  }
  /// Are they so different from what it has told before that it is to tell them?
  static bool is_news(const shm::TakeCosts& now, const shm::TakeCosts& told) {
    return differs(now.shared_fs, told.shared_fs) || differs(now.lent_fs, told.lent_fs);
  }

  /// Are messages to this rank of the node, which takes them so and at such costs, better lent?
  /// Only once both ways have been seen. What is preferred stays so until the other is clearly
  /// better: to have memory of both ways in the caches is worse than either.
  bool pays(int reader, shm::Taken taken, const shm::TakeCosts& costs) {
    const bool streamed = shm::is_stream(taken);
    const std::int64_t written = written_[streamed ? 1 : 0].known_fs();
    const std::int64_t lent = costs.lent_fs;
    bool& pays = pays_[static_cast<std::size_t>(reader)][index(taken)];
    if (written == 0 || costs.shared_fs == 0 || lent == 0) return pays;
    const std::int64_t shared = by_shared_memory<std::int64_t>(written, costs.shared_fs, streamed);
    const Share& most = streamed ? kOfStream : kOfWhole;
    pays = 16 * lent < (pays ? most.to_stay : most.to_begin) * shared;
    return pays;
  }

 private:
  static std::size_t index(shm::Taken taken) { return static_cast<std::size_t>(taken); }
  static std::size_t place(int reader) { return static_cast<std::size_t>(reader + 1); }
  struct Mean {
    std::int64_t fs_per_byte = 0;  // a byte takes about 20 ps
    int seen = 0;
    void note(Clock::duration took, std::int64_t bytes) {
      const std::int64_t ns = std::min(std::chrono::nanoseconds(took).count(), kLongestNs);
      const std::int64_t now = std::max<std::int64_t>(1, ns * 1000000 / bytes);
      if (seen == 0) fs_per_byte = now;
      if (now < fs_per_byte) {
        fs_per_byte -= (fs_per_byte - now) / (seen < kEnough ? 4 : 8);
      } else {
        // One that was interrupted says little.
        fs_per_byte += std::min(now - fs_per_byte, fs_per_byte / 2 + 8) / 8;
      }
      seen = std::min(seen + 1, kEnough);
    }
    // 0: not yet, as the first ones may have been of the wrong kind.
    [[nodiscard]] std::uint32_t known_fs() const {
      if (seen < kEnough) return 0;
      return static_cast<std::uint32_t>(std::min<std::int64_t>(fs_per_byte, UINT32_MAX));
    }
  };
  static constexpr bool differs(std::uint32_t now, std::uint32_t told) {
    return (now > told ? now - told : told - now) > told / kNews;
  }

  // Reading the clock twice takes as long as copying 1 KiB.
  static constexpr int kEvery = 4;
  // Shared memory that is used for the first time costs several times as much: the kernel makes its
  // pages. A pool's chunks are used in turn, and by default there are fewer of them than so many
  // that the clock was looked at for.
  static constexpr int kFirst = 16;
  static constexpr int kEnough = 16;
  // Lent is better, and stays so, up to so many sixteenths of the other way's cost. A whole message
  // that is lent keeps its writer, too, which neither of the costs has.
  struct Share {
    std::int64_t to_begin, to_stay;
  };
  static constexpr Share kOfStream{.to_begin = 15, .to_stay = 17};
  static constexpr Share kOfWhole{.to_begin = 12, .to_stay = 14};
  static constexpr std::uint32_t kNews = 32;  // each time, the line is fetched by every writer
  static constexpr std::int64_t kLongestNs = 1000000000;
  static constexpr std::uint64_t kTrials = 64, kTrialMessages = 128;
  std::vector<std::array<std::uint64_t, shm::kTakenWays>> sent_;
  std::array<std::uint64_t, 2> writes_seen_ = {};  // whole, streamed
  std::array<std::uint64_t, shm::kTakenWays> takes_seen_ = {};
  std::uint64_t writes_ = 0, takes_ = 0;
  std::array<Mean, 2> written_;                          // whole, streamed
  std::array<Mean, shm::kTakenWays> shared_, private_;   // by how they are taken
  std::vector<std::array<bool, shm::kTakenWays>> pays_;  // by the reader
};

}  // namespace carillon
