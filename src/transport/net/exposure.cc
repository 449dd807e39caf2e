// SPDX-License-Identifier: Apache-2.0
#include "transport/net/exposure.h"

#include <utility>

namespace carillon::net {

Result<const Regions::Region*> Regions::region_of(std::span<std::byte> bytes,
                                                  std::span<std::byte> extent) {
  for (std::size_t i = regions_.size(); i-- > 0;) {
    const Region& region = regions_[i];
    const bool inside = bytes.data() >= region.memory.data() &&
                        bytes.data() + bytes.size() <= region.memory.data() + region.memory.size();
    if (inside) return &region;
  }
  auto registration = wire_.register_memory(extent);
  if (!registration.ok()) return registration.status();
  regions_.push_back({extent, std::move(registration.value())});
  return &regions_.back();
}

Result<wire::Piece> Regions::find(std::span<std::byte> bytes, std::span<std::byte> extent) {
  const wire::Piece piece{bytes.data(), bytes.size(), nullptr};
  if (!wire_.capabilities().registers_local) return piece;
  const auto region = region_of(bytes, extent);
  if (!region.ok()) return region.status();
  return wire::Piece{bytes.data(), bytes.size(), region.value()->registration.get()};
}

Result<wire::RemoteMemory> Regions::expose(std::span<std::byte> bytes,
                                           std::span<std::byte> extent) {
  const auto region = region_of(bytes, extent);
  if (!region.ok()) return region.status();
  const auto offset = bytes.data() - region.value()->memory.data();
  return region.value()->registration->remote().at(static_cast<std::uint64_t>(offset));
}

}  // namespace carillon::net
