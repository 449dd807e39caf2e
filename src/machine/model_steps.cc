// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of algorithms that go by steps: chain, ring, recursive halving and doubling. Where
// all ranks do the same at the same time, one of them stands for all.
#include <algorithm>
#include <vector>

#include "machine/model_way.h"

namespace carillon::machine {
namespace {

// A team folded to a power of two: `extras` ranks hand their vector to a proxy, which is one of the
// base ranks 0, ..., size-1 and does the algorithm for both. Without extras one base rank stands
// for all.
class Folded {
 public:
  Folded(const Machine& machine, const ModelCall& call)
      : way_(machine, call),
        bytes_(call.bytes),
        size_(power_of_two_below(call.ranks)),
        extras_(call.ranks - size_),
        base_(extras_ > 0 ? static_cast<std::size_t>(size_) : 1) {}

  [[nodiscard]] std::int32_t size() const { return size_; }

  void begin() {
    way_.begin(&extra_, bytes_);
    const std::int64_t arrival = extras_ > 0 ? way_.send(&extra_, bytes_, From::kInput) : 0;
    for (std::size_t i = 0; i < base_.size(); ++i) {
      way_.begin(&base_[i], bytes_);
      if (!is_proxy(i)) continue;
      way_.receive(&base_[i], arrival, bytes_);
      way_.reduce(&base_[i], bytes_);
    }
  }

  // Pairs at that distance exchange `bytes` each; what has come is reduced or copied.
  void exchange(std::int32_t distance, std::int64_t bytes, bool first, bool reduces) {
    std::vector<std::int64_t> arrivals(base_.size());
    for (std::size_t i = 0; i < base_.size(); ++i) {
      const From from = first && !is_proxy(i) ? From::kInput : From::kOutput;
      arrivals[i] = way_.send(&base_[i], bytes, from);
    }
    for (std::size_t i = 0; i < base_.size(); ++i) {
      const std::size_t partner = base_.size() == 1 ? 0 : i ^ static_cast<std::size_t>(distance);
      way_.receive(&base_[i], arrivals[partner], bytes);
      if (reduces) {
        way_.reduce(&base_[i], bytes);
      } else {
        way_.copy(&base_[i], bytes);
      }
    }
  }

  std::int64_t end() {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < base_.size(); ++i) {
      if (is_proxy(i)) {
        Host extra = extra_;
        way_.receive(&extra, way_.send(&base_[i], bytes_, From::kOutput), bytes_);
        way_.copy(&extra, bytes_);
        way_.end(&extra, bytes_);
        last = std::max(last, extra.cpu_ps);
      }
      way_.end(&base_[i], bytes_);
      last = std::max(last, base_[i].cpu_ps);
    }
    return way_.overtaken() ? -1 : last;
  }

 private:
  [[nodiscard]] bool is_proxy(std::size_t base) const {
    return base < static_cast<std::size_t>(extras_);
  }

  Way way_;
  std::int64_t bytes_;
  std::int32_t size_, extras_;
  Host extra_;  // they all do the same until they get the result
  std::vector<Host> base_;
};

// The scatter down a binomial tree and the ring of bcast.scatter_allgather, rank by rank.
class ScatterRing {
 public:
  ScatterRing(const Machine& machine, const ModelCall& call)
      : way_(machine, call),
        ranks_(call.ranks),
        block_(call, call.ranks),
        hosts_(static_cast<std::size_t>(call.ranks)),
        spans_(hosts_.size()) {
    for (std::int64_t v = 0; v < ranks_; ++v) {
      std::int64_t reach = 1;
      while (reach < ranks_ && v % (reach * 2) == 0) reach *= 2;
      spans_[static_cast<std::size_t>(v)] = std::min(reach, ranks_ - v);
    }
    way_.begin(hosts_.data(), call.bytes);
  }

  void scatter() {
    for (std::int64_t v = 0; v < ranks_; ++v) {
      Host& host = hosts_[static_cast<std::size_t>(v)];
      std::int64_t distance = 1;
      while (distance < span(v)) distance *= 2;
      for (distance /= 2; distance > 0; distance /= 2) {
        const std::int64_t child = v + distance;
        const std::int64_t bytes = block_(child, child + span(child));
        if (bytes == 0) continue;
        Host& below = hosts_[static_cast<std::size_t>(child)];
        way_.receive(&below, way_.send(&host, bytes, source(v)), bytes);
        way_.copy(&below, bytes);
      }
    }
  }

  void ring() {
    std::vector<std::int64_t> arrivals(hosts_.size());
    for (std::int64_t step = 0; step < ranks_ - 1; ++step) {
      for (std::int64_t v = 0; v < ranks_; ++v) {
        const std::int64_t right = (v + 1) % ranks_;
        const std::int64_t bytes = incoming(right, step);
        if (bytes == 0) continue;
        arrivals[static_cast<std::size_t>(right)] =
            way_.send(&hosts_[static_cast<std::size_t>(v)], bytes, source(v));
      }
      for (std::int64_t v = 0; v < ranks_; ++v) {
        const std::int64_t bytes = incoming(v, step);
        if (bytes == 0) continue;
        Host& host = hosts_[static_cast<std::size_t>(v)];
        way_.receive(&host, arrivals[static_cast<std::size_t>(v)], bytes);
        way_.copy(&host, bytes);
      }
    }
  }

  std::int64_t end(std::int64_t bytes) {
    std::int64_t last = 0;
    for (std::size_t v = 0; v < hosts_.size(); ++v) {
      if (v > 0) way_.end(&hosts_[v], bytes);
      last = std::max(last, hosts_[v].cpu_ps);
    }
    return way_.overtaken() ? -1 : last;
  }

 private:
  [[nodiscard]] std::int64_t span(std::int64_t v) const {
    return spans_[static_cast<std::size_t>(v)];
  }
  static From source(std::int64_t v) { return v == 0 ? From::kInput : From::kOutput; }
  // Bytes that the rank gets in that step: none of what it has had since the scatter.
  [[nodiscard]] std::int64_t incoming(std::int64_t v, std::int64_t step) const {
    const std::int64_t block = (v - step - 1 + ranks_) % ranks_;
    const bool held = (block - v + ranks_) % ranks_ < span(v);
    return held ? 0 : block_(block, block + 1);
  }

  Way way_;
  std::int64_t ranks_;
  BlockBytes block_;
  std::vector<Host> hosts_;
  std::vector<std::int64_t> spans_;  // of the binomial subtrees
};

}  // namespace

std::int64_t allreduce_recursive_doubling_ps(const Machine& machine, const ModelCall& call) {
  Folded team(machine, call);
  team.begin();
  for (std::int32_t distance = 1; distance < team.size(); distance *= 2) {
    team.exchange(distance, call.bytes, distance == 1, true);
  }
  return team.end();
}

std::int64_t allreduce_reduce_scatter_allgather_ps(const Machine& machine, const ModelCall& call) {
  if (!divides(call, power_of_two_below(call.ranks))) {
    return allreduce_unequal_halves_ps(machine, call);
  }
  Folded team(machine, call);
  team.begin();
  std::int64_t bytes = call.bytes;
  for (std::int32_t distance = 1; distance < team.size(); distance *= 2) {
    bytes /= 2;
    team.exchange(distance, bytes, distance == 1, true);
  }
  for (std::int32_t distance = team.size() / 2; distance > 0; distance /= 2) {
    team.exchange(distance, bytes, false, false);
    bytes *= 2;
  }
  return team.end();
}

std::int64_t allreduce_ring_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  const std::int64_t block = call.bytes / call.ranks;
  Host host;
  way.begin(&host, call.bytes);
  for (std::int32_t step = 0; step < 2 * (call.ranks - 1); ++step) {
    way.receive(&host, way.send(&host, block, step == 0 ? From::kInput : From::kOutput), block);
    if (step < call.ranks - 1) {
      way.reduce(&host, block);
    } else {
      way.copy(&host, block);
    }
  }
  way.end(&host, call.bytes);
  return host.cpu_ps;
}

// A writer is at most a window of messages ahead of what its reader has given back.
std::int64_t bcast_chain_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  std::vector<Host> hosts(static_cast<std::size_t>(call.ranks));
  way.begin(hosts.data(), call.bytes);
  const auto window = static_cast<std::size_t>(call.window);
  const bool credited = !call.two_sided && (call.bytes - 1) / call.segment_bytes >= call.window;
  // By message in the window and reader: when the writer knows that it has been given back.
  std::vector<std::int64_t> released(credited ? window * hosts.size() : 0);
  std::size_t message = 0;
  for (std::int64_t done = 0; done < call.bytes; done += call.segment_bytes, ++message) {
    const std::int64_t bytes = std::min(call.segment_bytes, call.bytes - done);
    std::int64_t* const room = credited ? &released[message % window * hosts.size()] : nullptr;
    const auto send = [&](std::size_t v, From from) {
      if (credited) hosts[v].cpu_ps = std::max(hosts[v].cpu_ps, room[v + 1]);
      return way.send(&hosts[v], bytes, from);
    };
    std::int64_t arrival = send(0, From::kInput);
    for (std::size_t v = 1; v < hosts.size(); ++v) {
      way.receive(&hosts[v], arrival, bytes);
      if (v + 1 < hosts.size()) arrival = send(v, From::kSlot);
      way.copy(&hosts[v], bytes);
      if (credited) room[v] = hosts[v].cpu_ps + wire_latency_ps(machine, 0);
    }
  }
  way.end(&hosts.back(), call.bytes);
  return way.overtaken() ? -1 : hosts.back().cpu_ps;
}

std::int64_t bcast_scatter_allgather_ps(const Machine& machine, const ModelCall& call) {
  ScatterRing team(machine, call);
  team.scatter();
  team.ring();
  return team.end(call.bytes);
}

}  // namespace carillon::machine
