// SPDX-License-Identifier: Apache-2.0
//
// A run: one collective in flight at this rank, a plan bound to a call's buffers. progress() moves
// it on as far as it goes without waiting; nothing in it allocates once the run object has served
// a plan of the same shape before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "carillon/carillon.h"
#include "engine/plan.h"
#include "reduce/kernels.h"
#include "transport/net/fetches.h"
#include "transport/net/links.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/pool.h"

namespace carillon {

class Team;

/// How this call's elements are combined.
struct Reduction {
  Kernel kernel = nullptr;  ///< a predefined operator; null: use `user`
  crl_op_fn_t user = nullptr;
  void* user_arg = nullptr;
};

/// What a call binds to a plan.
struct Binding {
  const void* input = nullptr;
  void* output = nullptr;
  Reduction reduction;
  std::int32_t element_bytes = 1;
  Tables tables;
  /// Equal on all ranks if they make the same call; tells calls that do not fit together.
  std::uint16_t signature = 0;
};

class Run {
 public:
  enum class State { kIdle, kDeferred, kRunning, kDone };

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool done() const { return state_ == State::kDone; }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] std::uint64_t collective() const { return collective_; }
  [[nodiscard]] Team& team() const { return *team_; }
  /// Of this call in its place among the team's: the next equal call has another one.
  [[nodiscard]] std::uint16_t signature() const {
    return static_cast<std::uint16_t>(binding_.signature + collective_);
  }

  /// Takes the call's buffers (they stay the caller's) and copies of its tables.
  void prepare(Team& team, const Binding& binding);
  void set_plan(const std::shared_ptr<const Plan>& plan);
  /// For the next call of the same plan and binding: only the buffers are others.
  void bind_again(const void* input, void* output);
  /// The team is not ready yet: the plan comes later.
  void clear_plan() { plan_.reset(); }
  [[nodiscard]] bool has_plan() const { return plan_ != nullptr; }
  /// Takes the run's message numbers. Must happen in the same order on all ranks of a team.
  void begin(std::uint64_t collective);
  /// Goes on with the plan of the next stage; scratch stays. Only the team's oldest may: it tells
  /// that it has released all of this stage, whose channels the next one may use again.
  void next_stage(const std::shared_ptr<const Plan>& plan);
  /// Moves on; true when the plan is finished. A wait polls `polls` times before it gives up.
  bool progress(int polls);
  /// Ends the run with an error.
  void fail(Status status);
  void set_state(State state) { state_ = state; }
  /// Is this run waiting for a message of `rank` that is not there? In vain, then, if that rank
  /// has completed the collective.
  [[nodiscard]] bool waits_in_vain(int rank) const;

  /// Can it not go on now without this rank: a message of it, or room for one to it?
  [[nodiscard]] bool waits_for(int rank) const;
  /// The run is complete: counts what it had from other nodes, and what it copied.
  void note_received(net::Links& links);
  /// The run has become the team's oldest: counts kept back so far may be told.
  void tell_releases();
  /// The values the finished stage learned.
  [[nodiscard]] std::span<const std::int64_t> learned() const;
  [[nodiscard]] const Plan& plan() const { return *plan_; }

 private:
  struct Strand {
    std::uint32_t at = 0;
    std::uint32_t loop = 0;  // instruction after the repeat
    std::int64_t iteration = 0;
    std::int64_t iterations = 0;
    std::int64_t stream = 0;  // messages of the current send or recv already moved
    bool finished = false;
  };
  struct Use {
    std::uint64_t first = 0;  // number of the collective's first message on the channel
    std::int64_t count = 0;
    std::uint64_t released = 0;  // how many, without a gap
    std::uint64_t ahead = 0;     // bit i: message released + 1 + i is released too
    bool awaited = false;        // the writer waits to hear of it: it exposed some
    std::uint64_t told = 0;      // how many it has heard of
  };
  struct Reference {  // a message whose readers read the user's memory itself
    std::uint16_t use = 0;
    std::uint64_t number = 0;
  };
  struct Received {
    const std::byte* data = nullptr;
    std::int64_t length = 0;
    const std::byte* exposure = nullptr;  // the data are still where this says
    bool landed = false;                  // and have been got to where they may stay
  };

  struct Landing {  // where a message may be got to at once; no bytes: nowhere
    std::span<std::byte> bytes;
    std::span<std::byte> extent;  // known to the network with them
  };

  void set_buffers();
  void prefetch_next_writes();
  bool advance(Strand& strand, int polls);
  bool put(const Instruction& in, const Strand& strand);
  bool send(const Instruction& in, Strand& strand);
  bool recv(const Instruction& in, Strand& strand, int polls);
  bool write_message(const Instruction& in, const Strand& strand, std::uint64_t number,
                     std::int64_t offset, std::int64_t length);
  bool write_remote(const Instruction& in, const Strand& strand, shm::Peer& peer,
                    std::uint64_t number, std::int64_t offset, std::int64_t length);
  net::Fetches& fetches();
  [[nodiscard]] std::span<std::byte> extent_of(std::span<std::byte> bytes, const Operand& operand,
                                               const Strand& strand) const;
  std::optional<net::Exposure> exposure_of(const Instruction& in, const Strand& strand,
                                           std::int64_t offset, std::int64_t length);
  Result<wire::Piece> fetch_to(const Landing& to, std::size_t place, std::uint64_t length,
                               bool* in_place);
  bool fetch(const Instruction& in, const Strand& strand, std::uint64_t number, const Landing& to,
             Received* received);
  bool wait(const Instruction& in, const Strand& strand, int polls);
  bool write_large(const Instruction& in, const Strand& strand, shm::Line& line,
                   std::uint64_t number, std::int64_t offset, std::int64_t length,
                   std::uint8_t* kind);
  bool poll(std::uint16_t use, std::uint64_t number, int polls, Received* received);
  void fail_unreachable(int rank, const Status& why);
  /// The message found belongs to another call.
  void fail_mismatch(const ChannelUse& channel);
  void release(std::uint16_t use, std::uint64_t number);
  [[nodiscard]] bool hears_of(std::size_t use) const;
  void tell(std::size_t use, std::uint64_t count);
  void tell_all();
  void copy(const Instruction& in, const Strand& strand);
  void reduce(const Instruction& in, const Strand& strand);
  void gather(std::byte* to, const Instruction& in, const Strand& strand, std::int64_t offset,
              std::int64_t length) const;
  void scatter(const std::byte* from, const Instruction& in, const Strand& strand,
               std::int64_t offset, std::int64_t length) const;
  void take_numbers();
  bool references_released();
  bool told_awaited();
  bool sent();
  [[nodiscard]] std::byte* at(const Operand& operand, const Strand& strand) const;
  [[nodiscard]] std::int64_t length_of(const Operand& operand, std::int64_t length) const;
  [[nodiscard]] std::int64_t stream_messages(std::int64_t length) const;
  [[nodiscard]] std::uint64_t number_of(const Instruction& in, const Strand& strand) const {
    return uses_[in.use].first +
           static_cast<std::uint64_t>(in.index + strand.iteration * in.index_stride);
  }

  State state_ = State::kIdle;
  Team* team_ = nullptr;
  std::shared_ptr<const Plan> plan_;
  Binding binding_;
  std::uint64_t collective_ = 0;
  std::uint64_t copied_bytes_ = 0;
  bool told_all_ = false;  // the strands are finished and everything read is acknowledged
  const shm::Line* next_line_ = nullptr;  // of the channel written last
  shm::ChunkRef next_chunk_ = {};         // of the pool, if a chunk was written
  std::vector<std::byte*> bases_;
  std::vector<Use> uses_;
  std::vector<Strand> strands_;
  std::vector<net::Buffer*> sent_;  // and must have ended before the collective does
  std::vector<Reference> references_;
  std::unique_ptr<net::Fetches> fetches_;  // null until the first
  std::vector<std::uint8_t> landed_;       // messages that stand where they may stay; by slot base
  std::vector<std::byte> scratch_;
  std::vector<std::int64_t> table_storage_;
  Status status_;
};

}  // namespace carillon
