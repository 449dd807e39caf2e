// SPDX-License-Identifier: Apache-2.0
#include "schedule/draw.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace carillon {
namespace {

// A memory that keeps no bytes, only how long a chain of messages led to each strand.
class StepMemory final : public Memory {
 public:
  explicit StepMemory(Rank ranks) : depths_(static_cast<std::size_t>(ranks)) {}

  Status begin_stage(Rank rank, const Schedule& schedule) override {
    depths_[static_cast<std::size_t>(rank)].assign(schedule.strands.size(), 0);
    return {};
  }
  Status copy(Site, std::span<const Piece>, std::span<const Piece>) override { return {}; }
  Status reduce(Site, const Piece&, const Piece&, const Piece&) override { return {}; }
  Status capture(Site site, std::span<const Piece> src, Payload* payload) override {
    Letter letter{site.rank, depth(site) + 1, 0};
    for (const Piece& piece : src) letter.bytes += piece.length;
    *payload = static_cast<Payload>(letters_.size());
    letters_.push_back(letter);
    return {};
  }
  Status arrive(Site site, Payload payload) override {
    const Letter& letter = letters_[payload];
    depth(site) = std::max(depth(site), letter.step);
    ++arrows_[{letter.step, letter.from, site.rank, letter.bytes}];
    return {};
  }
  Status deliver(Site site, std::span<const Piece>, Payload payload) override {
    return arrive(site, payload);
  }
  // What comes of an aggregate comes from the leader of node 0, when the last one has given.
  Status combine(Payload left, Payload right) override {
    follow(left, right);
    return {};
  }
  void follow(Payload message, Payload other) override {
    letters_[message].step = std::max(letters_[message].step, letters_[other].step);
  }
  void discard(Payload) override {}
  Status learn(Rank, Range, std::vector<std::int64_t>*) override {
    return {Code::kUnsupported, "what a stage learns cannot be drawn"};
  }

  [[nodiscard]] std::string picture() const {
    std::string text;
    std::int32_t last = 0;
    for (const auto& [arrow, times] : arrows_) {
      const auto& [step, from, to, bytes] = arrow;
      if (step != last) {
        text += (last == 0 ? "step " : "\nstep ") + std::to_string(step);
        last = step;
      }
      text +=
          "   " + std::to_string(from) + "->" + std::to_string(to) + " " + std::to_string(bytes);
      if (times > 1) text += " x" + std::to_string(times);
    }
    return text.empty() ? "no messages\n" : text + "\n";
  }

 private:
  struct Letter {
    Rank from = 0;
    std::int32_t step = 0;
    std::int64_t bytes = 0;
  };
  using Arrow = std::tuple<std::int32_t, Rank, Rank, std::int64_t>;  // step, from, to, bytes

  std::int32_t& depth(Site site) {
    return depths_[static_cast<std::size_t>(site.rank)][static_cast<std::size_t>(site.strand)];
  }

  std::vector<std::vector<std::int32_t>> depths_;  // per rank and strand
  std::vector<Letter> letters_;
  std::map<Arrow, int> arrows_;
};

}  // namespace

Result<std::string> draw(const TeamCall& call, const Emit& emit) {
  StepMemory memory(call.shared.ranks);
  Result<RunStats> run = run_team(call, emit, memory);
  if (!run.ok()) return run.status();
  return memory.picture();
}

}  // namespace carillon
