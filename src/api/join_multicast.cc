// SPDX-License-Identifier: Apache-2.0
//
// A team in use joins its multicast groups: within a blocking call that all members are in, by
// allgathers of the team's own, since what the caller's exchange is made of may be gone by now.
// Then it tries whether broadcasts are quicker by multicast: on fast wires packets cost more than
// copies.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "api/call.h"

namespace carillon {
namespace {

// One exchange at a time.
class TeamExchange {
 public:
  explicit TeamExchange(crl_team& team) : team_(team) {}
  ~TeamExchange() {
    if (pending_ == nullptr) return;
    // Of a team that has failed, whose requests are all done; or else something was thrown.
    Engine& engine = *team_.context->engine;
    const Engine::Lock lock(engine);
    if (!pending_->done()) {
      engine.fail(*team_.team, {Code::kInternal,
                                "joining the team's multicast groups has ended "
                                "before an exchange of theirs had"});
    }
    (void)finish(&pending_);
  }
  TeamExchange(const TeamExchange&) = delete;
  TeamExchange& operator=(const TeamExchange&) = delete;

  [[nodiscard]] crl_oob_t oob() {
    return {.arg = this,
            .rank = team_.team->rank(),
            .size = team_.team->size(),
            .allgather_post = post,
            .allgather_test = test};
  }

 private:
  static int post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
    auto& self = *static_cast<TeamExchange*>(arg);
    if (request_p != nullptr) *request_p = nullptr;
    return start(self.team_, key_of(Collective::kAllgather, in, out, bytes), {in, out},
                 &self.pending_);
  }
  static int test(void* arg, void* /*request*/) {
    auto& self = *static_cast<TeamExchange*>(arg);
    if (self.pending_ == nullptr) return CRL_ERR_INTERNAL;
    if (!self.pending_->done()) return 1;
    return finish(&self.pending_);
  }

  crl_team& team_;
  crl_request_h pending_ = nullptr;
};

constexpr std::size_t kTrialBytes[] = {65536, 16384};
constexpr std::size_t kTrialRounds = 5;
constexpr double kClearly = 0.8;  // multicast takes at most so much of the time

// What stands prepared may be for the other way. The places stay: who joins has one in hand.
void forget_broadcasts(crl_team& team) {
  const Engine::Lock lock(*team.context->engine);  // runs may have memory of the network's
  team.change_edition();
  const auto& places = team.prepared[static_cast<std::size_t>(Collective::kBcast)];
  if (places) *places = {};
}

void set_multicast_pays(crl_team& team, bool pays) {
  const Engine::Lock lock(*team.context->engine);
  team.team->set_multicast_pays(pays);
}

// A call of the trial's has not succeeded here: the team cannot go on, since the others are in it.
Status failed(crl_team& team, crl_status_t code) {
  Engine& engine = *team.context->engine;
  const Engine::Lock lock(engine);
  if (team.team->state() != Team::State::kFailed) {
    engine.fail(*team.team, {static_cast<Code>(code), std::string("a call that tried the team's "
                                                                  "multicast has failed: ") +
                                                          crl_last_error()});
  }
  return team.team->status();
}

// How long a broadcast takes this rank, with all ranks ready.
Result<double> time_broadcast_s(crl_team& team, std::vector<std::byte>& data) {
  forget_broadcasts(team);
  crl_status_t code = crl_barrier(&team);
  if (code != CRL_OK) return failed(team, code);
  const auto begin = std::chrono::steady_clock::now();
  code = crl_bcast(&team, data.data(), data.size(), 0);
  if (code != CRL_OK) return failed(team, code);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The median, over the rounds, of the slowest rank's time.
double middle_of_slowest(const std::vector<double>& times, std::size_t first, std::size_t row) {
  std::vector<double> slowest(kTrialRounds, 0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::size_t place = i % row;
    if (place < first || place >= first + kTrialRounds) continue;
    slowest[place - first] = std::max(slowest[place - first], times[i]);
  }
  std::nth_element(slowest.begin(), slowest.begin() + kTrialRounds / 2, slowest.end());
  return slowest[kTrialRounds / 2];
}

// Whether broadcasts of all these lengths are clearly quicker by multicast: the same on all
// members, which all know all times.
Result<bool> try_multicast(crl_team& team) {
  constexpr std::size_t kRow = 2 * kTrialRounds;
  for (const std::size_t bytes : kTrialBytes) {
    std::vector<std::byte> data(bytes);
    std::vector<double> mine(kRow);  // without multicast, then with
    for (std::size_t i = 0; i < kRow; ++i) {
      const bool pays = i % 2 == 1;
      set_multicast_pays(team, pays);
      const Result<double> time_s = time_broadcast_s(team, data);
      if (!time_s.ok()) return time_s.status();
      mine[i / 2 + (pays ? kTrialRounds : 0)] = time_s.value();
    }
    std::vector<double> all(kRow * static_cast<std::size_t>(team.team->size()));
    const crl_status_t code = crl_allgather(&team, mine.data(), all.data(), kRow * sizeof(double));
    if (code != CRL_OK) return failed(team, code);
    const double without_s = middle_of_slowest(all, 0, kRow);
    const double with_s = middle_of_slowest(all, kTrialRounds, kRow);
    if (with_s > kClearly * without_s) return false;
  }
  return true;
}

}  // namespace

Status join_multicast(crl_team& team) {
  Engine& engine = *team.context->engine;
  TeamExchange exchange(team);
  engine.join_multicast(*team.team, exchange.oob());
  if (team.team->state() == Team::State::kFailed) return team.team->status();
  if (team.team->multicast() == nullptr) return {};
  const Result<bool> pays = try_multicast(team);
  if (!pays.ok()) return pays.status();
  forget_broadcasts(team);
  const Engine::Lock lock(engine);
  if (pays.value()) {
    team.team->set_multicast_pays(true);
  } else {
    team.team->leave_multicast();
  }
  return {};
}

}  // namespace carillon
