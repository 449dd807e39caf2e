// SPDX-License-Identifier: Apache-2.0
#include "transport/net/fetches.h"

#include "transport/net/network.h"

namespace carillon::net {
Fetches::Fetches(Network& network) : network_(network), regions_(network.wire()) {}

Fetch& Fetches::of_strand(std::size_t strand) {
  while (by_strand_.size() <= strand) by_strand_.push_back(std::make_unique<Fetch>());
  return *by_strand_[strand];
}

Result<wire::Piece> Fetches::landing(std::size_t place, std::uint64_t bytes) {
  if (landings_.size() <= place) landings_.resize(place + 1);
  Block& block = landings_[place];
  if (block.bytes < bytes) {
    if (block.bytes > 0) network_.memory().release(block);
    block = {};
    auto memory = network_.memory().allocate(bytes);
    if (!memory.ok()) return memory.status();
    block = memory.value();
  }
  return block.piece(0, bytes);
}

void Fetches::finish() {
  regions_.clear();
  for (const auto& fetch : by_strand_) {
    fetch->to.clear();
    fetch->start(false);
  }
  for (Block& block : landings_) {
    if (block.bytes > 0) network_.memory().release(block);
    block = {};
  }
}

std::vector<int> Fetches::under_way_from() const {
  std::vector<int> processes;
  for (const auto& fetch : by_strand_) {
    if (!fetch->operation.done()) processes.push_back(fetch->process);
  }
  return processes;
}

}  // namespace carillon::net
