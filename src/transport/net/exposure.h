// SPDX-License-Identifier: Apache-2.0
//
// Long messages without copies: the message says where its bytes stand at the writer, the reader
// gets them from there into its own memory, and tells the writer, who has kept them as they were.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "transport/shm/layout.h"
#include "transport/wire.h"

namespace carillon::net {

/// What such a message holds. Plain data: it travels as bytes.
struct Exposure {
  wire::RemoteMemory at;
  std::uint64_t bytes = 0;
  std::uint64_t behind = 0;  ///< so many more stand behind: of the stream's messages after this one
};
static_assert(sizeof(Exposure) <= shm::kInlineBytes);

/// Memory of the caller's that the network may reach for the time of a collective.
class Regions {
 public:
  explicit Regions(wire::Wire& wire) : wire_(wire) {}

  /// `bytes` as the network knows them: registered with all of `extent`, in which they lie, unless
  /// they are already.
  Result<wire::Piece> find(std::span<std::byte> bytes, std::span<std::byte> extent);
  /// The same for others to get from.
  Result<wire::RemoteMemory> expose(std::span<std::byte> bytes, std::span<std::byte> extent);
  /// The network may reach none of it any more.
  void clear() { regions_.clear(); }

 private:
  struct Region {
    std::span<std::byte> memory;
    std::unique_ptr<wire::Registration> registration;
  };
  Result<const Region*> region_of(std::span<std::byte> bytes, std::span<std::byte> extent);

  wire::Wire& wire_;
  std::vector<Region> regions_;
};

}  // namespace carillon::net
