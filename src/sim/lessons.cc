// SPDX-License-Identifier: Apache-2.0
#include "sim/lessons.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "schedule/copying_memory.h"

namespace carillon::sim {
namespace {

// A byte, or that nobody knows which: of what is in the buffers, and what was made from that.
using Byte = std::uint16_t;
constexpr Byte kUnknown = 256;
using Bytes = std::vector<Byte>;

// Scratch and counts. Input and output are not there.
class Numbers final : public CopyingMemory<Byte> {
 public:
  explicit Numbers(const std::vector<Local>& locals) : scratch_(locals.size()) {
    for (const Local& local : locals) {
      const std::vector<std::int64_t> row = count_row(local.tables);
      const auto bytes = std::as_bytes(std::span(row));
      counts_.emplace_back();
      for (const std::byte each : bytes) counts_.back().push_back(std::to_integer<Byte>(each));
    }
  }

  Status begin_stage(Rank rank, const Schedule& schedule) override {
    Bytes& scratch = scratch_[static_cast<std::size_t>(rank)];
    const auto size = static_cast<std::size_t>(schedule.scratch_bytes);
    scratch.resize(std::max(scratch.size(), size), kUnknown);
    return {};
  }
  Status reduce(Site site, const Piece& dst, const Piece& /*left*/,
                const Piece& /*right*/) override {
    scatter(site.rank, {&dst, 1}, Bytes(static_cast<std::size_t>(dst.length), kUnknown));
    return {};
  }
  void follow(Payload /*message*/, Payload /*other*/) override {}
  Status combine(Payload left, Payload /*right*/) override {
    std::ranges::fill(payload(left), kUnknown);
    return {};
  }
  Status learn(Rank rank, Range scratch, std::vector<std::int64_t>* values) override {
    const Piece piece{Space::kScratch, scratch.offset, scratch.length, 0};
    std::vector<std::byte> bytes;
    for (const Byte each : gather(rank, {&piece, 1})) {
      if (each == kUnknown) {
        return {Code::kUnsupported,
                "it learns from what is in the buffers, which is not simulated"};
      }
      bytes.push_back(static_cast<std::byte>(each));
    }
    values->resize(bytes.size() / sizeof(std::int64_t));
    std::memcpy(values->data(), bytes.data(), bytes.size());
    return {};
  }

 private:
  // Where the piece is; empty if nowhere.
  std::span<Byte> at(Rank rank, const Piece& piece) {
    std::span<Byte> all;
    if (piece.space == Space::kSlot) all = payload(piece.payload);
    if (piece.space == Space::kScratch) all = scratch_[static_cast<std::size_t>(rank)];
    if (piece.space == Space::kCounts) all = counts_[static_cast<std::size_t>(rank)];
    if (all.empty()) return all;
    return all.subspan(static_cast<std::size_t>(piece.offset),
                       static_cast<std::size_t>(piece.length));
  }
  Bytes gather(Rank rank, std::span<const Piece> src) override {
    Bytes bytes;
    for (const Piece& piece : src) {
      const std::span<const Byte> part = at(rank, piece);
      bytes.insert(bytes.end(), part.begin(), part.end());
      if (part.empty())
        bytes.resize(bytes.size() + static_cast<std::size_t>(piece.length), kUnknown);
    }
    return bytes;
  }
  void scatter(Rank rank, std::span<const Piece> dst, const Bytes& bytes) override {
    auto next = bytes.begin();
    for (const Piece& piece : dst) {
      const std::span<Byte> part = at(rank, piece);
      std::copy_n(next, part.size(), part.begin());
      next += piece.length;
    }
  }

  std::vector<Bytes> scratch_, counts_;  // by rank
};

}  // namespace

Result<Lessons> Lessons::of(const Job& job, const std::vector<Local>& locals) {
  Lessons lessons;
  lessons.ranks_.resize(locals.size());
  Call call = job.call;
  Builder builder(call);
  const Emit emit = [&](Rank rank, std::int32_t stage,
                        std::span<const std::int64_t> learned) -> Result<Schedule> {
    if (stage > 0) {
      lessons.ranks_[static_cast<std::size_t>(rank)].emplace_back(learned.begin(), learned.end());
    }
    call.rank = rank;
    call.local = locals[static_cast<std::size_t>(rank)];
    call.stage = stage;
    call.learned = learned;
    builder.restart(call);
    job.emit(call, builder);
    if (Status status = builder.end(); !status.ok()) return status;
    if (builder.built().learned.length > 0) return builder.built();
    builder.restart(call);  // nobody learns from the last stage
    if (Status status = builder.end(); !status.ok()) return status;
    return builder.built();
  };
  Numbers numbers(locals);
  const TeamCall team{.shared = job.call.shared, .limits = job.call.limits, .locals = locals};
  Result<RunStats> run = run_team(team, emit, numbers);
  if (!run.ok()) return run.status();
  return lessons;
}

}  // namespace carillon::sim
