// SPDX-License-Identifier: Apache-2.0
#include "transport/net/fetches.h"

#include <algorithm>

#include "transport/net/network.h"

namespace carillon::net {

void Fetch::start(const wire::RemoteMemory& where, bool stays) {
  from = where;
  in_place = stays;
  taken = asked_ = landed_ = 0;
  begun_ = 0;
  total_ = wire::total_bytes(to);
}

void Fetch::stop() {
  to.clear();
  count_ = 0;
}

void Fetch::divide(const wire::Piece& whole, std::uint64_t most_bytes) {
  const std::uint64_t each = std::min(kGetBytes, most_bytes);
  to.clear();
  for (std::uint64_t done = 0; done < whole.bytes; done += each) {
    to.push_back(
        {whole.data + done, std::min<std::uint64_t>(each, whole.bytes - done), whole.registration});
  }
}

bool Fetch::has_open_gets() const {
  return std::any_of(gets_.begin(), gets_.end(),
                     [](const Get& get) { return !get.operation.done(); });
}

std::span<const wire::Piece> Fetch::next(std::size_t most_places, std::uint64_t most_bytes) const {
  const std::uint64_t most = std::min(kGetBytes, most_bytes);
  const auto rest = std::span(to).subspan(begun_);
  std::uint64_t bytes = rest.front().bytes;
  std::size_t places = 1;
  while (places < std::min(most_places, rest.size()) && bytes + rest[places].bytes <= most) {
    bytes += rest[places++].bytes;
  }
  return rest.first(places);
}

void Fetch::posted(std::span<const wire::Piece> places) {
  const std::uint64_t bytes = wire::total_bytes(places);
  gets_[(first_ + count_) % kAtOnce].bytes = bytes;
  ++count_;
  begun_ += places.size();
  asked_ += bytes;
}

void Fetch::take_oldest() {
  landed_ += gets_[first_].bytes;
  first_ = (first_ + 1) % kAtOnce;
  --count_;
}

Fetches::Fetches(Network& network) : network_(network), regions_(network.wire()) {}

Fetch& Fetches::of_strand(std::size_t strand) {
  while (by_strand_.size() <= strand) by_strand_.push_back(std::make_unique<Fetch>());
  return *by_strand_[strand];
}

Placed& Fetches::placed_of_strand(std::size_t strand) {
  while (placed_.size() <= strand) placed_.push_back(std::make_unique<Placed>());
  return *placed_[strand];
}

// Else others' messages from there would wait for these.
void Fetches::tell_rest() {
  for (const auto& placed : placed_) {
    if (placed->posted == 0 || placed->told) continue;
    static_cast<void>(placed->pair->receive_placed(placed->number, *placed));
  }
}

// What is not told of leaves a gap that nothing closes.
void Fetches::stop_awaiting() {
  for (const auto& placed : placed_) {
    for (wire::Operation& one : std::span(placed->operations).first(placed->posted)) {
      if (!one.done() && placed->told) network_.wire().stop_awaiting(one);
    }
  }
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
  for (const auto& fetch : by_strand_) fetch->stop();
  for (const auto& placed : placed_) placed->end();
  for (Block& block : landings_) {
    if (block.bytes > 0) network_.memory().release(block);
    block = {};
  }
}

std::vector<int> Fetches::under_way_from() const {
  std::vector<int> processes;
  for (const auto& fetch : by_strand_) {
    if (fetch->has_open_gets()) processes.push_back(fetch->process);
  }
  for (const auto& placed : placed_) {
    if (!placed->all_done()) processes.push_back(placed->process);
  }
  return processes;
}

}  // namespace carillon::net
