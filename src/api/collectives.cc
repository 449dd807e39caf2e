// SPDX-License-Identifier: Apache-2.0
//
// The collectives of the C API: one path for all of them. A call becomes a key and two buffers;
// the team remembers what it resolved the key to.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "api/call.h"
#include "api/places.h"
#include "api/served.h"
#include "api/switch_operation.h"

namespace carillon {
namespace {

constexpr std::int64_t kKeptScratchBytes = 512;  // per kind of call, as long as the team lives

// What all ranks must give alike, mixed into a few bits. Types may differ where bytes do not, and
// users' operators are known to their process only.
std::uint16_t signature_of(const CallKey& key, std::int32_t element_bytes) {
  const crl_op_t op = is_predefined(key.op) ? key.op : static_cast<crl_op_t>(CRL_OPS);
  std::uint64_t hash = key.count * static_cast<std::uint64_t>(element_bytes);
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(key.collective), static_cast<std::uint64_t>(op),
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.root))}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }
  return static_cast<std::uint16_t>(hash >> 48);
}

Status resolve_reduction(const CallKey& key, Shared& shared, Reduction& reduction) {
  if (is_no_operator(key.op)) return invalid(key, "not a crl_op_t");
  if (!is_predefined(key.op)) {
    const auto& op = *reinterpret_cast<const UserOp*>(key.op);
    reduction.user = op.fn;
    reduction.user_arg = op.arg;
    shared.commutative = op.commutative;
    return {};
  }
  if (key.dtype < CRL_DTYPES) {
    // All such values are types.
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange)
    const auto dtype = static_cast<crl_dtype_kind_t>(key.dtype);
    reduction.kernel = find_kernel(static_cast<crl_op_kind_t>(key.op), dtype);
  }
  shared.in_switch = find_switch_operation(key.op, key.dtype, reduction);
  if (reduction.kernel == nullptr) {
    return invalid(key, "the operator is not defined for the type (crl_op_supports tells)");
  }
  return {};
}

// A buffer is missing that this rank's part of the call has bytes in.
bool misses_buffer(const crl_team& team, const CallKey& key, const Buffers& buffers) {
  const Collective what = key.collective;
  const bool is_root = key.root == team.team->rank();
  if (has_tables(what)) {
    const auto any = [](std::span<const std::int64_t> bytes) {
      return std::any_of(bytes.begin(), bytes.end(), [](std::int64_t b) { return b > 0; });
    };
    const bool sends = any(buffers.tables->send_bytes);
    return (buffers.in == nullptr && sends) ||
           (buffers.out == nullptr && (any(buffers.tables->recv_bytes) || (key.in_place && sends)));
  }
  if (key.count == 0) return false;
  const bool in_counts = what != Collective::kScatter || is_root;
  const bool first_has_none =
      what == Collective::kExscan && team.team->rank() == 0 && !key.in_place;
  const bool out_counts =
      ((what != Collective::kReduce && what != Collective::kGather) || is_root) && !first_has_none;
  return (buffers.in == nullptr && in_counts) || (buffers.out == nullptr && out_counts);
}

// Everything about a call but its buffers, checked; the plan is found where the team is ready.
Status resolve(const crl_team& team, const CallKey& key, PreparedCall& call) {
  const int size = team.team->size();
  call.key = key;
  Shared& shared = call.shared;
  shared = {.collective = key.collective,
            .ranks = size,
            .root = key.root,
            .in_switch = !has_reduction(key.collective)};
  if (has_reduction(key.collective)) {
    const std::size_t bytes = crl_dtype_bytes(key.dtype);
    if (bytes == 0) return invalid(key, "not a crl_dtype_t");
    if (Status status = resolve_reduction(key, shared, call.reduction); !status.ok()) {
      return status;
    }
    call.element_bytes = static_cast<std::int32_t>(bytes);
    shared.element_bytes = call.element_bytes;
  }
  call.signature = signature_of(key, call.element_bytes);
  if (shared.element_bytes > team.team->limits().slot_bytes) {
    return {Code::kUnsupported, function_of(key) + ": elements of " +
                                    std::to_string(shared.element_bytes) +
                                    " bytes do not fit in a slot (CARILLON_SLOT_BYTES)"};
  }
  if (key.count > kMaxBytes / static_cast<std::uint64_t>(shared.element_bytes) /
                      static_cast<std::uint64_t>(size)) {
    return invalid(key, "the size " + std::to_string(key.count) + " is beyond all bounds");
  }
  shared.count = static_cast<std::int64_t>(key.count);
  if (has_root(key.collective) && (key.root < 0 || key.root >= size)) {
    return invalid(key, "root " + std::to_string(key.root) + " is not a rank of a team of " +
                            std::to_string(size));
  }
  if (key.in_place && !in_place_allowed(shared, team.team->rank())) {
    return invalid(key,
                   "CRL_IN_PLACE is not possible at rank " + std::to_string(team.team->rank()));
  }
  if (key.in_place) call.in_place_shift = in_place_shift(shared, team.team->rank());
  return {};
}

// In place, one buffer is a part of the other.
Buffers placed(const PreparedCall& call, const Buffers& buffers) {
  if (!call.key.in_place) return buffers;
  Buffers both = buffers;
  if (call.key.collective == Collective::kScatter) {
    both.out = static_cast<std::byte*>(const_cast<void*>(buffers.in)) - call.in_place_shift;
  } else {
    both.in = static_cast<std::byte*>(buffers.out) + call.in_place_shift;
  }
  return both;
}

Binding bind(const PreparedCall& call, const Buffers& buffers) {
  const Buffers both = placed(call, buffers);
  return {.input = both.in,
          .output = both.out,
          .reduction = call.reduction,
          .element_bytes = call.element_bytes,
          .tables = buffers.tables == nullptr ? Tables() : *buffers.tables,
          .signature = call.signature,
          .collective = collective_name(call.key.collective)};
}

// The team is ready: fills the place for the key. Engine lock not needed.
Status prepare_entry(crl_team& team, const CallKey& key, const Tables* tables, CallPlace& entry) {
  auto fresh = std::make_unique<PreparedCall>();
  if (Status status = resolve(team, key, *fresh); !status.ok()) return status;
  Local local{.in_place = key.in_place, .tables = {}};
  if (emits_by_tables(key.collective)) {
    local.tables = *tables;
    fresh->block_bytes.assign(tables->send_bytes.begin(), tables->send_bytes.end());
  }
  auto planned =
      team.context->plans->find(fresh->shared, local, team.team->rank(), terms_of(*team.team));
  if (!planned.ok()) return planned.status();
  fresh->planned = planned.value();
  if (entry != nullptr) team.change_edition();
  entry = std::move(fresh);
  return {};
}

// The team could have multicast, has not joined its groups, and would use them for this.
bool would_multicast(const crl_team& team, const Shared& shared) {
  return team.team->may_join() &&
         team.context->plans->would_multicast(shared, terms_of(*team.team));
}

// Whether that is so. Such calls are planned each time anew, until their bytes are enough: then
// the members, all in this call, join. Only blocking calls count: each member comes to the same
// ones, and to nothing else meanwhile.
Result<bool> wish_multicast(crl_team& team, const CallKey& key) {
  PreparedCall call;
  if (Status status = resolve(team, key, call); !status.ok()) return status;
  if (!would_multicast(team, call.shared)) return false;
  if (!team.team->note_wish(call.shared.block_bytes())) return true;
  if (Status status = join_multicast(team); !status.ok()) return status;
  return false;
}

crl_status_t run_slow_start(crl_team& team) {
  if (team.team->state() == Team::State::kAgreeing) team.context->engine->wait(*team.team);
  if (team.team->state() == Team::State::kFailed) return report(team.team->status());
  return CRL_OK;
}

// The run of a blocking call, bound to it: a small plan's own, which finds all but the buffers as
// it left them, or the team's one for all others.
crl_request& bind_run(crl_team& team, PreparedCall& call, const Buffers& buffers) {
  const Plan& plan = *call.planned.plan;
  const bool keeps = plan.scratch_bytes <= kKeptScratchBytes && plan.learned.length == 0 &&
                     buffers.tables == nullptr;
  if (keeps) call.run.emplace();
  crl_request& run = keeps ? *call.run : team.blocking_run();
  run.prepare(*team.team, bind(call, buffers));
  run.set_plan(call.planned.plan);
  return run;
}

// Of a team that is ready: whether surveys decide how the call is done, when it begins. With the
// engine's lock.
bool is_surveyed(crl_team& team, const CallKey& key) {
  if (key.collective != Collective::kAlltoallv) return false;
  if (!team.watch) team.watch = std::make_shared<TableWatch>();
  const Shared shared{.collective = key.collective, .ranks = team.team->size()};
  return team.watch->surveys(*team.context->plans, shared, terms_of(*team.team));
}

bool asks_surveys(crl_team& team, const CallKey& key) {
  const Engine::Lock lock(*team.context->engine);
  return is_surveyed(team, key);
}

crl_status_t run_surveyed(crl_team& team, const CallKey& key, const Buffers& buffers) {
  PreparedCall resolved;
  if (Status status = resolve(team, key, resolved); !status.ok()) return report(status);
  crl_request& run = team.blocking_run();
  run.restart(key, resolved.shared);
  run.watch = team.watch;
  run.prepare(*team.team, bind(resolved, buffers));
  run.await_plan();
  team.context->engine->run_to_end(run);
  team.last_algorithm = run.algorithm;
  return run.status().ok() ? CRL_OK : report(run.status());
}

// Its run may have memory of the network's, which is shared with the servlet.
void forget_entry(crl_team& team, CallPlace& entry) {
  const Engine::Lock lock(*team.context->engine);
  if (entry == nullptr) return;
  team.change_edition();
  entry.reset();
}

crl_status_t run_blocking(crl_team& team, const CallKey& key, const Buffers& buffers) {
  team.last_call = nullptr;
  if (team.team->state() != Team::State::kReady) [[unlikely]] {
    if (const crl_status_t status = run_slow_start(team); status != CRL_OK) return status;
  }
  if (key.collective == Collective::kAlltoallv && asks_surveys(team, key)) [[unlikely]] {
    return run_surveyed(team, key, buffers);
  }
  const auto [entry, prepared] = place_of(team, key, buffers.tables);
  bool keeps = true;
  if (!prepared) [[unlikely]] {
    if (team.team->may_join()) {
      const Result<bool> wishes = wish_multicast(team, key);
      if (!wishes.ok()) return report(wishes.status());
      keeps = !wishes.value();
    }
    forget_entry(team, entry);
    if (Status status = prepare_entry(team, key, buffers.tables, entry); !status.ok())
      return report(status);
  }
  PreparedCall& call = *entry;
  team.last_algorithm = call.planned.algorithm;
  crl_request* run = call.run.has_value() ? &*call.run : nullptr;
  if (run != nullptr) [[likely]] {
    const Buffers both = placed(call, buffers);
    run->bind_again(both.in, both.out);
  } else {
    const Engine::Lock lock(*team.context->engine);  // it may take memory of the network's
    run = &bind_run(team, call, buffers);
  }
  if (call.planned.plan->learned.length > 0) [[unlikely]] {
    run->restart(key, call.shared);
    run->algorithm = call.planned.algorithm;
  }
  team.context->engine->run_to_end(*run);
  const crl_status_t status = run->status().ok() ? CRL_OK : report(run->status());
  if (status == CRL_OK && call.run.has_value()) team.last_call = &call;
  if (!keeps) [[unlikely]]
    forget_entry(team, entry);
  return status;
}

// What run_blocking does with a call that it finds prepared.
crl_status_t run_again(crl_team& team, PreparedCall& call, const Buffers& buffers) {
  team.last_algorithm = call.planned.algorithm;
  const Buffers both = placed(call, buffers);
  crl_request& run = *call.run;
  run.bind_again(both.in, both.out);
  team.last_call = nullptr;
  team.context->engine->run_to_end(run);
  if (!run.status().ok()) [[unlikely]]
    return report(run.status());
  team.last_call = &call;
  return CRL_OK;
}

// Whether the servlet moves the call on from its beginning.
bool is_served(const crl_team& team, const CallKey& key, const Buffers& buffers) {
  const Engine& engine = *team.context->engine;
  if (!engine.has_servlet() || engine.serves_all()) return engine.has_servlet();
  ServedCall call{.collective = key.collective,
                  .ranks = team.team->size(),
                  .is_root = key.root == team.team->rank()};
  if (has_tables(key.collective)) {
    const auto sum = [](std::span<const std::int64_t> bytes) {
      return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    };
    call.bytes = std::max(sum(buffers.tables->send_bytes), sum(buffers.tables->recv_bytes));
  } else {
    const std::size_t element =
        has_reduction(key.collective) ? crl_dtype_bytes(key.dtype) : std::size_t{1};
    const std::uint64_t most = kMaxBytes / std::max<std::size_t>(element, 1);  // else it is refused
    call.bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(key.count, most) * element);
  }
  return moved_bytes(call) >= served_from_bytes(key.collective);
}

crl_request* new_request(crl_context& context) {
  if (context.spare_requests.empty()) return new crl_request();
  crl_request* const request = context.spare_requests.back();
  context.spare_requests.pop_back();
  return request;
}

// A request with the plan of a call that is prepared, bound to its buffers. If its last call was
// such a one, all but the buffers is as that one left it.
crl_request& bound_request(crl_team& team, PreparedCall& call, const Buffers& buffers) {
  crl_context& context = *team.context;
  crl_request& request = *new_request(context);
  if (request.bound_to != 0 && request.bound_to == call.id) [[likely]] {
    const Buffers both = placed(call, buffers);
    request.bind_again(both.in, both.out);
    return request;
  }
  request.context = &context;
  request.restart(call.key, call.shared);
  if (call.key.collective == Collective::kAlltoallv) request.watch = team.watch;
  request.prepare(*team.team, bind(call, buffers));
  request.algorithm = call.planned.algorithm;
  request.set_plan(call.planned.plan);
  if (buffers.tables == nullptr && call.planned.plan->learned.length == 0) {
    if (call.id == 0) call.id = ++context.prepared;
    request.bound_to = call.id;
  }
  return request;
}

// One whose plan is found when it begins.
Result<crl_request*> unplanned_request(crl_team& team, const CallKey& key, const Buffers& buffers) {
  PreparedCall call;
  if (Status status = resolve(team, key, call); !status.ok()) return status;
  if (team.team->state() == Team::State::kFailed) return team.team->status();
  crl_request* const request = new_request(*team.context);
  request->context = team.context;
  request->restart(key, call.shared);
  if (key.collective == Collective::kAlltoallv) {
    if (!team.watch) team.watch = std::make_shared<TableWatch>();
    request->watch = team.watch;
  }
  request->prepare(*team.team, bind(call, buffers));
  request->await_plan();
  return request;
}

// One for a call on a team that is ready.
Result<crl_request*> planned_request(crl_team& team, const CallKey& key, const Buffers& buffers) {
  const auto [entry, prepared] = place_of(team, key, buffers.tables);
  if (!prepared) [[unlikely]] {
    if (Status status = prepare_entry(team, key, buffers.tables, entry); !status.ok())
      return status;
  }
  crl_request& request = bound_request(team, *entry, buffers);
  team.last_algorithm = request.algorithm;
  if (!prepared && would_multicast(team, request.shared)) [[unlikely]] {
    team.change_edition();
    entry.reset();
  }
  return &request;
}

// Called while an exception is handled: the other members must not wait for this one.
crl_status_t fail_team(crl_team& team, const CallKey& key) {
  const Status status(Code::kNoMemory, std::string(collective_name(key.collective)) + " of " +
                                           std::to_string(key.count) +
                                           " elements or bytes: out of memory at rank " +
                                           std::to_string(team.team->rank()));
  const Engine::Lock lock(*team.context->engine);
  team.context->engine->fail(*team.team, status);
  return report(status);
}

// The request is started, and not complete: finish() cannot fail.
void note_outstanding(crl_context& context, crl_request& request) {
  std::vector<crl_request_h>& outstanding = context.outstanding;
  const std::size_t most = outstanding.size() + context.leaving_requests.size() + 1;
  context.spare_requests.reserve(context.spare_requests.size() + most);
  context.leaving_requests.reserve(most);
  request.place = outstanding.size();
  outstanding.push_back(&request);
}

// One that cannot be started is not outstanding.
void start_noted(crl_context& context, crl_request& request) {
  try {
    context.engine->start(request);
  } catch (...) {
    context.outstanding.pop_back();
    context.spare_requests.push_back(&request);
    throw;
  }
}

// Where the servlet is just moving things on, whoever posts does not wait for it.
crl_status_t post(crl_team& team, const CallKey& key, const Buffers& buffers,
                  crl_request_h* request_p) {
  constexpr std::size_t kMostLeaving = 64;
  if (team.context->leaving_requests.size() >= kMostLeaving) {
    const Engine::Lock lock(*team.context->engine);
    team.context->take_leaving_requests();
  }
  const Result<crl_request*> made = unplanned_request(team, key, buffers);
  if (!made.ok()) return report(made.status());
  crl_request& request = *made.value();
  note_outstanding(*team.context, request);
  Engine& engine = *team.context->engine;
  if (!engine.post(request)) {
    Engine::Lock lock(engine);
    start_noted(*team.context, request);
    engine.hand_over(lock);
  }
  *request_p = &request;
  return CRL_OK;
}

}  // namespace

crl_status_t start(crl_team& team, const CallKey& key, const Buffers& buffers,
                   crl_request_h* request_p, bool served) {
  Engine& engine = *team.context->engine;
  const bool ready = team.team->state() == Team::State::kReady;
  const bool plans_now = ready && !is_surveyed(team, key);
  const Result<crl_request*> made =
      plans_now ? planned_request(team, key, buffers) : unplanned_request(team, key, buffers);
  if (!made.ok()) return report(made.status());
  crl_request* const request = made.value();
  note_outstanding(*team.context, *request);
  start_noted(*team.context, *request);
  if (request->algorithm != nullptr) team.last_algorithm = request->algorithm;
  if (!served || !ready || request->needs_caller()) engine.progress();
  *request_p = request;
  return CRL_OK;
}

std::string function_of(const CallKey& key) {
  return (key.starts ? "crl_i" : "crl_") + std::string(collective_name(key.collective));
}

Status invalid(const CallKey& key, const std::string& what) {
  return {Code::kInvalidArgument, function_of(key) + ": " + what};
}

crl_status_t call(crl_team_h team, const CallKey& key, const Buffers& buffers,
                  crl_request_h* request_p) {
  if (team == nullptr) [[unlikely]]
    return report(invalid(key, "the team is NULL"));
  const bool scatter = in_place_is_output(key.collective);
  if ((scatter ? buffers.in : buffers.out) == CRL_IN_PLACE) [[unlikely]] {
    return report(invalid(key, scatter ? "CRL_IN_PLACE can only be the output"
                                       : "CRL_IN_PLACE can only be the input"));
  }
  if (buffers.in == nullptr || buffers.out == nullptr) [[unlikely]] {
    if (misses_buffer(*team, key, buffers)) return report(invalid(key, "a buffer is NULL"));
  }
  try {
    if (!key.starts) return run_blocking(*team, key, buffers);
    if (request_p == nullptr) return report(invalid(key, "no place for the request"));
    Engine& engine = *team->context->engine;
    Engine::Lock lock(engine, Engine::kToPost);
    if (lock.busy()) return post(*team, key, buffers, request_p);
    team->context->take_leaving_requests();
    const bool served = is_served(*team, key, buffers);
    const crl_status_t status = start(*team, key, buffers, request_p, served);
    if (status == CRL_OK && served) engine.hand_over(lock);
    return status;
  } catch (const std::exception&) {
    return fail_team(*team, key);
  }
}

}  // namespace carillon

crl_repeatable_t crl_team_last_call(crl_team_h team) {
  if (team == nullptr || team->last_call == nullptr) return {};
  return {team->last_call, team->edition};
}

int crl_repeat(crl_team_h team, crl_repeatable_t call, const void* in, void* out,
               crl_status_t* status) {
  if (team == nullptr || status == nullptr || call.edition != team->edition) return 0;
  auto& prepared = *static_cast<carillon::PreparedCall*>(call.call);
  try {
    *status = carillon::run_again(*team, prepared, {.in = in, .out = out});
  } catch (const std::exception&) {
    *status = carillon::fail_team(*team, prepared.key);
  }
  return 1;
}
