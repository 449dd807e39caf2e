// SPDX-License-Identifier: Apache-2.0
#include "support/critical_path.h"

#include <algorithm>
#include <map>
#include <utility>

namespace carillon::test {
namespace {

std::int64_t total(std::span<const Piece> pieces) {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.length;
  return sum;
}

// A memory that holds times instead of bytes.
class Clocks final : public Memory {
 public:
  explicit Clocks(const PathCosts& costs) : costs_(costs) {}

  Status begin_stage(Rank rank, const Schedule& schedule) override {
    double latest = 0;
    for (const auto& [site, time] : times_) {
      if (site.first == rank) latest = std::max(latest, time);
    }
    for (std::size_t i = 0; i < schedule.strands.size(); ++i) {
      times_[{rank, static_cast<std::int32_t>(i)}] = latest;
    }
    return {};
  }
  Status copy(Site site, std::span<const Piece> dst, std::span<const Piece> /*src*/) override {
    at(site) += costs_.op_ns + bytes_ns(total(dst));
    return {};
  }
  Status reduce(Site site, const Piece& dst, const Piece& /*left*/,
                const Piece& /*right*/) override {
    at(site) += costs_.op_ns + bytes_ns(dst.length);
    return {};
  }
  Status capture(Site site, std::span<const Piece> src, Payload* payload) override {
    at(site) += costs_.message_ns + bytes_ns(total(src));
    *payload = static_cast<Payload>(arrivals_.size());
    arrivals_.push_back(at(site) + costs_.latency_ns);
    return {};
  }
  Status arrive(Site site, Payload payload) override {
    at(site) = std::max(at(site), arrivals_[payload]) + costs_.message_ns;
    return {};
  }
  Status deliver(Site site, std::span<const Piece> dst, Payload payload) override {
    at(site) = std::max(at(site), arrivals_[payload]) + costs_.message_ns + bytes_ns(total(dst));
    return {};
  }
  void discard(Payload /*payload*/) override {}
  Status learn(Rank /*rank*/, Range scratch, std::vector<std::int64_t>* values) override {
    values->assign(static_cast<std::size_t>(scratch.length / 8), 0);
    return {};
  }

  [[nodiscard]] double latest() const {
    double latest = 0;
    for (const auto& [site, time] : times_) latest = std::max(latest, time);
    return latest;
  }

 private:
  double& at(Site site) { return times_[{site.rank, site.strand}]; }
  [[nodiscard]] double bytes_ns(std::int64_t bytes) const {
    return static_cast<double>(bytes) * costs_.byte_ns;
  }

  PathCosts costs_;
  std::map<std::pair<Rank, std::int32_t>, double> times_;
  std::vector<double> arrivals_;
};

}  // namespace

Result<double> critical_path_ns(const TeamCall& call, const Emit& emit, const PathCosts& costs) {
  Clocks clocks(costs);
  const auto run = run_team(call, emit, clocks);
  if (!run.ok()) return run.status();
  return clocks.latest();
}

}  // namespace carillon::test
