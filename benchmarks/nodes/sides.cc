// SPDX-License-Identifier: Apache-2.0
#include "sides.h"

#include <sched.h>

#include <cstring>

namespace carillon::bench {
namespace {

// Sums of small whole numbers are exact in any order.
float value_of(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 1021);
}

}  // namespace

void check(crl_status_t status, const char* what) {
  if (status != CRL_OK) give_up(std::string(what) + ": " + crl_last_error());
}

crl_context_h make_any_context(Bootstrap& bootstrap) {
  crl_context_config_t config = {};
  config.struct_bytes = sizeof config;
  config.oob = bootstrap.oob();
  crl_context_h context = nullptr;
  check(crl_context_create(&config, &context), "context");
  const auto& network_status = context->engine->network_status();
  if (!network_status.ok()) give_up(network_status.to_string());
  return context;
}

crl_context_h make_context(Bootstrap& bootstrap) {
  crl_context_h context = make_any_context(bootstrap);
  if (context->engine->network() == nullptr) give_up("all ranks are on one node");
  return context;
}

crl_team_h make_team(crl_context_h context, Bootstrap& bootstrap) {
  const crl_oob_t oob = bootstrap.oob();
  crl_team_h team = nullptr;
  check(crl_team_create(context, &oob, &team), "team");
  for (crl_status_t status; (status = crl_team_test(team)) != CRL_OK;) {
    if (status != CRL_IN_PROGRESS) check(status, "team");
    sched_yield();
  }
  return team;
}

Sides::Sides(crl_context_h context, Bootstrap& bootstrap, int k) : context_(context), k_(k) {
  for (crl_team_h& team : teams_) team = make_team(context, bootstrap);
}

Sides::~Sides() {
  for (crl_team_h team : teams_) crl_team_destroy(team);
}

// What is chosen for a team's call stays with it: only a call made for the first time looks here.
void Sides::use_plans(Side side) {
  const std::string transfer = side == kRdma ? "put" : "sendrecv";
  Config settings = context_->engine->settings();
  settings.algorithm = "allreduce=degree_k:k=" + std::to_string(k_) + ",transfer=" + transfer +
                       ";bcast=knomial:k=" + std::to_string(k_ + 1) + ",transfer=" + transfer;
  auto plans = PlanCache::create(settings);
  if (!plans.ok()) give_up(plans.status().to_string());
  context_->plans = std::move(plans.value());
}

void Sides::prepare(const Call& call) {
  const std::size_t count = call.bytes / sizeof(float);
  for (const Side side : {kSendRecv, kRdma}) {
    use_plans(side);
    const int rank = crl_team_rank(teams_[side]);
    const int ranks = crl_team_size(teams_[side]);
    in_.resize(count);
    out_.assign(count, -1);
    for (std::size_t i = 0; i < count; ++i) {
      in_[i] = value_of(rank, i);
      if (call.is_bcast && rank == 0) out_[i] = value_of(0, i);
    }
    run(side, call);
    for (std::size_t i = 0; i < count; ++i) {
      float expected = value_of(0, i);
      for (int r = 1; r < ranks && !call.is_bcast; ++r) expected += value_of(r, i);
      if (out_[i] != expected) give_up("a wrong answer (a defect of carillon: please report it)");
    }
  }
}

void Sides::run(Side side, const Call& call) {
  const std::size_t count = call.bytes / sizeof(float);
  check(call.is_bcast
            ? crl_bcast(teams_[side], out_.data(), call.bytes, 0)
            : crl_allreduce(teams_[side], in_.data(), out_.data(), count, CRL_FLOAT32, CRL_SUM),
        call.is_bcast ? "bcast" : "allreduce");
}

std::string Sides::algorithm(Side side) const { return crl_team_last_algorithm(teams_[side]); }

Work work_so_far(const crl_context& context) {
  net::Network& network = *context.engine->network();
  const wire::Counters& wire = network.wire().counters();
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  return {.puts = number(wire.puts),
          .gets = number(wire.gets),
          .sends = number(wire.sends),
          .receives = number(wire.receives),
          .completions = number(wire.completions),
          .immediates = number(wire.immediates),
          .copied_bytes = number(wire.copied_bytes + network.counters().copied_bytes)};
}

}  // namespace carillon::bench
