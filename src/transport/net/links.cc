// SPDX-License-Identifier: Apache-2.0
#include "transport/net/links.h"

#include <algorithm>

namespace carillon::net {

Links::~Links() { pairs_.clear(); }

void Links::add(int rank, PairPlace place, shm::Endpoint& endpoint) {
  place.id = first_id_ + static_cast<std::uint32_t>(rank);
  auto& pair = pairs_[static_cast<std::size_t>(rank)];
  pair = std::make_unique<Pair>(network_, place);
  pair->attach(endpoint.peer(rank));
  due_.reserve(pairs_.size());  // a call allocates nothing
}

void Links::tell_due(std::uint64_t done, bool covers_all) {
  for (Pair* const pair : due_) pair->tell(done, 0, covers_all);
  if (covers_all) due_.clear();
}

void Links::tell_all(std::uint64_t done, std::uint64_t call) {
  for (const auto& pair : pairs_) {
    if (pair && pair->is_used()) pair->tell(done, call, false);
  }
}

void Links::give_up(std::uint64_t done) {
  for (const auto& pair : pairs_) {
    if (pair) pair->give_up(done);
  }
}

void Links::withdraw_announced() {
  for (const auto& pair : pairs_) {
    if (pair) pair->withdraw_announced();
  }
}

bool Links::unbroken() const {
  return std::all_of(pairs_.begin(), pairs_.end(),
                     [](const auto& pair) { return !pair || pair->status().ok(); });
}

bool Links::owns(const Pair* pair) const {
  return std::any_of(pairs_.begin(), pairs_.end(),
                     [&](const auto& own) { return own.get() == pair; });
}

bool Links::close(std::uint64_t done) {
  bool closed = true;
  for (const auto& pair : pairs_) {
    if (pair && !pair->close(done)) closed = false;
  }
  return closed;
}

}  // namespace carillon::net
