// SPDX-License-Identifier: Apache-2.0
//
// How a run writes a message to another node: as the place of its bytes, as a list of where they
// stand, or copied together.
#include <cstring>
#include <string>

#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

template <typename Clock>
bool Run::write_remote(const Instruction& in, Strand& strand, shm::Peer& peer, const Part& part,
                       Clock& clock) {
  if (!team_->endpoint().pair_line_free(peer, part.number)) return false;
  net::Pair& pair = *peer.remote;
  const bool two_sided = sends(in);
  if (two_sided && part.length >= team_->engine().place_from_bytes()) {
    return write_placed(in, strand, peer, part, clock);
  }
  const auto exposure = two_sided ? std::nullopt : exposure_of(in, strand, part);
  if (in.gather != 0 && !exposure) {
    net::GatheredPut* const put = gathered(in, strand, part);
    if (put != nullptr && reads_in_place_ && !sources_stand()) return false;
    if (put != nullptr && !takes_lists(plan_->uses[in.use].peer)) return false;
    if (put != nullptr) return write_list(in, peer, part, *put);
  }
  const auto bytes = exposure ? sizeof *exposure : static_cast<std::size_t>(part.length);
  std::byte* const to = pair.prepare(part.number, bytes, two_sided);
  net::Buffer* buffer = nullptr;
  if (to != nullptr) {
    if (exposure) {
      std::memcpy(to, &*exposure, sizeof *exposure);
    } else if (!pair.is_filled()) {
      pack(to, in, strand, part, clock);
      copied_bytes_ += static_cast<std::uint64_t>(part.length);
      sent_copied_bytes_ += static_cast<std::uint64_t>(part.length);
    }
    if (reads_in_place_ && !sources_stand()) return false;
    const std::uint64_t header = header_of(part.number, exposure ? shm::kExposed : std::uint8_t{0});
    if (two_sided) {
      pair.send(part.number, header, &buffer);
    } else {
      pair.post(part.number, header, &buffer);
    }
  }
  if (buffer == nullptr) return refused(in, pair);
  if (exposure) references_.push_back({in.use, part.number});
  if (team_->engine().network()->puts_must_end()) sent_.push_back(buffer);
  note_sent(peer, part.number);
  count_sent(part, exposure.has_value());
  return true;
}

template bool Run::write_remote(const Instruction&, Strand&, shm::Peer&, const Part&, NoClock&);
template bool Run::write_remote(const Instruction&, Strand&, shm::Peer&, const Part&, LapClock&);

std::uint64_t Run::header_of(std::uint64_t number, std::uint8_t kind) const {
  return shm::make_header(static_cast<std::uint32_t>(number), team_->endpoint().lag(collective_),
                          kind, signature());
}

// No room now, or the pair is broken.
bool Run::refused(const Instruction& in, const net::Pair& pair) {
  if (!pair.status().ok()) fail_unreachable(plan_->uses[in.use].peer, pair.status());
  return false;
}

void Run::note_sent(shm::Peer& peer, std::uint64_t number) {
  if (team_->only_in_flight()) peer.remote->told_in_passing();
  shm::Endpoint::use_pair_line(peer, number, collective_);
}

// As within the node, what fits in a line is nobody's.
void Run::count_sent(const Part& part, bool in_place) {
  if (part.length <= static_cast<std::int64_t>(shm::kInlineBytes)) return;
  crl_traffic_t& traffic = team_->engine().traffic();
  (in_place ? traffic.sent_in_place_bytes : traffic.sent_copied_bytes) +=
      static_cast<std::uint64_t>(part.length);
}

void Run::begin_measuring() {
  ++breakdown_->runs;
  lap_ns_ = LapClock::now_ns();
}

}  // namespace carillon
