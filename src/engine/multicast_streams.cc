// SPDX-License-Identifier: Apache-2.0
#include "engine/multicast_streams.h"

#include <algorithm>
#include <string>
#include <utility>

namespace carillon {

GroupStreams::GroupStreams(std::unique_ptr<multicast::Group> group, std::vector<Rank> ranks)
    : ranks_(std::move(ranks)), group_(std::move(group)) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) ins_.push_back(std::make_unique<In>());
}

bool GroupStreams::has(Rank rank) const {
  return std::binary_search(ranks_.begin(), ranks_.end(), rank);
}

multicast::Member GroupStreams::member(Rank rank) const {
  return static_cast<multicast::Member>(std::lower_bound(ranks_.begin(), ranks_.end(), rank) -
                                        ranks_.begin());
}

std::uint64_t GroupStreams::take_in(Rank writer, std::uint64_t count) {
  In& from = in(writer);
  return std::exchange(from.taken, from.taken + count);
}

std::byte* GroupStreams::out_memory(std::uint64_t number, std::size_t bytes) {
  if (number != next_) return nullptr;
  if (memory_.size() < bytes) memory_.resize(bytes);
  return memory_.data();
}

std::byte* GroupStreams::in_memory(Rank writer, std::uint64_t number, std::size_t bytes) {
  In& from = in(writer);
  if (number != from.next) return nullptr;
  if (from.memory.size() < bytes) from.memory.resize(bytes);
  return from.memory.data();
}

Result<bool> GroupStreams::send(std::uint64_t number, std::span<const std::byte> message) {
  if (number != next_) return false;
  if (!under_way_) {
    const auto posted = group_->post(message, operation_);
    if (!posted.ok() || !posted.value()) return posted;
    under_way_ = true;
  }
  if (!operation_.done()) return false;
  if (!operation_.status().ok()) return operation_.status();
  under_way_ = false;
  ++next_;
  return true;
}

Result<bool> GroupStreams::receive(Rank writer, std::uint64_t number, std::span<std::byte> to) {
  In& from = in(writer);
  if (number != from.next) return false;
  if (!from.under_way) {
    const auto posted = group_->receive(member(writer), to, from.receiving);
    if (!posted.ok() || !posted.value()) return posted;
    from.under_way = true;
  }
  if (!from.receiving.done()) return false;
  if (!from.receiving.status().ok()) return from.receiving.status();
  if (from.receiving.received_bytes() != to.size()) {
    return differs(writer, from.receiving.received_bytes(), to.size());
  }
  from.under_way = false;
  ++from.next;
  return true;
}

Status GroupStreams::differs(Rank writer, std::uint64_t bytes, std::uint64_t expected) {
  return {Code::kMismatch,
          "rank " + std::to_string(writer) + " has multicast " + std::to_string(bytes) +
              " bytes where " + std::to_string(expected) +
              " are expected; do all ranks call the collective with the same sizes?"};
}

std::int64_t GroupStreams::longest_message(std::int32_t window) const {
  const multicast::Config& config = group_->config();
  return static_cast<std::int64_t>(config.window) / window * config.payload_bytes;
}

}  // namespace carillon
