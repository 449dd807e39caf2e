// SPDX-License-Identifier: Apache-2.0
//
// Contexts, teams, memory and status of the C API.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "api/objects.h"
#include "base/log.h"
#include "engine/aggregation.h"
#include "engine/node.h"
#include "transport/net/memory_use.h"

using carillon::Code;
using carillon::Engine;

namespace carillon {
namespace {

// Of this thread. That of the process's first thread stays to the end: functions that are called
// after its objects have gone may ask for it, or fail themselves.
constinit thread_local std::string* t_last_error = nullptr;

struct EndOfThread {
  ~EndOfThread() {
    if (gettid() != getpid()) delete std::exchange(t_last_error, nullptr);
  }
};

void keep_error(std::string text) {
  if (t_last_error == nullptr) {
    [[maybe_unused]] static thread_local const EndOfThread end;
    t_last_error = new std::string;
  }
  *t_last_error = std::move(text);
}

crl_status_t report_null(const char* function, const char* what) {
  return report({Code::kInvalidArgument, std::string(function) + ": the " + what + " is NULL"});
}

}  // namespace

crl_status_t report(const Status& status) {
  if (!status.ok()) keep_error(status.to_string());
  return static_cast<crl_status_t>(status.code());
}

}  // namespace carillon

crl_context::~crl_context() {
  while (!teams.empty()) crl_team_destroy(teams.back());
  if (engine != nullptr) {
    const carillon::Engine::Lock lock(*engine);
    take_leaving_requests();
  }
  for (crl_request_h request : spare_requests) delete request;
}

carillon::Result<std::shared_ptr<const carillon::Plan>> crl_context::first_plan(
    crl_request& request) {
  const carillon::Team& team = request.team();
  const carillon::TeamTerms terms = terms_of(team);
  const carillon::Local local{.in_place = request.key.in_place, .tables = request.tables()};
  if (request.watch && request.watch->surveys(*plans, request.shared, terms)) {
    auto next = request.watch->next(*plans, request.shared, local, team.rank(), terms);
    if (!next.ok()) return next.status();
    request.agreed = next.value().choice;
    request.algorithm = next.value().planned.algorithm;
    request.set_note(next.value().note);
    return next.value().planned.plan;
  }
  auto found = plans->find(request.shared, local, team.rank(), terms);
  if (!found.ok()) return found.status();
  request.algorithm = found.value().algorithm;
  return found.value().plan;
}

carillon::Result<std::shared_ptr<const carillon::Plan>> crl_context::plan(carillon::Run& run) {
  auto& request = static_cast<crl_request&>(run);
  if (!run.has_plan()) return first_plan(request);
  carillon::Surveys* const surveys = request.watch ? request.watch->surveys() : nullptr;
  if (surveys != nullptr) surveys->learn(request.agreed, run.learned());
  carillon::TeamTerms terms = terms_of(run.team());
  terms.agreed = request.agreed;
  auto next =
      plans->next_stage(*request.algorithm, request.shared, request.key.in_place, run.team().rank(),
                        terms, {run.tables(), ++request.stage, run.learned()});
  if (!next.ok()) return next.status();
  if (surveys != nullptr) surveys->count_plan(request.agreed, next.value().is_new);
  return next.value().plan;
}

void crl_context::note_error(crl_request& request) {
  if (!request.done() || request.status().ok() || request.error_noted) return;
  request.error_noted = true;
  if (first_error.ok()) first_error = request.status();
}

const char* crl_status_string(crl_status_t status) {
  return carillon::code_name(static_cast<Code>(status)).data();
}

const char* crl_last_error(void) {
  return carillon::t_last_error == nullptr ? "" : carillon::t_last_error->c_str();
}

const char* crl_version(void) { return "0.1.0"; }

namespace {

// Ids are literals: they end with a zero.
const char* id_of(const carillon::Algorithm* algorithm) {
  return algorithm == nullptr ? "" : algorithm->id.data();
}

// What a process finds out alone, before it meets the others.
struct Prepared {
  carillon::Config settings;
  std::unique_ptr<carillon::PlanCache> plans;
};

carillon::Result<Prepared> prepare() {
  auto settings = carillon::read_config();
  if (!settings.ok()) return settings.status();
  carillon::set_log_level(settings.value().log);
  auto plans = carillon::PlanCache::create(settings.value());
  if (!plans.ok()) return plans.status();
  // On one node, too, where it is not used.
  const auto in_switch = carillon::switch_wish(settings.value());
  if (!in_switch.ok()) return in_switch.status();
  return Prepared{std::move(settings.value()), std::move(plans.value())};
}

crl_status_t create_context(const crl_context_config_t& config, crl_context_h* context_p) {
  auto prepared = prepare();
  // Others would wait for who cannot go on.
  const carillon::Config standard;
  const carillon::Config& settings = prepared.ok() ? prepared.value().settings : standard;
  const auto met = carillon::greet(config.oob, prepared.status(), settings.join_timeout_s);
  if (!met.ok()) return carillon::report(met);
  auto engine = Engine::create(config, settings);
  if (!engine.ok()) return carillon::report(engine.status());
  auto context = std::make_unique<crl_context>();
  context->plans = std::move(prepared.value().plans);
  context->engine = std::move(engine.value());
  context->engine->set_stage_source(context.get());
  *context_p = context.release();
  return CRL_OK;
}

crl_status_t create_team(crl_context& context, const crl_oob_t& oob, crl_team_h* team_p) {
  Engine& engine = *context.engine;
  const Engine::Lock lock(engine);
  // Once the exchange has begun, others count on the team.
  engine.make_room_for_team();
  if (context.teams.size() == context.teams.capacity()) {
    context.teams.reserve(2 * context.teams.size() + 8);
  }
  auto team = std::make_unique<crl_team>();
  team->context = &context;
  team->team = std::make_unique<carillon::Team>(engine, oob);
  engine.add_team(*team->team);
  context.teams.push_back(team.get());
  *team_p = team.release();
  return CRL_OK;
}

}  // namespace

crl_status_t crl_context_create(const crl_context_config_t* config, crl_context_h* context_p) {
  if (config == nullptr || context_p == nullptr || !carillon::is_complete(config->oob)) {
    return carillon::report({Code::kInvalidArgument,
                             "crl_context_create: the config needs an oob with both functions "
                             "and a rank below its size"});
  }
  if (config->struct_bytes != sizeof(crl_context_config_t)) {
    return carillon::report({Code::kInvalidArgument,
                             "crl_context_create: struct_bytes is not this library's "
                             "sizeof(crl_context_config_t); was it set?"});
  }
  return carillon::guarded([&] { return create_context(*config, context_p); });
}

void crl_context_destroy(crl_context_h context) {
  if (context != nullptr && !context->is_inherited()) delete context;
}

size_t crl_network_bytes(int ranks, int neighbours) {
  const auto settings = carillon::read_config();
  if (!settings.ok() || ranks < 1 || neighbours < 0) return 0;
  return carillon::net::team_bytes(settings.value().slot_bytes, ranks, neighbours);
}

crl_status_t crl_context_progress(crl_context_h context) {
  if (context == nullptr) return carillon::report_null("crl_context_progress", "context");
  return carillon::guarded([&] {
    const Engine::Lock lock(*context->engine, std::try_to_lock);
    if (lock.busy()) return CRL_OK;
    context->engine->progress_and_watch();
    for (crl_request_h request : context->outstanding) context->note_error(*request);
    return carillon::report(std::exchange(context->first_error, {}));
  });
}

crl_status_t crl_team_create(crl_context_h context, const crl_oob_t* oob, crl_team_h* team_p) {
  if (context == nullptr || oob == nullptr || team_p == nullptr || !carillon::is_complete(*oob)) {
    return carillon::report({Code::kInvalidArgument,
                             "crl_team_create: needs a context, an oob with both functions and a "
                             "rank below its size, and a place for the team"});
  }
  return carillon::guarded([&] { return create_team(*context, *oob, team_p); });
}

crl_status_t crl_team_test(crl_team_h team) {
  if (team == nullptr) return carillon::report_null("crl_team_test", "team");
  return carillon::guarded([&] {
    const Engine::Lock lock(*team->context->engine);
    team->context->engine->progress_and_watch();
    switch (team->team->state()) {
      case carillon::Team::State::kAgreeing: return CRL_IN_PROGRESS;
      case carillon::Team::State::kReady: return CRL_OK;
      case carillon::Team::State::kFailed: break;
    }
    return carillon::report(team->team->status());
  });
}

void crl_team_destroy(crl_team_h team) {
  if (team == nullptr || team->context->is_inherited()) return;
  Engine& engine = *team->context->engine;
  const Engine::Lock lock(engine);
  std::erase(team->context->teams, team);
  engine.retire_team(std::move(team->team));
  delete team;  // its runs give back what the network knows
}

void crl_team_set_name(crl_team_h team, const char* name) {
  if (team == nullptr || name == nullptr) return;
  (void)carillon::guarded([&] {
    const Engine::Lock lock(*team->context->engine);
    team->team->set_name(name);
    return CRL_OK;
  });
}

void crl_team_fail(crl_team_h team, crl_status_t status) {
  if (team == nullptr || status >= CRL_OK) return;
  (void)carillon::guarded([&] {
    Engine& engine = *team->context->engine;
    carillon::Team& failing = *team->team;
    // Before that the members have no way to hear of it.
    if (failing.state() == carillon::Team::State::kAgreeing) engine.wait(failing);
    const Engine::Lock lock(engine);
    if (failing.state() != carillon::Team::State::kFailed) {
      engine.fail(failing, carillon::Status(static_cast<Code>(status),
                                            std::string("rank ") + std::to_string(failing.rank()) +
                                                " of a team of " + std::to_string(failing.size()) +
                                                " gave it up: " + crl_status_string(status)));
    }
    return CRL_OK;
  });
}

int crl_team_rank(crl_team_h team) {
  if (team != nullptr) return team->team->rank();
  carillon::report_null("crl_team_rank", "team");
  return -1;
}

int crl_team_size(crl_team_h team) {
  if (team != nullptr) return team->team->size();
  carillon::report_null("crl_team_size", "team");
  return -1;
}

const char* crl_team_last_algorithm(crl_team_h team) {
  return id_of(team != nullptr ? team->last_algorithm : nullptr);
}

const char* crl_request_algorithm(crl_request_h request) {
  const char* id = "";
  if (request == nullptr) return id;
  (void)carillon::guarded([&] {
    const Engine::Lock lock(*request->context->engine);
    const bool known = request->algorithm != nullptr || request->done();
    id = known ? id_of(request->algorithm) : nullptr;
    return CRL_OK;
  });
  return id;
}

int crl_team_decisions(crl_team_h team, crl_decision_t* decisions, int room) {
  int count = 0;
  if (team == nullptr) return count;
  if (decisions == nullptr) room = 0;
  (void)carillon::guarded([&] {
    const Engine::Lock lock(*team->context->engine);
    if (!team->watch) return CRL_OK;
    for (const carillon::TableWatch::Decision& each : team->watch->decisions()) {
      if (count < room) {
        decisions[count] = {.algorithm = id_of(each.algorithm),
                            .reason = carillon::text_of(each.why),
                            .calls = each.calls};
      }
      ++count;
    }
    return CRL_OK;
  });
  return count;
}

void* crl_alloc(crl_context_h context, size_t bytes) {
  if (context == nullptr) {
    carillon::report_null("crl_alloc", "context");
    return nullptr;
  }
  void* memory = nullptr;
  (void)carillon::guarded([&] {
    const Engine::Lock lock(*context->engine);
    memory = context->engine->allocate_heap(bytes);
    if (memory != nullptr) return CRL_OK;
    return carillon::report({Code::kNoMemory, "crl_alloc: " + std::to_string(bytes) +
                                                  " bytes are more than what is left of this "
                                                  "process's share (CARILLON_HEAP_MIB)"});
  });
  return memory;
}

crl_status_t crl_free(crl_context_h context, void* memory) {
  if (context == nullptr) return carillon::report_null("crl_free", "context");
  return carillon::guarded([&] {
    const Engine::Lock lock(*context->engine);
    const carillon::Status freed = context->engine->free_heap(memory);
    return freed.ok() ? CRL_OK : carillon::report(freed);
  });
}

void crl_context_traffic(crl_context_h context, crl_traffic_t* traffic) {
  if (context == nullptr || traffic == nullptr) return;
  const Engine::Lock lock(*context->engine);
  *traffic = context->engine->traffic();
}

size_t crl_dtype_bytes(crl_dtype_t dtype) {
  if ((dtype & CRL_OPAQUE(0)) != 0) return dtype & ~CRL_OPAQUE(0);
  return dtype < CRL_DTYPES ? carillon::dtype_bytes(static_cast<crl_dtype_kind_t>(dtype)) : 0;
}

crl_status_t crl_op_create(crl_op_fn_t fn, void* arg, int commutative, crl_op_t* op_p) {
  if (fn == nullptr || op_p == nullptr) {
    return carillon::report(
        {Code::kInvalidArgument, "crl_op_create: needs a function and a place for the operator"});
  }
  static std::atomic<std::uint64_t> last_id{0};
  return carillon::guarded([&] {
    *op_p = reinterpret_cast<crl_op_t>(new carillon::UserOp{fn, arg, commutative != 0, ++last_id});
    return CRL_OK;
  });
}

void crl_op_free(crl_op_t op) {
  if (!carillon::is_predefined(op) && !carillon::is_no_operator(op))
    delete reinterpret_cast<carillon::UserOp*>(op);
}

int crl_op_supports(crl_op_t op, crl_dtype_t dtype) {
  if (carillon::is_no_operator(op)) return 0;
  if (!carillon::is_predefined(op)) return crl_dtype_bytes(dtype) > 0 ? 1 : 0;
  if (dtype >= CRL_DTYPES) return 0;
  return carillon::find_kernel(static_cast<crl_op_kind_t>(op),
                               static_cast<crl_dtype_kind_t>(dtype)) != nullptr
             ? 1
             : 0;
}
