// SPDX-License-Identifier: Apache-2.0
//
// The abstract machine: executes the schedules of all ranks of a team, op by op, and decides
// everything that does not depend on what memory holds: loops, message numbers, windows, large
// slots, release points, send/recv streams, stages, deadlock. What bytes are is left to a Memory:
// real ones for the interpreter, symbolic ones for the verifier. There is no other executor of
// whole teams, so that the two cannot drift apart.
//
// Flow control is that of the guaranteed minimum: Limits::window messages per channel and
// Limits::large_slots messages per strand. A schedule that finishes here finishes with more of
// both: channels are FIFO by number, so that more room never takes a step away from anybody. Nor
// does the order of execution matter: no strand takes from another what it waits for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/schedule.h"

namespace carillon {

/// One collective call as the whole team makes it.
struct TeamCall {
  Shared shared;
  Limits limits;
  std::vector<Local> locals;  ///< one per rank; empty: not in place, no tables

  [[nodiscard]] Local local(Rank rank) const;
};

/// Whether the ranks' parts fit together as MPI demands (in place only where it is allowed, the
/// tables of alltoallv in agreement).
Status check_team_call(const TeamCall& call);

/// Emits a rank's schedule of a stage; `learned` is what the stage before it learned.
using Emit = std::function<Result<Schedule>(Rank rank, std::int32_t stage,
                                            std::span<const std::int64_t> learned)>;

/// The bytes of one message, held by the Memory.
using Payload = std::uint32_t;

/// A resolved buffer: strides applied, tables looked up, bounds checked. For space slot, `offset`
/// is relative to the message and `payload` holds its bytes.
struct Piece {
  Space space = Space::kInput;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  Payload payload = 0;
};

/// Who does an op.
struct Site {
  Rank rank = 0;
  std::int32_t strand = 0;
};

/// What the machine's memory does. An error's message says what is wrong; the machine adds where.
class Memory {
 public:
  virtual ~Memory() = default;
  /// All strands of the rank's stage before, if any, are done; scratch keeps its contents.
  virtual Status begin_stage(Rank rank, const Schedule& schedule) = 0;
  virtual Status copy(Site site, std::span<const Piece> dst, std::span<const Piece> src) = 0;
  virtual Status reduce(Site site, const Piece& dst, const Piece& left, const Piece& right) = 0;
  /// put, signal (no pieces) and the start of send: takes the bytes.
  virtual Status capture(Site site, std::span<const Piece> src, Payload* payload) = 0;
  /// wait: the message is there.
  virtual Status arrive(Site site, Payload payload) = 0;
  /// recv: the bytes go to dst.
  virtual Status deliver(Site site, std::span<const Piece> dst, Payload payload) = 0;
  /// aggregate: left becomes left (op) right.
  virtual Status combine(Payload left, Payload right) = 0;
  /// Who has `message` has heard of `other`, too.
  virtual void follow(Payload message, Payload other) = 0;
  /// Nobody reads the message again.
  virtual void discard(Payload payload) = 0;
  /// The int64 values in this scratch range; all strands of the rank are done.
  virtual Status learn(Rank rank, Range scratch, std::vector<std::int64_t>* values) = 0;
};

/// What runs keep their books in: who runs many calls may give each that of the one before.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

 private:
  friend class Machine;
  struct Books;
  std::unique_ptr<Books> books_;
};

struct RunOptions {
  /// 0: each strand runs until it blocks, first come first served. Otherwise the seed of a random
  /// fair order.
  std::uint64_t seed = 0;
  /// Ends runaway loops (a schedule read from a file may ask for any number of rounds).
  std::int64_t max_ops = std::int64_t{1} << 32;
  /// The ranks' schedules, if they are there already: then nothing is emitted. Of a single stage.
  std::span<const Schedule> schedules;
  Workspace* workspace = nullptr;  ///< null: one of its own
};

/// What a run amounted to, over all ranks.
struct RunStats {
  std::int64_t ops = 0;
  std::int64_t messages = 0;  ///< puts, signals and fragments of sends
  std::int64_t message_bytes = 0;
  std::int64_t reduced_bytes = 0;
  std::int32_t stages = 0;
};

/// Runs the call. The error says which rank, strand and op went wrong and why; of a deadlock, what
/// each blocked strand waits for.
Result<RunStats> run_team(const TeamCall& call, const Emit& emit, Memory& memory,
                          const RunOptions& options = {});

}  // namespace carillon
