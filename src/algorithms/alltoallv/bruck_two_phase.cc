// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.bruck_two_phase: Bruck's exchange for short blocks of any lengths, none padded. In the
// first phase the lengths take the way that the blocks take afterwards, so that every rank knows
// what each message of the second one holds. With them go the lengths of the longest blocks: if one
// is long, all ranks know it, and the second phase is the pairwise exchange.
//
// Source: Fan, Gilray, Pascucci, Huang, Micinski, Kumar, "Optimizing the Bruck algorithm for
// non-uniform all-to-all communication", HPDC 2022 (two-phase Bruck). There each step sends its
// lengths before its blocks and the longest block is found by an allreduce; here all lengths go
// first, as a schedule's lengths must be known when it is made.
//
// 5 ranks, radix 2; what rank 0 has, of either phase (02: from rank 0 to rank 2):
//
//   start    01 02 03 04         longest of 0
//   step 0   40 42               and of 4             indices 1 3 come from one rank below
//   step 1   30 20               and of 3 2           indices 2 3, of the start and of step 0
//   step 2   10                  and of 1             index 4 comes from four ranks below
//
// A block is sent from the input the first time, then from where the message lay that brought it;
// the last message that brings it leaves it in the output.
//
// Cost: 2 ceil(log2 P) alpha + (log2 P / 2) (bytes sent or received + 8 P) beta. With long blocks:
// ceil(log2 P) alpha and the cost of alltoallv.pairwise.
// Restrictions: a radix is at most P. Parameters: k (radix). For short blocks between nodes.
#include <numeric>

#include "algorithms/catalogue.h"
#include "algorithms/common/bruck_lengths.h"
#include "algorithms/common/told_lengths.h"

namespace carillon {
namespace {

void emit_lengths(const Call& call, const BruckLengths& lengths, Builder& b) {
  const std::int64_t row_bytes = call.shared.ranks * kNumberBytes;
  const Range all = b.allocate_scratch(lengths.numbers() * kNumberBytes);
  const Range row = b.allocate_scratch(row_bytes);
  const auto numbers = [&](std::int64_t first, std::int64_t count) {
    return b.scratch(all.sub({first * kNumberBytes, count * kNumberBytes}));
  };
  b.phase("lengths");
  b.copy(b.scratch(row), b.counts({0, row_bytes}));
  b.copy(numbers(0, 1), b.counts({row_bytes, kNumberBytes}));
  exchange_by_bruck(
      call,
      [&](const BruckStep& step, Rank reader) {
        BufferList list = bruck_list(step, [&](Rank index) {
          const std::int64_t known = lengths.before(step, index);
          if (known >= 0) return numbers(known, 1);
          const std::int64_t to = wrap(call.rank + index, call.shared.ranks);
          return b.scratch(row.sub({to * kNumberBytes, kNumberBytes}));
        });
        list.add(numbers(0, lengths.longest_known(step)));
        b.send(reader, list);
      },
      [&](const BruckStep& step, Rank writer) {
        BufferList list =
            bruck_list(step, [&](Rank index) { return numbers(lengths.after(step, index), 1); });
        list.add(numbers(step.distance(), lengths.longest_known(step)));
        b.recv(writer, list);
      });
  b.next_stage(all);
}

class Blocks {
 public:
  Blocks(const Call& call, const BruckLengths& lengths, Builder& b)
      : call_(call), lengths_(lengths), b_(b), places_(call.learned.size()) {
    const auto bytes = call.learned.subspan(static_cast<std::size_t>(call.shared.ranks));
    room_ = b.allocate_scratch(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  }

  void emit() {
    b_.phase("blocks");
    b_.copy(b_.output_of(call_.rank), b_.input_of(call_.rank));
    exchange_by_bruck(
        call_,
        [&](const BruckStep& step, Rank reader) {
          const BufferList list = bruck_list(step, [&](Rank index) { return source(step, index); });
          if (list.length() > 0) b_.send(reader, list);
        },
        [&](const BruckStep& step, Rank writer) {
          const BufferList list = bruck_list(step, [&](Rank index) { return target(step, index); });
          if (list.length() > 0) b_.recv(writer, list);
        });
  }

 private:
  [[nodiscard]] Buffer source(const BruckStep& step, Rank index) const {
    const std::int64_t known = lengths_.before(step, index);
    if (known >= 0) return places_[static_cast<std::size_t>(known)];
    const auto to = static_cast<std::size_t>(wrap(call_.rank + index, call_.shared.ranks));
    const Tables& tables = call_.local.tables;
    return b_.input({tables.send_offsets[to], tables.send_bytes[to]});
  }

  Buffer target(const BruckStep& step, Rank index) {
    const auto number = static_cast<std::size_t>(lengths_.after(step, index));
    const std::int64_t bytes = call_.learned[number];
    if (index >= step.weight * step.radix) {  // it goes on
      used_ += bytes;
      return places_[number] = b_.scratch(room_.sub({used_ - bytes, bytes}));
    }
    const Rank from = wrap(call_.rank - index, call_.shared.ranks);
    check_told(call_, b_, from, bytes);
    return b_.output({call_.local.tables.recv_offsets[static_cast<std::size_t>(from)], bytes});
  }

  const Call& call_;
  const BruckLengths& lengths_;
  Builder& b_;
  std::vector<Buffer> places_;  // of what goes on, by the number of its length
  Range room_;                  // which is in here, up to used_
  std::int64_t used_ = 0;
};

}  // namespace

void emit_alltoallv_bruck_two_phase(const Call& call, Builder& b) {
  const BruckLengths lengths(call);
  if (!lengths.numbers_fit()) return emit_alltoallv_pairwise(call, b);
  if (call.stage == 0) return emit_lengths(call, lengths, b);
  const auto longest = call.learned.first(static_cast<std::size_t>(call.shared.ranks));
  if (*std::max_element(longest.begin(), longest.end()) > lengths.most_block_bytes()) {
    return emit_alltoallv_pairwise(call, b);
  }
  Blocks(call, lengths, b).emit();
}

}  // namespace carillon
