// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a message whose bytes do not lie together (Params::memory): they are copied into
// one range that is then put (pack), or the put gets them as a list (gather), or it depends on what
// costs less (selective): of a list that one request does not take, several requests or the copy.
// Only the writer decides: the message is the same.
//
// Within a node a put writes a list into the slot as it does one range, and so it does where the
// team puts no lists as they are: a copy before that would be one more. There, selective gathers.
#pragma once

#include <array>

#include "algorithms/common/segments.h"

namespace carillon {

class Lists {
 public:
  enum class Memory : std::uint8_t { kPack, kGather, kSelective };

  /// For puts of at most `longest` bytes.
  Lists(const Call& call, Builder& b, std::int64_t longest)
      : call_(call), b_(b), memory_(memory_of(call.params.memory)) {
    const Limits& limits = call.limits;
    const bool chooses = memory_ == Memory::kSelective && limits.gather_entries > 1 &&
                         !limits.one_node() && longest > limits.inline_bytes;
    if (memory_ != Memory::kPack && !chooses) return;
    for (Range& each : packed_) each = b.allocate_scratch(longest);
  }

  /// Pieces as copies and lists take them.
  [[nodiscard]] Pieces pieces() const {
    return Pieces(call_.params.copy_blocks ? Pieces::Touching::kApart : Pieces::Touching::kOne);
  }

  void put(Rank to, const Pieces& pieces, Range s) {
    const BufferList list = pieces.slice(s);
    if (!packs(to, list)) {
      b_.put(to, list);
      return;
    }
    // Of two puts in a row, neither overwrites what the NIC may still read of the other.
    turn_ = 1 - turn_;
    const Buffer packed = b_.scratch({packed_[turn_].offset, list.length()});
    copy(packed, list);
    b_.put(to, packed);
  }

  /// The message's bytes to where the pieces are. By send and receive a message has a list at that
  /// end, too, unless it is to be unpacked or has more entries than are put as they are.
  void take(Rank from, const Pieces& pieces, Range s) {
    const BufferList list = pieces.slice(s);
    if (call_.params.two_sided && scatters(from, list)) {
      b_.recv(from, list);
      return;
    }
    const Message m = b_.wait(from, s.length);
    copy(list, b_.slot(m, Range{0, s.length}));
  }

  void copy(const BufferList& dst, const BufferList& src) {
    if (call_.params.copy_blocks) {
      b_.copy_each(dst, src);
    } else {
      b_.copy(dst, src);
    }
  }

 private:
  static Memory memory_of(std::string_view name) {
    if (name == "pack") return Memory::kPack;
    return name == "gather" ? Memory::kGather : Memory::kSelective;
  }

  [[nodiscard]] bool packs(Rank to, const BufferList& list) const {
    if (memory_ != Memory::kSelective) return memory_ == Memory::kPack;
    const Limits& limits = call_.limits;
    const std::int64_t bytes = list.length();
    if (limits.share_node(call_.rank, to) || limits.gather_entries <= 1) return false;
    if (bytes <= limits.inline_bytes) return false;
    const ListCosts& costs = limits.list_costs;
    const std::int64_t runs = list.runs();
    const std::int64_t requests = limits.requests(runs);
    if (requests > 1 && costs.part_ps == 0) return true;
    // The ranks of a node copy side by side, but their NIC takes one entry and request after
    // another.
    const std::int64_t sharers = limits.node_size(call_.rank, call_.shared.ranks);
    const auto copied =
        call_.params.copy_blocks ? static_cast<std::int64_t>(list.items().size()) : runs;
    const std::int64_t gather_ps =
        sharers * ((runs - requests) * costs.entry_ps + (requests - 1) * costs.part_ps);
    return gather_ps > costs.copy_ps + copied * costs.run_ps + bytes * costs.byte_fs / 1000;
  }

  [[nodiscard]] bool scatters(Rank from, const BufferList& list) const {
    if (memory_ != Memory::kSelective) return memory_ == Memory::kGather;
    const Limits& limits = call_.limits;
    return limits.share_node(call_.rank, from) || limits.gather_entries <= 1 ||
           list.runs() <= limits.gather_entries;
  }

  const Call& call_;
  Builder& b_;
  Memory memory_;
  std::array<Range, 2> packed_{};
  std::size_t turn_ = 0;
};

}  // namespace carillon
