// SPDX-License-Identifier: Apache-2.0
//
// CopyingMemory: a Memory that holds bytes, of whatever kind, and whose messages are copies of
// them.
#pragma once

#include <span>
#include <vector>

#include "schedule/machine.h"

namespace carillon {

template <typename Byte>
class CopyingMemory : public Memory {
 public:
  Status copy(Site site, std::span<const Piece> dst, std::span<const Piece> src) final {
    scatter(site.rank, dst, gather(site.rank, src));
    return {};
  }
  Status capture(Site site, std::span<const Piece> src, Payload* payload) final {
    if (free_.empty()) {
      free_.push_back(static_cast<Payload>(payloads_.size()));
      payloads_.emplace_back();
    }
    *payload = free_.back();
    free_.pop_back();
    payloads_[*payload] = gather(site.rank, src);
    return {};
  }
  Status arrive(Site /*site*/, Payload /*payload*/) final { return {}; }
  Status deliver(Site site, std::span<const Piece> dst, Payload payload) final {
    scatter(site.rank, dst, payloads_[payload]);
    return {};
  }
  void discard(Payload payload) final {
    payloads_[payload] = {};
    free_.push_back(payload);
  }

 protected:
  /// The pieces' bytes, one after another; and back.
  virtual std::vector<Byte> gather(Rank rank, std::span<const Piece> src) = 0;
  virtual void scatter(Rank rank, std::span<const Piece> dst, const std::vector<Byte>& bytes) = 0;

  std::vector<Byte>& payload(Payload payload) { return payloads_[payload]; }

 private:
  std::vector<std::vector<Byte>> payloads_;
  std::vector<Payload> free_;
};

}  // namespace carillon
