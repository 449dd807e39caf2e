// SPDX-License-Identifier: Apache-2.0
//
// Closed forms of a scatter or reduce-scatter and an allgather by direct messages: blocks, the
// first ones of which are an element longer, and some of which are empty, so that ranks do not all
// do the same. They are computed rank by rank. Messages are short, or those of two ranks: else a
// strand of its own puts them.
#include "machine/model_team.h"

namespace carillon::machine {
namespace {

// Both flat_blocks: everybody sends each rank its piece, which reduces it and sends the result on.
class FlatBlocks {
 public:
  FlatBlocks(const Machine& machine, const ModelCall& call)
      : team_(machine, call), ranks_(call.ranks), bytes_(call.bytes), block_(call, call.ranks) {}

  std::int64_t allreduce_ps() {
    return team_.last_ps([&] {
      team_.begin(bytes_);
      for (std::int64_t rank = 0; rank < ranks_; ++rank) send_pieces(rank, rank + 1);
      for (std::int64_t rank = 0; rank < ranks_; ++rank) reduce_own(rank);
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        for (std::int64_t step = 1; step < ranks_ && piece(rank) > 0; ++step) {
          team_.send(rank, (rank + step) % ranks_, piece(rank), From::kOutput);
        }
      }
      for (std::int64_t rank = 0; rank < ranks_; ++rank) {
        for (std::int64_t step = 1; step < ranks_; ++step) {
          collect(rank, (rank + ranks_ - step) % ranks_);
        }
      }
      team_.end(bytes_);
    });
  }

  // To rank 0. All begin with its piece, so that it reduces first and has the most time to collect.
  std::int64_t reduce_ps() {
    return team_.last_ps([&] {
      team_.begin(bytes_);
      for (std::int64_t rank = 0; rank < ranks_; ++rank) send_pieces(rank, 0);
      for (std::int64_t rank = 0; rank < ranks_; ++rank) reduce_own(rank);
      for (std::int64_t rank = 1; rank < ranks_ && piece(rank) > 0; ++rank) {
        team_.send(rank, 0, piece(rank), From::kScratch);
      }
      for (std::int64_t rank = 1; rank < ranks_; ++rank) collect(0, rank);
      team_.way().end(team_.host(0), bytes_);
    });
  }

 private:
  [[nodiscard]] std::int64_t piece(std::int64_t owner) const { return block_(owner, owner + 1); }
  void send_pieces(std::int64_t rank, std::int64_t first) {
    for (std::int64_t step = 0; step < ranks_; ++step) {
      const std::int64_t owner = (first + step) % ranks_;
      if (owner != rank && piece(owner) > 0) team_.send(rank, owner, piece(owner), From::kInput);
    }
  }
  // In the order of the ranks.
  void reduce_own(std::int64_t rank) {
    for (std::int64_t from = 0; from < ranks_ && piece(rank) > 0; ++from) {
      if (from != rank) team_.take(rank, from);
      if (from > 0) team_.way().reduce(team_.host(rank), piece(rank));
    }
  }
  void collect(std::int64_t rank, std::int64_t owner) {
    if (piece(owner) == 0) return;
    team_.take(rank, owner);
    team_.way().copy(team_.host(rank), piece(owner));
  }

  Team team_;
  std::int64_t ranks_, bytes_;
  BlockBytes block_;
};

}  // namespace

std::int64_t allreduce_flat_blocks_ps(const Machine& machine, const ModelCall& call) {
  return FlatBlocks(machine, call).allreduce_ps();
}

std::int64_t reduce_flat_blocks_ps(const Machine& machine, const ModelCall& call) {
  return FlatBlocks(machine, call).reduce_ps();
}

// Rank 0 sends all others their blocks; each passes its own on, and then takes the others'.
std::int64_t bcast_scatter_direct_ps(const Machine& machine, const ModelCall& call) {
  const std::int64_t owners = call.ranks - 1;
  const BlockBytes blocks(call, owners);
  const auto block = [&](std::int64_t v) { return blocks(v - 1, v); };
  Team team(machine, call);
  const auto take = [&](std::int64_t v, std::int64_t from, std::int64_t owner) {
    if (block(owner) > 0) team.take(v, from);
  };
  return team.last_ps([&] {
    team.way().begin(team.host(0), call.bytes);
    for (std::int64_t v = 1; v <= owners && block(v) > 0; ++v) {
      team.send(0, v, block(v), From::kInput);
    }
    for (std::int64_t v = 1; v <= owners; ++v) {
      take(v, 0, v);
      for (std::int64_t step = 1; step < owners && block(v) > 0; ++step) {
        team.send(v, 1 + (v - 1 + step) % owners, block(v), From::kSlot);
      }
      team.way().copy(team.host(v), block(v));
    }
    for (std::int64_t v = 1; v <= owners; ++v) {
      for (std::int64_t owner = 1; owner <= owners; ++owner) {
        if (owner == v) continue;
        take(v, owner, owner);
        team.way().copy(team.host(v), block(owner));
      }
      team.way().end(team.host(v), call.bytes);
    }
  });
}

}  // namespace carillon::machine
