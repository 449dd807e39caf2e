// SPDX-License-Identifier: Apache-2.0
//
// A team in use joins its multicast groups: within a blocking call that all members are in, by
// allgathers of the team's own, since what the caller's exchange is made of may be gone by now.
#include "api/call.h"

namespace carillon {
namespace {

// One exchange at a time.
class TeamExchange {
 public:
  explicit TeamExchange(crl_team& team) : team_(team) {}
  ~TeamExchange() {
    if (pending_ == nullptr) return;
    // Of a team that has failed: its requests are all done.
    const Engine::Lock lock(*team_.context->engine);
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

}  // namespace

Status join_multicast(crl_team& team) {
  Engine& engine = *team.context->engine;
  TeamExchange exchange(team);
  engine.join_multicast(*team.team, exchange.oob());
  if (team.team->state() == Team::State::kFailed) return team.team->status();
  return {};
}

}  // namespace carillon
