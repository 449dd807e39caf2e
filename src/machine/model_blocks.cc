// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of algorithms that move a block for each rank, and of dissemination. Where all ranks
// do the same at the same time, one of them stands for all.
#include <algorithm>
#include <utility>
#include <vector>

#include "machine/model_way.h"

namespace carillon::machine {
namespace {

// Whether all blocks are put before any is waited for.
bool is_short(const ModelCall& call) { return call.bytes <= call.inline_bytes; }

// A message to each other rank, the next one first, so that it is the same for all ranks when they
// come. What has come is reduced onto the own part, or the own part is copied and then each.
class ToAll {
 public:
  ToAll(const Machine& machine, const ModelCall& call, std::int64_t input_bytes)
      : way_(machine, call), call_(call) {
    way_.begin(&host_, input_bytes);
    for (std::int32_t step = 1; step < call.ranks; ++step) {
      seen_.push_back(way_.send(&host_, call.bytes, From::kInput));
    }
  }
  void copy_own() { way_.copy(&host_, call_.bytes); }
  // The one before a rank first: the same for all ranks.
  std::int64_t copied_in_turn_ps(std::int64_t output_bytes) {
    arrive();
    for (std::size_t distance = 1; distance < seen_.size(); ++distance) {
      way_.take(&host_, seen_[distance], call_.bytes);
      way_.copy(&host_, call_.bytes);
    }
    way_.end(&host_, output_bytes);
    return host_.cpu_ps;
  }
  // In the order of ranks; take(from): after the message of that rank, or for the own part.
  template <typename Take>
  std::int64_t taken_in_order_ps(std::int64_t output_bytes, Take take) {
    arrive();
    std::int64_t last = 0;
    const std::int64_t sent_ps = host_.cpu_ps;
    for (std::int32_t rank = 0; rank < call_.ranks; ++rank) {
      host_.cpu_ps = sent_ps;
      for (std::int32_t from = 0; from < call_.ranks; ++from) {
        const std::int32_t distance = (rank - from + call_.ranks) % call_.ranks;
        if (distance > 0) way_.take(&host_, seen_[static_cast<std::size_t>(distance)], call_.bytes);
        take(way_, &host_, from, distance == 0);
      }
      last = std::max(last, host_.cpu_ps);
    }
    host_.cpu_ps = last;
    way_.end(&host_, output_bytes);
    return host_.cpu_ps;
  }

 private:
  void arrive() {
    for (std::size_t distance = 1; distance < seen_.size(); ++distance) {
      seen_[distance] = way_.arrive(&host_, seen_[distance], call_.bytes);
    }
  }

  Way way_;
  const ModelCall& call_;
  Host host_;
  std::vector<std::int64_t> seen_{0};  // by how many ranks the sender is in front; first: arrivals
};

std::int64_t reduced_in_order_ps(const Machine& machine, const ModelCall& call,
                                 std::int64_t input_bytes) {
  ToAll exchange(machine, call, input_bytes);
  return exchange.taken_in_order_ps(
      call.bytes, [&](const Way& way, Host* host, std::int32_t from, bool /*own*/) {
        if (from > 0) way.reduce(host, call.bytes);
      });
}

}  // namespace

std::int64_t barrier_dissemination_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host host;
  for (std::int64_t distance = 1; distance < call.ranks; distance *= 2) {
    way.receive(&host, way.send(&host, 0, From::kInput), 0);
  }
  return host.cpu_ps;
}

// In a round each rank signals several others; what one has signalled first comes first.
std::int64_t barrier_multiway_dissemination_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host host;
  std::vector<std::int64_t> times;
  for (std::int64_t distance = 1; distance < call.ranks; distance *= call.k) {
    times.clear();
    for (std::int64_t step = 1; step < call.k && step * distance < call.ranks; ++step) {
      times.push_back(way.send(&host, 0, From::kInput));
    }
    for (std::int64_t& time : times) time = way.arrive(&host, time, 0);
    for (const std::int64_t seen : times) way.take(&host, seen, 0);
  }
  return host.cpu_ps;
}

std::int64_t barrier_flat_ps(const Machine& machine, const ModelCall& call) {
  ModelCall nothing = call;
  nothing.bytes = 0;
  return allreduce_flat_ps(machine, nothing);
}

std::int64_t allgather_ring_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host host;
  way.begin(&host, call.bytes);
  for (std::int32_t step = 0; step < call.ranks - 1; ++step) {
    const From from = step == 0 ? From::kInput : From::kOutput;
    way.receive(&host, way.send(&host, call.bytes, from), call.bytes);
    way.copy(&host, call.bytes);
  }
  way.copy(&host, call.bytes);
  way.end(&host, call.bytes * call.ranks);
  return host.cpu_ps;
}

std::int64_t allgather_recursive_doubling_ps(const Machine& machine, const ModelCall& call) {
  if (power_of_two_below(call.ranks) != call.ranks) {
    return allgather_folded_doubling_ps(machine, call);
  }
  Way way(machine, call);
  Host host;
  way.begin(&host, call.bytes);
  for (std::int32_t held = 1; held < call.ranks; held *= 2) {
    const std::int64_t bytes = held * call.bytes;
    way.receive(&host, way.send(&host, bytes, held == 1 ? From::kInput : From::kOutput), bytes);
    way.copy(&host, bytes);
    if (held == 1) way.copy(&host, call.bytes);
  }
  way.end(&host, call.bytes * call.ranks);
  return host.cpu_ps;
}

// All messages are on their way at once, and are taken up in the order of ranks.
std::int64_t gather_flat_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host root, other;
  way.begin(&other, call.bytes);
  const std::int64_t arrival = way.send(&other, call.bytes, From::kInput);
  way.begin(&root, call.bytes);
  way.copy(&root, call.bytes);
  for (std::int32_t rank = 1; rank < call.ranks; ++rank) {
    way.receive(&root, arrival, call.bytes);
    way.copy(&root, call.bytes);
  }
  way.end(&root, call.bytes * call.ranks);
  return root.cpu_ps;
}

// The same, where the root reduces.
std::int64_t reduce_flat_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host root, other;
  way.begin(&other, call.bytes);
  const std::int64_t arrival = way.send(&other, call.bytes, From::kInput);
  way.begin(&root, call.bytes);
  for (std::int32_t rank = 1; rank < call.ranks; ++rank) {
    way.receive(&root, arrival, call.bytes);
    way.reduce(&root, call.bytes);
  }
  way.end(&root, call.bytes);
  return root.cpu_ps;
}

// A message from the root to each other rank; when the last has it in its output.
std::int64_t send_to_all(Way& way, Host* root, const ModelCall& call) {
  std::int64_t last = 0;
  for (std::int32_t rank = 1; rank < call.ranks; ++rank) {
    Host host;
    way.receive(&host, way.send(root, call.bytes, From::kInput), call.bytes);
    way.copy(&host, call.bytes);
    way.end(&host, call.bytes);
    last = std::max(last, host.cpu_ps);
  }
  return last;
}

// A message for each reader: nobody reads what is on another node.
std::int64_t bcast_flat_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host root;
  way.begin(&root, call.bytes);
  return send_to_all(way, &root, call);
}

std::int64_t allreduce_flat_ps(const Machine& machine, const ModelCall& call) {
  return reduced_in_order_ps(machine, call, call.bytes);
}

std::int64_t reduce_scatter_block_flat_ps(const Machine& machine, const ModelCall& call) {
  return reduced_in_order_ps(machine, call, call.bytes * call.ranks);
}

std::int64_t allgather_flat_ps(const Machine& machine, const ModelCall& call) {
  ToAll exchange(machine, call, call.bytes);
  exchange.copy_own();
  return exchange.copied_in_turn_ps(call.bytes * call.ranks);
}

std::int64_t alltoall_flat_ps(const Machine& machine, const ModelCall& call) {
  ToAll exchange(machine, call, call.bytes * call.ranks);
  exchange.copy_own();
  return exchange.taken_in_order_ps(
      call.bytes * call.ranks, [&](const Way& way, Host* host, std::int32_t /*from*/, bool own) {
        if (!own) way.copy(host, call.bytes);
      });
}

std::int64_t scatter_flat_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host root;
  way.begin(&root, call.bytes * call.ranks);
  const std::int64_t last = send_to_all(way, &root, call);
  way.copy(&root, call.bytes);
  way.end(&root, call.bytes);
  return std::max(last, root.cpu_ps);
}

std::int64_t reduce_scatter_block_pairwise_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host host;
  way.begin(&host, call.bytes * call.ranks);
  std::vector<std::int64_t> seen;
  const auto take = [&](std::int64_t seen_ps) {
    way.take(&host, seen_ps, call.bytes);
    way.reduce(&host, call.bytes);
  };
  for (std::int32_t step = 1; step < call.ranks; ++step) {
    const std::int64_t arrival = way.send(&host, call.bytes, From::kInput);
    seen.push_back(way.arrive(&host, arrival, call.bytes));
    if (!is_short(call)) take(seen.back());
  }
  if (is_short(call)) std::for_each(seen.begin(), seen.end(), take);
  way.end(&host, call.bytes);
  return host.cpu_ps;
}

std::int64_t reduce_scatter_block_recursive_halving_ps(const Machine& machine,
                                                       const ModelCall& call) {
  if (power_of_two_below(call.ranks) != call.ranks) {
    return reduce_scatter_block_folded_halving_ps(machine, call);
  }
  Way way(machine, call);
  Host host;
  way.begin(&host, call.bytes * call.ranks);
  for (std::int32_t kept = call.ranks / 2; kept > 0; kept /= 2) {
    const std::int64_t bytes = kept * call.bytes;
    const From from = kept == call.ranks / 2 ? From::kInput : From::kScratch;
    way.receive(&host, way.send(&host, bytes, from), bytes);
    way.reduce(&host, bytes);
  }
  way.end(&host, call.bytes);
  return host.cpu_ps;
}

// All put before they wait, and each takes in step s what was put in step s.
std::int64_t alltoall_pairwise_ps(const Machine& machine, const ModelCall& call) {
  Way way(machine, call);
  Host host;
  way.begin(&host, call.bytes * call.ranks);
  std::vector<std::int64_t> seen;
  for (std::int32_t step = 1; step < call.ranks; ++step) {
    const std::int64_t arrival = way.send(&host, call.bytes, From::kInput);
    seen.push_back(way.arrive(&host, arrival, call.bytes));
  }
  way.copy(&host, call.bytes);
  for (const std::int64_t seen_ps : seen) {
    way.take(&host, seen_ps, call.bytes);
    way.copy(&host, call.bytes);
  }
  way.end(&host, call.bytes * call.ranks);
  return host.cpu_ps;
}

}  // namespace carillon::machine
