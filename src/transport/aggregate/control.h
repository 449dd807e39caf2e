// SPDX-License-Identifier: Apache-2.0
//
// What a host asks of switches: to take a job, to build and to free trees. As Stream: no socket, no
// clock; datagrams and the time are given to it, and nothing blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "switch/protocol/packet.h"

namespace carillon::aggregate {

struct ControlTimes {
  std::int64_t retry_ns = 50'000'000;
  /// Divided by retry_ns: how often something is asked before that is given up.
  std::int64_t give_up_ns = 5'000'000'000;
};

struct Request {
  Endpoint to;
  Header header;  ///< kind, job and group
  std::vector<std::byte> payload;
};

/// Requests that are made at the same time, each until it is answered.
class Requests {
 public:
  /// `first_id`: of so many requests, never used before with this key, in any process.
  Requests(const SipKey& key, std::uint32_t first_id, const ControlTimes& times)
      : key_(key), next_id_(first_id), times_(times) {}

  void start(std::vector<Request> requests, std::int64_t now_ns);
  void progress(std::int64_t now_ns, Output& output);
  /// Whether the datagram is the answer to one of them.
  bool take(const Endpoint& from, std::span<const std::byte> datagram);

  /// All are answered, or one has failed: then status() says why.
  [[nodiscard]] bool done() const { return unanswered_ == 0 || !status_.ok(); }
  [[nodiscard]] const Status& status() const { return status_; }
  /// Of the first request, once it is answered.
  [[nodiscard]] const Header& first_answer() const { return first_answer_; }
  /// What all switches that have told their limits take: the least of each.
  [[nodiscard]] const Limits& least_limits() const { return least_limits_; }

 private:
  struct Asked {
    Request request;
    std::vector<std::byte> datagram;
    std::int64_t due_ns = 0;
    std::int64_t times = 0;  // it was sent
    bool answered = false;
  };
  void note(const Limits& limits);

  SipKey key_;
  std::uint32_t next_id_;
  ControlTimes times_;
  std::vector<Asked> asked_;
  std::size_t unanswered_ = 0;
  Header first_answer_;
  Limits least_limits_;
  Status status_;
};

/// To install and to remove a job; with the administrator's key.
Request install_job(const Endpoint& at, std::uint32_t job, const Job& quota);
Request remove_job(const Endpoint& at, std::uint32_t job, std::uint64_t nonce);
Request ask_limits(const Endpoint& at, std::uint32_t job);

/// A switch of a tree, and what it has at its ports.
struct TreeSwitch {
  Endpoint at;
  std::optional<std::size_t> parent;  ///< of the switches before it; none: the root, the first one
  std::vector<Endpoint> children;     ///< hosts and switches; nowhere: absent
};

struct TreePlan {
  std::vector<TreeSwitch> switches;
  std::uint16_t window = 0;
  std::uint16_t operand_bytes = 0;
};

/// Whether it is a tree: the root first, each switch once at a port of its parent.
Status check_plan(const TreePlan& plan);

/// Builds a tree on all its switches, or on none, and frees it.
class TreeControl {
 public:
  TreeControl(std::uint32_t job, const SipKey& key, std::uint32_t first_id,
              const ControlTimes& times)
      : job_(job), requests_(key, first_id, times) {}

  /// The plan has been checked.
  void build(TreePlan plan, std::int64_t now_ns);
  /// Of what has been built.
  void free(std::int64_t now_ns);
  void progress(std::int64_t now_ns, Output& output);
  bool take(const Endpoint& from, std::span<const std::byte> datagram) {
    return requests_.take(from, datagram);
  }

  [[nodiscard]] bool done() const { return step_ == Step::kDone; }
  /// Of the last thing done.
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] std::uint32_t group() const { return group_; }

 private:
  enum class Step : std::uint8_t { kRoot, kOthers, kFree, kDone };
  [[nodiscard]] Request build_request(std::size_t index) const;

  std::uint32_t job_;
  Requests requests_;
  TreePlan plan_;
  Step step_ = Step::kDone;
  std::uint32_t group_ = 0;
  Status status_;
};

}  // namespace carillon::aggregate
