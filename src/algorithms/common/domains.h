// SPDX-License-Identifier: Apache-2.0
//
// What one rank, the writer, writes for all others of its node, by NUMA domains: once, and where
// one rank of another domain, its *head*, has read it, that writes it once more for its own domain.
// So the bytes cross into each domain once, however many ranks read them there.
//
//   7 ranks in domains 3, 2, 2; writer 1        1 --> 0 2 3 5
//                                                         3 --> 4
//                                                           5 --> 6
//
// The writer writes no more than for ranks that all read its message. All do wait for it, since
// what is written for all is released by all, but those whom a head tells do not read it. A domain
// that its head's copy costs more than it saves (Limits::domain_costs) has no head.
//
// Where the ranks cannot all read one message, as of several nodes, the writer puts it to each
// head, and every domain has one.
#pragma once

#include "algorithms/common/others.h"

namespace carillon {

class Domains {
 public:
  /// Of a call that is being emitted, the team's or of the group that `b` has entered, in which the
  /// writer writes so many bytes, all together.
  Domains(const Call& call, Builder& b, Rank writer, std::int64_t bytes)
      : call_(call), b_(b), writer_(writer), bytes_(bytes) {
    const Nodes* const parts =
        call.limits.domains ? call.limits.domains.get() : call.limits.nodes.get();
    if (parts != nullptr && parts->count() > 1 && parts->count() < call.shared.ranks)
      parts_ = parts;
  }

  /// At the writer.
  void put(const Buffer& data) const {
    if (is_for_all()) {
      if (call_.shared.ranks > 1) put_others(call_, b_, data);
      return;
    }
    for (std::int32_t part = 0; part < parts_->count(); ++part) {
      if (head(part) != writer_) b_.put(head(part), data);
    }
    b_.put_domain(data);
  }
  /// At every other rank: until what was put is there.
  [[nodiscard]] Message wait(std::int64_t bytes) const {
    if (!has_head() || is_head()) {
      return is_for_all() ? wait_other(call_, b_, writer_, bytes) : b_.wait(writer_, bytes);
    }
    const Message told = b_.wait_domain(head(own_part()), bytes);
    if (is_for_all()) wait_other(call_, b_, writer_, bytes);  // it is there; released unread
    return told;
  }
  /// At every other rank: a head tells its domain; `data` is what came.
  void pass_on(const Buffer& data) const {
    if (has_head() && is_head()) b_.put_domain(data);
  }

 private:
  [[nodiscard]] bool is_for_all() const { return parts_ == nullptr || b_.reaches_all(); }
  [[nodiscard]] std::int32_t own_part() const { return parts_->node_of(call_.rank); }
  [[nodiscard]] Rank head(std::int32_t part) const {
    return part == parts_->node_of(writer_) ? writer_ : parts_->members(part).front();
  }
  [[nodiscard]] bool is_head() const { return head(own_part()) == call_.rank; }
  // Whether somebody else than the writer's message to all tells this rank's domain.
  [[nodiscard]] bool has_head() const {
    if (parts_ == nullptr) return false;
    if (!b_.reaches_all()) return true;
    const auto ranks = static_cast<Rank>(parts_->members(own_part()).size());
    return own_part() != parts_->node_of(writer_) &&
           call_.limits.domain_costs.pay_head(ranks, bytes_);
  }

  const Call& call_;
  Builder& b_;
  Rank writer_;
  std::int64_t bytes_;
  const Nodes* parts_ = nullptr;  // null: all read what the writer has written
};

}  // namespace carillon
