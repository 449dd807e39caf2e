// SPDX-License-Identifier: Apache-2.0
//
// What the closed forms are made of: a message, a copy, a reduction, at the ranks that they matter
// for. See model.h.
#pragma once

#include <algorithm>

#include "machine/model.h"
#include "machine/port.h"

namespace carillon::machine {

/// Where the bytes of a message are read.
enum class From : std::uint8_t { kInput, kOutput, kInputAndOutput, kSlot, kScratch };

/// A rank, alone on its node.
struct Host {
  std::int64_t cpu_ps = 0;  ///< what it has done until now ends here
  Lanes nic, bus;
  SendQueue queue;
  std::int64_t last_arrival_ps = INT64_MIN / 2;
};

/// How the messages of a call go: by remote write, or by send and receive.
class Way {
 public:
  Way(const Machine& machine, const ModelCall& call) : m_(machine), two_sided_(call.two_sided) {}

  /// What comes before the call's first step and after its last one, for a rank with that many
  /// bytes of input, or output.
  void begin(Host* host, std::int64_t input_bytes) const {
    if (stages(m_.one_sided.stage_input, input_bytes)) copy(host, input_bytes);
  }
  void end(Host* host, std::int64_t output_bytes) const {
    if (stages(m_.one_sided.stage_output, output_bytes)) copy(host, output_bytes);
  }

  /// The message leaves, a list of that many entries; when its last byte can be in the reader's
  /// NIC.
  std::int64_t send(Host* host, std::int64_t bytes, From from, std::int32_t entries = 1) const {
    const bool registered =
        from == From::kSlot || (from == From::kInput && m_.one_sided.stage_input) ||
        (from == From::kOutput && m_.one_sided.stage_output) ||
        (from == From::kInputAndOutput && m_.one_sided.stage_input && m_.one_sided.stage_output);
    const Transfer transfer{.bytes = bytes, .entries = entries, .registered = registered};
    const std::int64_t begin_ps = host->cpu_ps;
    host->cpu_ps = host->queue.room(m_, begin_ps) +
                   (two_sided_ ? send_ps(m_, transfer) : put_ps(m_, transfer));
    if ((two_sided_ ? send_copy_ps(m_, transfer) : put_copy_ps(m_, transfer)) > 0) {
      host->cpu_ps = std::max(host->cpu_ps, begin_ps + memory_ps(m_.memory, bytes));
    }
    const bool gathers = is_gathered(m_, transfer, two_sided_);
    const Injection sent =
        inject(m_, &host->nic, &host->bus, host->cpu_ps, occupancy(m_, transfer, 0, gathers));
    if (sent.waited) host->queue.add(sent.begin_ps);
    return sent.end_ps + wire_latency_ps(m_, 0);
  }

  /// It comes in; when it can be seen. Several that come to one host: in the order of arrival.
  std::int64_t arrive(Host* host, std::int64_t arrival_ps, std::int64_t bytes) {
    overtaken_ = overtaken_ || arrival_ps < host->last_arrival_ps;
    host->last_arrival_ps = arrival_ps;
    return land(m_, &host->nic, &host->bus, arrival_ps, occupancy(m_, {.bytes = bytes}, 0, false));
  }
  /// Whether some came in another order: then what follows is not what happens.
  [[nodiscard]] bool overtaken() const { return overtaken_; }
  /// The rank waits for a message that can be seen from then on.
  void take(Host* host, std::int64_t seen_ps, std::int64_t bytes) const {
    host->cpu_ps = std::max(host->cpu_ps + expect_ps(), seen_ps) + taken_ps(bytes);
  }
  /// Both.
  void receive(Host* host, std::int64_t arrival_ps, std::int64_t bytes) {
    take(host, arrive(host, arrival_ps, bytes), bytes);
  }

  /// Of nothing: no step. Done when both the CPU and the node's memory, which nobody else uses,
  /// are; so it is with the copies of messages.
  void copy(Host* host, std::int64_t bytes, std::int32_t runs = 1) const {
    if (bytes > 0) {
      host->cpu_ps +=
          std::max(copy_ps(m_.memory, bytes, runs + 1, runs), memory_ps(m_.memory, bytes));
    }
  }
  void reduce(Host* host, std::int64_t bytes) const {
    if (bytes > 0) {
      host->cpu_ps += std::max(reduce_ps(m_.memory, bytes), memory_ps(m_.memory, bytes));
    }
  }

  /// CPU time before a message is waited for, and from when it can be seen.
  [[nodiscard]] std::int64_t expect_ps() const { return two_sided_ ? recv_post_ps(m_) : 0; }
  [[nodiscard]] std::int64_t taken_ps(std::int64_t bytes) const {
    if (!two_sided_) return wait_ps(m_);
    const bool copied = recv_copy_ps(m_, {.bytes = bytes}) > 0;
    return std::max(recv_ps(m_, {.bytes = bytes}), copied ? memory_ps(m_.memory, bytes) : 0);
  }

 private:
  [[nodiscard]] bool stages(bool wanted, std::int64_t bytes) const {
    return wanted && !two_sided_ && bytes > 0;
  }
  const Machine& m_;
  bool two_sided_;
  bool overtaken_ = false;
};

/// The largest power of two that is not more than n.
constexpr std::int32_t power_of_two_below(std::int32_t n) {
  std::int32_t power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

/// Whether a vector has blocks of whole elements of one length for so many parts.
constexpr bool divides(const ModelCall& call, std::int64_t parts) {
  return call.bytes % (parts * call.element_bytes) == 0;
}

/// Blocks of a vector, or of several, one for each of so many parts, of whole elements.
class BlockBytes {
 public:
  BlockBytes(const ModelCall& call, std::int64_t parts, std::int64_t vectors = 1)
      : each_(call.bytes / call.element_bytes * vectors / parts),
        longer_(call.bytes / call.element_bytes * vectors % parts),
        element_bytes_(call.element_bytes) {}
  /// Blocks first, ..., last-1 together.
  [[nodiscard]] std::int64_t operator()(std::int64_t first, std::int64_t last) const {
    return (each_ * (last - first) + std::min(last, longer_) - std::min(first, longer_)) *
           element_bytes_;
  }

 private:
  std::int64_t each_, longer_, element_bytes_;
};

// The closed forms (model_tree.cc, model_steps.cc, model_rounds.cc, model_circulant.cc,
// model_halving.cc, model_blocks.cc, model_direct.cc, model_prefixes.cc, model_switch.cc). Two
// ranks and, but for barriers, one byte at least. Negative: messages overtake one another.
std::int64_t barrier_dissemination_ps(const Machine& machine, const ModelCall& call);
std::int64_t barrier_degree_k_ps(const Machine& machine, const ModelCall& call);
std::int64_t barrier_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t barrier_multiway_dissemination_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_binomial_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_knomial_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_chain_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_scatter_allgather_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_degree_k_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_degree_k_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_recursive_doubling_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_reduce_scatter_allgather_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_ring_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_switch_ps(const Machine& machine, const ModelCall& call);
std::int64_t barrier_switch_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_switch_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_scatter_bruck_ps(const Machine& machine, const ModelCall& call);
std::int64_t bcast_scatter_direct_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_flat_blocks_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_circulant_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_reduce_scatter_gather_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_flat_blocks_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_recursive_multiplying_ps(const Machine& machine, const ModelCall& call);
std::int64_t allreduce_circulant_ps(const Machine& machine, const ModelCall& call);
std::int64_t allgather_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t allgather_bruck_ps(const Machine& machine, const ModelCall& call);
std::int64_t allgather_ring_ps(const Machine& machine, const ModelCall& call);
std::int64_t allgather_recursive_doubling_ps(const Machine& machine, const ModelCall& call);
std::int64_t gather_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t gather_binomial_ps(const Machine& machine, const ModelCall& call);
std::int64_t gather_knomial_ps(const Machine& machine, const ModelCall& call);
std::int64_t scatter_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t scatter_binomial_ps(const Machine& machine, const ModelCall& call);
std::int64_t scatter_knomial_ps(const Machine& machine, const ModelCall& call);
std::int64_t scan_chain_ps(const Machine& machine, const ModelCall& call);
std::int64_t scan_recursive_doubling_ps(const Machine& machine, const ModelCall& call);
std::int64_t exscan_chain_ps(const Machine& machine, const ModelCall& call);
std::int64_t exscan_recursive_doubling_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_scatter_block_pairwise_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_scatter_block_recursive_halving_ps(const Machine& machine,
                                                       const ModelCall& call);
std::int64_t reduce_scatter_block_circulant_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_scatter_block_through_all_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_scatter_block_through_root_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_scatter_block_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t alltoall_flat_ps(const Machine& machine, const ModelCall& call);
std::int64_t alltoall_pairwise_ps(const Machine& machine, const ModelCall& call);

// Of teams and blocks that are no powers of two.
std::int64_t allreduce_unequal_halves_ps(const Machine& machine, const ModelCall& call);
std::int64_t allgather_folded_doubling_ps(const Machine& machine, const ModelCall& call);
std::int64_t reduce_scatter_block_folded_halving_ps(const Machine& machine, const ModelCall& call);

/// The longest messages of those.
std::int64_t longest_of_bruck(const ModelCall& call);
std::int64_t longest_of_scatter_bruck(const ModelCall& call);

}  // namespace carillon::machine
