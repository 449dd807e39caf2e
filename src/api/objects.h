// SPDX-License-Identifier: Apache-2.0
//
// What the handles of carillon.h point to.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "api/plans.h"
#include "api/table_watch.h"
#include "carillon/carillon.h"
#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

/// The arguments of a collective that decide its plan and its arithmetic: equal keys, equal plans.
struct CallKey {
  Collective collective = Collective::kBarrier;
  bool in_place = false;
  bool starts = false;  ///< it does not block: for what is said of the call, not compared
  crl_dtype_t dtype = CRL_UINT8;
  std::int32_t root = 0;
  std::uint64_t count = 0;
  crl_op_t op = CRL_SUM;
  std::uint64_t op_id = 0;  ///< of a user's operator: another one may get the same address later
  /// Without branches: a repeated call finds its plan by it.
  bool operator==(const CallKey& other) const {
    const auto differ = [](auto a, auto b) { return static_cast<std::uint64_t>(a) ^ b; };
    return (differ(count, other.count) | differ(op, other.op) | differ(op_id, other.op_id) |
            differ(dtype, other.dtype) |
            static_cast<std::uint64_t>(collective != other.collective) |
            static_cast<std::uint64_t>(in_place != other.in_place) |
            static_cast<std::uint64_t>(root != other.root)) == 0;
  }
};

/// A user's operator. crl_op_t holds its address.
struct UserOp {
  crl_op_fn_t fn;
  void* arg;
  bool commutative;
  std::uint64_t id;  ///< never the same twice
};

inline bool is_predefined(crl_op_t op) { return op < CRL_OPS; }
/// No operator is there: memory never begins so low.
inline bool is_no_operator(crl_op_t op) { return op >= CRL_OPS && op < 4096; }

}  // namespace carillon

struct crl_context : carillon::StageSource {
  pid_t process = getpid();
  std::unique_ptr<carillon::Engine> engine;
  std::unique_ptr<carillon::PlanCache> plans;
  std::vector<crl_request_h> spare_requests;
  // Ended by the program while the servlet had the engine's lock, and perhaps still in its lists.
  std::vector<crl_request_h> leaving_requests;
  std::vector<crl_request_h> outstanding;  // started, not yet completed by the caller
  std::uint64_t prepared = 0;              // how many calls were, with the engine's lock
  carillon::Status first_error;            // not yet told by crl_context_progress
  std::vector<crl_team_h> teams;

  carillon::Result<std::shared_ptr<const carillon::Plan>> plan(carillon::Run& run) override;
  carillon::Result<std::shared_ptr<const carillon::Plan>> first_plan(crl_request& request);
  /// With the engine's lock: they are in no list any more.
  void take_leaving_requests() {
    if (leaving_requests.empty()) [[likely]]
      return;
    spare_requests.insert(spare_requests.end(), leaving_requests.begin(), leaving_requests.end());
    leaving_requests.clear();
  }
  /// If the request has ended with an error that crl_context_progress has not told yet.
  void note_error(crl_request& request);
  /// A copy of it by fork: what it shares with others is the parent's.
  [[nodiscard]] bool is_inherited() const { return getpid() != process; }
  ~crl_context() override;
};

struct crl_window {
  crl_context_h context = nullptr;
  carillon::SharedWindow shared;
};

struct crl_request : carillon::Run {
  crl_context_h context = nullptr;
  carillon::CallKey key;
  carillon::Shared shared;
  std::int32_t stage = 0;
  std::size_t place = 0;  // in the context's outstanding ones
  bool error_noted = false;
  std::uint64_t bound_to = 0;  // PreparedCall::id of the last call; 0: none that is like another
  const carillon::Algorithm* algorithm = nullptr;
  // Of an alltoallv: its team's, which may be gone; and what surveys have come to for this call.
  std::shared_ptr<carillon::TableWatch> watch;
  carillon::AlgorithmChoice agreed;

  /// Everything but the plan is forgotten: another call begins.
  void restart(const carillon::CallKey& new_key, const carillon::Shared& new_shared) {
    key = new_key;
    shared = new_shared;
    stage = 0;
    error_noted = false;
    bound_to = 0;
    algorithm = nullptr;
    watch.reset();
    agreed = {};
  }
};

namespace carillon {

/// A call resolved for a team: what a repeated call finds with one comparison. Stays in its place.
struct PreparedCall {
  CallKey key;
  Shared shared;
  PlannedCall planned;
  Reduction reduction;
  std::int32_t element_bytes = 1;
  std::uint16_t signature = 0;
  std::int64_t in_place_shift = 0;
  std::vector<std::int64_t> block_bytes;  ///< emits_by_tables: those the plan is for
  /// Never the same twice in a context: what was bound to it finds all but the buffers as they are.
  std::uint64_t id = 0;
  std::optional<crl_request> run;  ///< of the blocking calls, if the plan is small; made by them
};

/// Never the same twice in a process, and never 0. Any thread.
inline std::uint64_t new_edition() {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace carillon

struct crl_team {
  static constexpr std::size_t kHashes = 8;  // of a collective's calls

  crl_context* context = nullptr;
  std::unique_ptr<carillon::Team> team;
  // By key, each collective in places of its own: programs alternate between collectives, and none
  // may displace another's. Places and calls are made on first use: few are ever used, and programs
  // may have thousands of teams.
  using Places = std::array<std::array<std::unique_ptr<carillon::PreparedCall>, 2>, kHashes>;
  std::array<std::unique_ptr<Places>, carillon::kCollectives> prepared;
  std::vector<std::int64_t> tables;             // of one call at a time
  std::shared_ptr<carillon::TableWatch> watch;  // from the first alltoallv on
  std::unique_ptr<crl_request> blocking;        // of blocking calls of larger plans, one at a time
  const carillon::Algorithm* last_algorithm = nullptr;
  // For crl_repeat: the last blocking call, if it stays prepared with a run of its own; and which
  // of all editions of prepared calls, of any team, the team's are. No call of a former one is
  // there.
  carillon::PreparedCall* last_call = nullptr;
  std::uint64_t edition = carillon::new_edition();

  /// To be called before any of the prepared calls goes.
  void change_edition() {
    last_call = nullptr;
    edition = carillon::new_edition();
  }

  /// Made on first use: programs may have thousands of teams.
  crl_request& blocking_run() {
    if (blocking == nullptr) blocking = std::make_unique<crl_request>();
    return *blocking;
  }
};

namespace carillon {

inline TeamTerms terms_of(const Team& team) {
  return {.limits = team.limits(), .same_settings = team.same_settings(), .agreed = {}};
}

/// Keeps the message for crl_last_error and returns the code.
crl_status_t report(const Status& status);

/// Has both functions, and a rank below its size.
inline bool is_complete(const crl_oob_t& oob) {
  return oob.allgather_post != nullptr && oob.allgather_test != nullptr && oob.rank >= 0 &&
         oob.rank < oob.size;
}

/// Calls body() -> crl_status_t; nothing it throws crosses the C API.
template <typename Body>
crl_status_t guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(Status(Code::kNoMemory, "out of memory"));
  } catch (const std::exception& error) {
    return report(Status(Code::kInternal, error.what()));
  } catch (...) {
    return report(Status(Code::kInternal, "an exception that is no std::exception"));
  }
}

}  // namespace carillon
