// SPDX-License-Identifier: Apache-2.0
//
// Messages of a pair that are sent from where they stand: their head lies in a small buffer, the
// rest of the list elsewhere. What one post cannot take goes before it, without an immediate: the
// last post is that of the head, and tells of all. A send is one message, which one receive
// matches: in parts a message is put, whichever way it was to go, and its receive waits for the
// next one of its line.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/log.h"
#include "transport/net/network.h"
#include "transport/net/pair.h"

namespace carillon::net {

const wire::Registration* Pair::registration_of(std::span<const std::byte> bytes) const {
  const bool inside = block_.data != nullptr && bytes.data() >= block_.data &&
                      bytes.data() + bytes.size() <= block_.data + block_.bytes;
  return inside ? block_.registration : nullptr;
}

Result<Buffer*> Pair::take_to_lend() {
  auto buffer = network_.buffers().take(kHeadBytes);
  if (buffer.ok()) buffer.value()->owner = this;
  return buffer;
}

// A part of a long message, to where it belongs there. The first part tells that all is there.
Result<bool> Pair::put_list(std::uint64_t number, std::span<const wire::Piece> list,
                            std::uint64_t offset, wire::Operation& operation) {
  const auto peer = network_.peer_of(place_.process);
  if (!peer.ok()) return peer.status();
  const auto line = static_cast<unsigned>(number % shm::kWindow);
  std::optional<std::uint32_t> immediate;
  if (offset == 0) immediate = Network::immediate(Network::Kind::kLong, number, place_.peer_id);
  return network_.wire().put(peer.value(), list, out_.at(layout().message(line, true) + offset),
                             immediate, operation);
}

// Once, and again of a longer list.
void Pair::tell_of_list(ListUse use, std::size_t entries, std::size_t parts) {
  std::size_t& told = told_entries_[static_cast<std::size_t>(use)];
  if (entries <= told) return;
  told = entries;
  const bool comes = use == ListUse::kFill;
  const std::string done = use == ListUse::kPut ? "put" : comes ? "filled" : "placed";
  log(LogLevel::kDebug,
      "a list of " + std::to_string(entries) + " entries " + (comes ? "from" : "for") +
          " process " + std::to_string(place_.process) + " of the job is " +
          (parts > 0 ? done + " in " + std::to_string(parts) + " parts"
                     : "copied: it takes more than " + std::to_string(kMostCuts) + " parts"));
}

bool Pair::post_list(const Listed& message, std::vector<wire::Piece>& list,
                     std::vector<Buffer*>* under_way) {
  if (state_ != State::kOpen) {
    open();
    return false;
  }
  const std::size_t most =
      std::min(network_.wire().capabilities().max_pieces, place_.gather_entries + 1);
  const bool is_sent = message.two_sided && list.size() <= most;
  if (is_sent && !may_send()) return false;
  if (!parts_.begun || parts_.number != message.number) {
    parts_ = {true, message.number, list.size(), kHeadBytes + message.length};
    if (list.size() > most)
      tell_of_list(ListUse::kPut, list.size() - 1, (list.size() + most - 1) / most);
  }
  while (parts_.left > 0) {
    const bool is_last = parts_.left <= most;
    // Where puts overtake each other, nothing may be told before all of it has landed.
    const auto landed = [](const Buffer* buffer) { return buffer->operation.done(); };
    if (is_last && network_.overtakes() && parts_.left < list.size() &&
        !std::all_of(under_way->begin(), under_way->end(), landed)) {
      return false;
    }
    const auto buffer = take_to_lend();
    if (!buffer.ok()) {
      fail(buffer.status());
      return false;
    }
    const std::size_t count = is_last ? parts_.left : std::min(most, parts_.left - most);
    const auto part = std::span(list).subspan(parts_.left - count, count);
    if (is_last) {
      std::memcpy(buffer.value()->data, &message.length, sizeof message.length);
      std::memcpy(buffer.value()->data + 8, &message.header, sizeof message.header);
      list[0] = {buffer.value()->data, kHeadBytes, buffer.value()->registration};
    }
    const std::uint64_t bytes = wire::total_bytes(part);
    wire::Operation& operation = buffer.value()->operation;
    const auto posted = is_sent ? send_list(message.number, part, operation)
                                : put_list(message.number, part, parts_.bytes - bytes, operation);
    if (!posted.ok()) fail(posted.status());
    if (!posted.ok() || !posted.value()) return false;
    buffer.value()->held = true;
    buffer.value()->lends = true;
    under_way->push_back(buffer.value());
    parts_.left -= count;
    parts_.bytes -= bytes;
    ++network_.counters().gathered_posts;
    network_.counters().gathered_entries += count - (is_last ? 1 : 0);
  }
  parts_.begun = false;
  sent_ = std::max(sent_, message.number + 1);
  ++network_.counters().gathered;
  return true;
}

}  // namespace carillon::net
