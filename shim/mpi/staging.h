// SPDX-License-Identifier: Apache-2.0
//
// Buffers in memory of devices: a collective that carillon takes reads and writes copies of them in
// the host's memory. A call that is left to the host MPI gets the program's own buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device_runtime.h"
#include "room.h"
#include "run.h"

namespace carillon::shim {

/// One side of a call, of which bytes of this rank's lie in a device's memory, and copies of them.
/// Blocks with types of their own may each be anywhere; others lie where the first one does.
class StagedSide {
 public:
  /// Finds them; false: there are none, or the arguments are wrong.
  [[nodiscard]] bool look_at(Collective collective, Communicator& communicator, const Call& call,
                             bool output);
  /// Makes room for the copies, without bytes as yet, and has the call use it. This must outlive
  /// the call then. False: no memory.
  [[nodiscard]] bool make_copies(Call* call, bool output);
  /// False: the runtime refuses.
  [[nodiscard]] bool bring() const;
  [[nodiscard]] bool give_back() const;
  /// What lies between its bytes is written, too: only the host knows them.
  [[nodiscard]] bool whole() const;
  [[nodiscard]] bool exists() const { return !areas_.empty(); }

 private:
  struct Part {
    Layout layout;
    std::int64_t offset = 0;
  };
  struct Area {  // that has one copy
    const DeviceRuntime* runtime = nullptr;
    std::size_t block = 0;  // the first one in it
    std::vector<Part> parts;
    bool whole = false;
    std::int64_t begin = INT64_MAX, end = INT64_MIN;  // of its bytes, and of what lies between
    std::byte* copy = nullptr;                        // of what lies at `begin`
  };
  [[nodiscard]] static bool add(Area& area, const TypeInfo& type, std::int64_t elements,
                                std::int64_t offset);
  [[nodiscard]] std::uintptr_t address(std::int64_t offset) const {
    return base_ + static_cast<std::uintptr_t>(offset);
  }
  [[nodiscard]] bool bring(const Area& area) const;
  [[nodiscard]] bool give_back(const Area& area) const;

  std::uintptr_t base_ = 0;  // what offsets are counted from
  std::vector<Area> areas_;
  std::vector<std::int64_t> offsets_;  // of blocks with types of their own: where the call has them
  Room room_;
};

/// Both sides of a call.
struct Staging {
  StagedSide in, out;
  bool brings_out = false;  // it has input, or would lose bytes

  [[nodiscard]] bool bring() const {
    return (!in.exists() || in.bring()) && (!out.exists() || !brings_out || out.bring());
  }
};

/// The call on copies. `staging` gets what they need, as long as the call lasts; null: nothing is
/// in a device's memory. False: no memory.
[[nodiscard]] bool stage(Collective collective, Communicator& communicator, Call* call,
                         std::shared_ptr<Staging>* staging);
/// run(), for buffers wherever they are.
template <Collective kCollective>
[[gnu::noinline]] Outcome run_staged(Communicator& communicator, const Call& call, Flight* flight) {
  Call on_host = call;
  std::shared_ptr<Staging> staging;
  if (communicator.team != nullptr && !stage(kCollective, communicator, &on_host, &staging)) {
    return no_memory(communicator);
  }
  if (staging == nullptr) return run<kCollective>(communicator, call, flight);
  const bool now = flight == nullptr || !flight->persistent;
  if (now && !staging->bring()) return cannot_pack(communicator, MPI_ERR_BUFFER);
  const Outcome outcome = run<kCollective>(communicator, on_host, flight);
  if (outcome.left != Reason::kNone || outcome.code != MPI_SUCCESS) return outcome;
  if (flight == nullptr) {
    const int status = give_back(*staging);
    return status == MPI_SUCCESS ? outcome : cannot_unpack(communicator, status);
  }
  flight->staging = staging;
  if (!now) {
    flight->begin = [&communicator, staging = staging.get(), begin = std::move(flight->begin)] {
      if (!staging->bring()) return cannot_pack(communicator, MPI_ERR_BUFFER);
      return begin();
    };
  }
  return outcome;
}

template <Collective kCollective>
inline Outcome run_anywhere(Communicator& communicator, const Call& call, Flight* flight) {
  if (may_have_devices()) [[unlikely]]
    return run_staged<kCollective>(communicator, call, flight);
  return run<kCollective>(communicator, call, flight);
}

}  // namespace carillon::shim
