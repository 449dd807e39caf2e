// SPDX-License-Identifier: Apache-2.0
#include "engine/windows.h"

namespace carillon {

std::uint32_t Windows::reserve_keys(std::uint32_t parts) {
  if (parts > kKeys - next_key_) return 0;
  const std::uint32_t first = next_key_;
  next_key_ += parts;
  return first;
}

void Windows::add(const SharedWindow& window, std::span<const WindowPart> parts) {
  std::uint32_t key = window.first_key;
  for (const WindowPart& part : parts) parts_[key++] = part;
}

void Windows::open(const SharedWindow& window) {
  for (std::uint32_t i = 0; i < window.parts; ++i) {
    const WindowPart one = part(window.first_key + i);
    if (one.bytes == 0) continue;
    open_.insert_or_assign(one.base, Open{window.first_key + i, window.stands});
  }
}

void Windows::remove(const SharedWindow& window) {
  const auto is_of = [&](std::uint32_t key) { return key - window.first_key < window.parts; };
  std::erase_if(open_, [&](const auto& one) { return is_of(one.second.key); });
  std::erase_if(parts_, [&](const auto& one) { return is_of(one.first); });
}

WindowPart Windows::part(std::uint32_t key) const {
  const auto found = parts_.find(key);
  return found == parts_.end() ? WindowPart() : found->second;
}

std::optional<std::uint64_t> Windows::reference_to(const std::byte* memory,
                                                   std::size_t bytes) const {
  if (open_.empty()) [[likely]]
    return std::nullopt;
  auto after = open_.upper_bound(memory);
  if (after == open_.begin()) return std::nullopt;
  const Open& open = (--after)->second;
  // Partner: who takes the memory away, which is this process.
  if (!open.stands->load(std::memory_order_acquire)) return std::nullopt;
  const WindowPart one = part(open.key);
  const auto place = static_cast<std::uint64_t>(memory - one.base);
  if (place > one.bytes || bytes > one.bytes - place) return std::nullopt;
  return kMark | std::uint64_t{open.key} << kPlaceBits | place;
}

const std::byte* Windows::find(std::uint64_t reference, std::uint64_t bytes) const {
  const std::uint64_t place = reference & ((UINT64_C(1) << kPlaceBits) - 1);
  const WindowPart one = part(static_cast<std::uint32_t>((reference & ~kMark) >> kPlaceBits));
  if (place > one.bytes || bytes > one.bytes - place) return nullptr;
  return one.base + place;
}

}  // namespace carillon
