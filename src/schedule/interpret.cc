// SPDX-License-Identifier: Apache-2.0
#include "schedule/interpret.h"

#include <algorithm>
#include <cstring>

#include "schedule/copying_memory.h"
#include "schedule/layout.h"

namespace carillon {
namespace {

// More memory for one team than a test or the command line should ever take.
constexpr std::int64_t kMaxScratch = std::int64_t{1} << 36;

class ByteMemory final : public CopyingMemory<std::byte> {
 public:
  ByteMemory(const TeamCall& call, std::span<const Bytes> inputs, const Operator& reduce,
             std::byte fill)
      : reduce_(reduce), fill_(fill) {
    for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
      add_rank(call, rank, inputs[static_cast<std::size_t>(rank)]);
    }
  }

  Status begin_stage(Rank rank, const Schedule& schedule) override {
    if (schedule.scratch_bytes > kMaxScratch) return {Code::kNoMemory, "too much scratch"};
    Bytes& scratch = state(rank).regions[static_cast<std::size_t>(Region::kScratch)];
    const auto bytes = static_cast<std::size_t>(schedule.scratch_bytes);
    scratch.resize(std::max(scratch.size(), bytes), fill_);
    return {};
  }

  Status reduce(Site site, const Piece& dst, const Piece& left, const Piece& right) override {
    if (!reduce_) return {Code::kInvalidArgument, "no operator is given"};
    reduce_(at(site.rank, dst), at(site.rank, left), at(site.rank, right), dst.length);
    return {};
  }

  void follow(Payload /*message*/, Payload /*other*/) override {}
  Status combine(Payload left, Payload right) override {
    if (!reduce_) return {Code::kInvalidArgument, "no operator is given"};
    Bytes& into = payload(left);
    reduce_(into.data(), into.data(), payload(right).data(),
            static_cast<std::int64_t>(into.size()));
    return {};
  }

  Status learn(Rank rank, Range scratch, std::vector<std::int64_t>* values) override {
    values->resize(static_cast<std::size_t>(scratch.length / 8));
    const Piece piece{Space::kScratch, scratch.offset, scratch.length, 0};
    std::memcpy(values->data(), at(rank, piece), static_cast<std::size_t>(scratch.length));
    return {};
  }

  [[nodiscard]] Bytes output(Rank rank) {
    const auto bytes = state(rank).layout.output_bytes();
    return gather(rank, {{Piece{Space::kOutput, 0, bytes, 0}}});
  }

 private:
  struct State {
    Layout layout;
    std::array<Bytes, kRegions> regions;
    std::int64_t output_origin = 0;  // where offset 0 of Region::kOutput is
  };

  State& state(Rank rank) { return states_[static_cast<std::size_t>(rank)]; }

  void add_rank(const TeamCall& call, Rank rank, const Bytes& input) {
    states_.push_back({Layout(call.shared, call.local(rank), rank), {}, 0});
    State& added = states_.back();
    const Place begin = added.layout.place(Space::kInput, 0);
    const auto size = static_cast<std::int64_t>(input.size());
    std::int64_t end = added.layout.output_bytes();
    if (begin.region == Region::kOutput) {
      added.output_origin = std::max<std::int64_t>(-begin.offset, 0);
      end = std::max(end, begin.offset + size);
    } else {
      added.regions[static_cast<std::size_t>(Region::kInput)].resize(input.size());
    }
    Bytes& output = added.regions[static_cast<std::size_t>(Region::kOutput)];
    output.resize(static_cast<std::size_t>(added.output_origin + end), fill_);
    if (call.shared.collective == Collective::kAlltoallv) {
      const std::vector<std::int64_t> counts = count_row(call.local(rank).tables);
      const auto bytes = std::as_bytes(std::span(counts));
      added.regions[static_cast<std::size_t>(Region::kCounts)].assign(bytes.begin(), bytes.end());
    }
    if (size > 0) {
      std::memcpy(at(rank, {Space::kInput, 0, size, 0}), input.data(), input.size());
    }
  }

  std::byte* at(Rank rank, const Piece& piece) {
    if (piece.space == Space::kSlot) return payload(piece.payload).data() + piece.offset;
    State& owner = state(rank);
    const Place place = owner.layout.place(piece.space, piece.offset);
    const std::int64_t origin = place.region == Region::kOutput ? owner.output_origin : 0;
    return owner.regions[static_cast<std::size_t>(place.region)].data() + origin + place.offset;
  }

  Bytes gather(Rank rank, std::span<const Piece> src) override {
    Bytes bytes;
    for (const Piece& piece : src) {
      if (piece.length == 0) continue;
      const std::byte* const begin = at(rank, piece);
      bytes.insert(bytes.end(), begin, begin + piece.length);
    }
    return bytes;
  }

  void scatter(Rank rank, std::span<const Piece> dst, const Bytes& bytes) override {
    std::size_t offset = 0;
    for (const Piece& piece : dst) {
      if (piece.length == 0) continue;
      const auto length = static_cast<std::size_t>(piece.length);
      std::memcpy(at(rank, piece), bytes.data() + offset, length);
      offset += length;
    }
  }

  const Operator& reduce_;
  const std::byte fill_;
  std::vector<State> states_;
};

Status check_inputs(const TeamCall& call, std::span<const Bytes> inputs) {
  Status status = check_team_call(call);
  if (!status.ok()) return status;
  if (inputs.size() != static_cast<std::size_t>(call.shared.ranks)) {
    return {Code::kInvalidArgument, "one input per rank is needed"};
  }
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    const std::int64_t bytes = input_bytes(call.shared, call.local(rank), rank);
    if (static_cast<std::int64_t>(inputs[static_cast<std::size_t>(rank)].size()) == bytes) continue;
    return {Code::kInvalidArgument, "the input of rank " + std::to_string(rank) + " needs " +
                                        std::to_string(bytes) + " bytes"};
  }
  return {};
}

}  // namespace

Result<Interpretation> interpret(const TeamCall& call, const Emit& emit,
                                 std::span<const Bytes> inputs, const Operator& reduce,
                                 const InterpretOptions& options) {
  Status status = check_inputs(call, inputs);
  if (!status.ok()) return status;
  ByteMemory memory(call, inputs, reduce, options.fill);
  Result<RunStats> run = run_team(call, emit, memory, options.run);
  if (!run.ok()) return run.status();
  Interpretation result{.outputs = {}, .stats = run.value()};
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    result.outputs.push_back(memory.output(rank));
  }
  return result;
}

}  // namespace carillon
