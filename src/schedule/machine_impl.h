// SPDX-License-Identifier: Apache-2.0
//
// The abstract machine's state and its parts; private to machine.cc (who runs, loops, stages,
// deadlock) and machine_ops.cc (what each op does).
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/channels.h"
#include "schedule/machine.h"

namespace carillon {

/// Of a message of the channel to or from the peer, in Bases.
inline std::int64_t base_key(Channel channel, Rank peer) {
  return static_cast<std::int64_t>(peer) * kChannels + static_cast<int>(channel);
}

// A message a strand has waited for and not yet released.
struct OpenSlot {
  std::uint32_t wait_op = 0;
  Link* link = nullptr;
  std::int64_t number = 0;
  Payload payload = 0;
  std::int64_t length = 0;
};

struct StrandState {
  Rank rank = 0;
  std::int32_t index = 0;
  std::uint32_t pc = 0;
  std::uint32_t end = 0;
  std::int64_t loop = -1;  // the repeat op being executed
  std::int64_t iteration = 0;
  std::vector<OpenSlot> open;
  Block block = Block::kNone;
  bool queued = false;
};

// An aggregate that some leaders have not left.
struct Aggregation {
  std::int64_t length = -1;  // of all operands and results; -1: nobody has come
  struct Operand {
    bool arrived = false, present = false;
    Payload payload = 0;
  };
  std::vector<Operand> operands;  // by node; once combined, the first is the result
  std::int32_t missing = 0;       // nodes
  std::int32_t inside = 0;        // nodes that have not taken the result
  std::vector<std::size_t> blocked;
};

// Message numbers of earlier stages: a stage's schedule counts from 0 again.
using Bases = std::unordered_map<std::int64_t, std::int64_t>;

struct RankState {
  const Schedule* schedule = nullptr;
  Schedule emitted;  // which that is, unless the caller had one
  Local local;
  std::int32_t stage = 0;
  std::vector<std::size_t> strands;  // indices into Machine::strands_
  std::size_t running = 0;
  // Per op, the waits whose slots end with it: the first, and of each wait the next, one more than
  // its index; 0 is none.
  std::vector<std::uint32_t> first_release, next_release;
  std::vector<std::int32_t> large_in_use;  // by strand; those of earlier stages count
  Bases sent, received;
  std::int64_t aggregates = 0;  // that it has left

  /// In the memory that is there.
  void begin() {
    stage = 0;
    strands.clear();
    running = 0;
    large_in_use.clear();
    sent.clear();
    received.clear();
    aggregates = 0;
  }
};

struct Workspace::Books {
  Links links;
  std::map<std::int64_t, Aggregation> aggregations;  // by number
  std::vector<RankState> ranks;
  std::vector<StrandState> strands;
  std::deque<std::size_t> ready;
  std::vector<Piece> dst, src;  // of the op being executed
};

class Machine {
 public:
  Machine(const TeamCall& call, const Emit& emit, Memory& memory, const RunOptions& options)
      : call_(call),
        emit_(emit),
        memory_(memory),
        options_(options),
        books_(options.workspace != nullptr ? *options.workspace->books_ : *own_.emplace().books_) {
  }

  Result<RunStats> run();

 private:
  Result<RunStats> run_ready();
  void begin_strands(RankState& state);
  Status start_stage(Rank rank, std::span<const std::int64_t> learned);
  static void note_releases(RankState& state);
  Status end_stage(Rank rank);
  Status run_strand(std::size_t id);
  std::size_t take_ready();
  void wake(std::vector<std::size_t>& blocked);
  void wake(std::size_t id);

  // Each does the op and sets *block if it cannot yet.
  Status step(std::size_t id, Block* block);
  Status execute(std::size_t id, const Op& op, Block* block);
  Status transfer(std::size_t id, const Op& op, Link& link, Block* block);
  Status put(std::size_t id, Link& link, std::int64_t number, Block* block);
  Status wait(std::size_t id, Link& link, std::int64_t number, Block* block);
  Status send(std::size_t id, Link& link, std::int64_t number, Block* block);
  Status recv(std::size_t id, Link& link, std::int64_t number, Block* block);
  Status receive(std::size_t id, Link& link, std::int64_t number, Block* block);
  Status aggregate(std::size_t id, const Op& op, Block* block);
  Status enter(StrandState& strand, Aggregation& all);
  Status leave(StrandState& strand, Aggregation& all);
  Status combine(Aggregation& all);
  Status receive_fragments(std::size_t id, Link& link, Block* block);
  std::int64_t fragments_of(const StrandState& strand, std::int64_t bytes);
  Status pass(Link& link, std::int64_t* turn);

  bool take_large_slot(std::size_t id);
  void give_large_slot(std::size_t id);
  [[nodiscard]] bool is_large_fragment(const Parcel& parcel, std::int64_t fragment) const;
  void finish_op(StrandState& strand);
  void release(StrandState& strand, std::uint32_t op);
  void release(const OpenSlot& slot);
  void release(Link& link, std::int64_t number);

  Status resolve_list(const StrandState& strand, std::span<const Buffer> buffers,
                      std::vector<Piece>* pieces);
  Status resolve_slot(const StrandState& strand, const Buffer& buffer, Piece* piece);
  Link* link_of(const StrandState& strand, OpKind kind, const Message& message);
  std::int64_t number_of(const StrandState& strand, const Message& message, bool outgoing) const;
  RankState& rank_of(const StrandState& strand) {
    return ranks_[static_cast<std::size_t>(strand.rank)];
  }

  std::int32_t& large_in_use(const StrandState& strand) {
    return rank_of(strand).large_in_use[static_cast<std::size_t>(strand.index)];
  }

  [[nodiscard]] std::string where(const StrandState& strand) const;
  Status at(const StrandState& strand, const Status& status) const;
  Status error(const StrandState& strand, const std::string& reason) const;
  std::string waits_for(const StrandState& strand);
  Status deadlock();

  const TeamCall& call_;
  const Emit& emit_;
  Memory& memory_;
  RunOptions options_;
  std::optional<Workspace> own_;
  Workspace::Books& books_;
  Links& links_ = books_.links;
  std::map<std::int64_t, Aggregation>& aggregations_ = books_.aggregations;
  std::vector<RankState>& ranks_ = books_.ranks;
  std::vector<StrandState>& strands_ = books_.strands;
  std::deque<std::size_t>& ready_ = books_.ready;
  std::vector<Piece>&dst_ = books_.dst, &src_ = books_.src;
  std::mt19937_64 random_;
  RunStats stats_;
};

}  // namespace carillon
