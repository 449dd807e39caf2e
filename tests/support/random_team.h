// SPDX-License-Identifier: Apache-2.0
//
// A team's schedules at random, right as a rule: bytes take detours by other ranks and places, stay
// in slots for a while and go where others were, and reductions are made anywhere.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "schedule/builder.h"
#include "support/oracle.h"

namespace carillon::test {

class RandomTeam {
 public:
  /// sends: all messages to others are sent and received.
  RandomTeam(const Case& problem, const Limits& limits, bool sends, std::uint64_t seed)
      : problem_(problem), shared_(problem.shared), limits_(limits), random_(seed) {
    places_.resize(static_cast<std::size_t>(shared_.ranks));
    goals_.resize(places_.size());
    for (Rank rank = 0; rank < shared_.ranks; ++rank) {
      const Local local{.in_place = problem.in_place_at(rank), .tables = {}};
      builders_.push_back(std::make_unique<Builder>(
          Call{.shared = shared_, .local = local, .rank = rank, .limits = limits}));
      for (Rank to = 0; to < shared_.ranks; ++to) {
        sends_.push_back(rank != to && (sends || draw(4) == 0));
      }
    }
    strands_ = 1 + draw(2);
    tells_ = problem.in_place || draw(2) == 0;
    cut();
  }

  /// One for each rank.
  std::vector<Schedule> write() {
    const auto units = static_cast<int>(lengths_.size());
    for (strand_ = 0; strand_ < strands_; ++strand_) {
      if (strand_ > 0) begin_strands();
      for (int steps = draw(12); steps > 0; --steps) step();
      for (int unit = strand_; unit < units; unit += strands_) end_unit(unit);
    }
    std::vector<Schedule> schedules;
    for (auto& builder : builders_) schedules.push_back(builder->finish().value());
    return schedules;
  }

 private:
  // A part of a vector, as ranks first, ..., last-1 have it together, combined in this order.
  struct Value {
    int unit = 0;
    Rank first = 0, last = 1;
    int order = 0;
    bool operator==(const Value&) const = default;
  };
  struct Place {
    Buffer buffer;
    Value value;
    bool stays = false;  // and is not written again
  };
  Builder& of(Rank rank) { return *builders_[static_cast<std::size_t>(rank)]; }
  std::vector<Place>& at(Rank rank) { return places_[static_cast<std::size_t>(rank)]; }
  std::vector<Place>& goals(Rank rank) { return goals_[static_cast<std::size_t>(rank)]; }
  int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  template <typename T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(draw(static_cast<int>(list.size())))];
  }
  static bool is_slot(const Place& place) { return place.buffer.space == Space::kSlot; }

  // The vector, or each rank's block, into units.
  void cut() {
    const bool combines = has_reduction(shared_.collective);
    const std::int64_t grain = combines ? shared_.element_bytes : 1, block = shared_.block_bytes();
    for (std::int64_t begin = 0; begin < block; begin += lengths_.back()) {
      const std::int64_t most = draw(2) == 0 ? 64 : block;
      const std::int64_t bytes = (1 + draw(static_cast<int>(most / grain))) * grain;
      lengths_.push_back(std::min(bytes, block - begin));
      for (Rank rank = 0; rank < shared_.ranks; ++rank) add_unit(rank, begin);
    }
  }
  void add_unit(Rank rank, std::int64_t begin) {
    const int unit = static_cast<int>(lengths_.size()) - 1;
    const bool is_root = rank == shared_.root;
    const Collective what = shared_.collective;
    if (what != Collective::kBcast || is_root) {
      const Place own{of(rank).input({begin, lengths_.back()}), {unit, rank, rank + 1}, true};
      if (problem_.in_place_at(rank)) {  // the output may be written before others have had it
        copy(rank, scratch(rank, unit), own, true);
      } else {
        at(rank).push_back(own);
      }
    }
    const auto add = [&](std::int64_t offset, Rank first, Rank last) {
      goals(rank).push_back(
          {of(rank).output({offset + begin, lengths_.back()}), {unit, first, last}});
    };
    if (what == Collective::kBcast && !is_root) add(0, shared_.root, shared_.root + 1);
    if (what == Collective::kAllreduce || (what == Collective::kReduce && is_root)) {
      add(0, 0, shared_.ranks);
    }
    for (Rank from = 0; what == Collective::kAllgather && from < shared_.ranks; ++from) {
      add(from * shared_.block_bytes(), from, from + 1);
    }
  }

  Buffer scratch(Rank rank, int unit) {
    return Builder::scratch(of(rank).allocate_scratch(lengths_[static_cast<std::size_t>(unit)]));
  }
  // For a value of that unit: new memory, or what may be written over.
  Buffer room(Rank rank, int unit) {
    std::vector<Buffer> rooms{scratch(rank, unit)};
    for (const Place& place : at(rank)) {
      if (!place.stays && !is_slot(place) && place.value.unit == unit)
        rooms.push_back(place.buffer);
    }
    for (const Place& goal : goals(rank)) {
      const bool is_mine = tells_ || unit % strands_ == strand_;
      if (goal.stays || goal.value.unit != unit || !is_mine) continue;
      const auto stays = [&](const Place& p) { return p.stays && p.buffer == goal.buffer; };
      if (std::ranges::none_of(at(rank), stays)) rooms.push_back(goal.buffer);
    }
    return one_of(rooms);
  }
  void note(Rank rank, const Place& place) {
    std::erase_if(at(rank), [&](const Place& old) { return old.buffer == place.buffer; });
    at(rank).push_back(place);
  }
  void copy(Rank rank, const Buffer& to, const Place& from, bool stays = false) {
    if (to != from.buffer) of(rank).copy(to, from.buffer);
    note(rank, {to, from.value, stays});
  }
  std::vector<Place> places_of(Rank rank, const Value& value) {
    std::vector<Place> found;
    std::ranges::copy_if(at(rank), std::back_inserter(found),
                         [&](const Place& place) { return place.value == value; });
    return found;
  }
  // Slots that are not read again are given back.
  void forget_slots(Rank rank, std::ptrdiff_t most) {
    while (std::ranges::count_if(at(rank), is_slot) > most) {
      at(rank).erase(std::ranges::find_if(at(rank), is_slot));
    }
  }

  void pass(Rank from, Rank to, const std::vector<Place>& list) {
    BufferList sources;
    for (const Place& place : list) sources.add(place.buffer);
    if (sends_[static_cast<std::size_t>(from * shared_.ranks + to)]) {
      of(from).send(to, sources);
      BufferList rooms;
      for (const Place& place : list) {
        note(to, {scratch(to, place.value.unit), place.value});
        rooms.add(at(to).back().buffer);
      }
      return of(to).recv(from, rooms);
    }
    const bool by_rounds = sources.length() > limits_.slot_bytes || draw(4) == 0;
    if (by_rounds && from != to && !is_slot(list[0])) return pass_by_rounds(from, to, list[0]);
    if (sources.length() > limits_.slot_bytes) return;
    const bool to_all = from != to && limits_.domain_size(from, shared_.ranks) > 2 && draw(3) == 0;
    to_all ? of(from).put_domain(sources) : of(from).put(to, sources);
    for (Rank rank = 0; rank < shared_.ranks; ++rank) {
      const bool hears = to_all ? rank != from && limits_.share_domain(from, rank) : rank == to;
      if (!hears) continue;
      const Message m = to_all ? of(rank).wait_domain(from) : of(rank).wait(from);
      std::int64_t begin = 0;
      for (const Place& place : list) {
        const Place here{of(rank).slot(m, {begin, place.buffer.range.length}), place.value};
        at(rank).push_back(here);
        if (draw(2) == 0) copy(rank, room(rank, here.value.unit), here);
        begin += place.buffer.range.length;
      }
      forget_slots(rank, 1 + draw(3));
    }
  }
  // In segments, and beside that the reader moves something else.
  void pass_by_rounds(Rank from, Rank to, const Place& place) {
    const std::int64_t bytes = place.buffer.range.length, grain = shared_.element_bytes;
    const auto segment = std::min(limits_.slot_bytes / grain, bytes / 4 / grain + 1) * grain;
    const auto part = [](Buffer buffer, Range s) {
      buffer.range = buffer.range.sub(s);
      return buffer;
    };
    const Buffer target = room(to, place.value.unit), second = room(to, place.value.unit);
    const Place other = at(to).empty() ? Place{target, {-1}} : one_of(at(to));
    const bool before = draw(2) == 0;
    const bool moves = second != target && other.value.unit == place.value.unit &&
                       !is_slot(other) && second != other.buffer;
    of(from).segments(bytes, segment, [&](Range s) { of(from).put(to, part(place.buffer, s)); });
    of(to).segments(bytes, segment, [&](Range s) {
      const Message m = of(to).wait(from);
      const auto move = [&] { of(to).copy(part(second, s), part(other.buffer, s)); };
      if (moves && before) move();
      of(to).copy(part(target, s), of(to).slot(m, {0, s.length}));
      if (moves && !before) move();
    });
    note(to, {target, place.value});
    if (moves) note(to, {second, other.buffer == target && !before ? place.value : other.value});
  }
  void step() {
    const Rank rank = draw(shared_.ranks), to = draw(shared_.ranks);
    if (at(rank).empty()) return;
    std::vector<Place> list{one_of(at(rank))};
    if (draw(3) == 0) return copy(rank, room(rank, list[0].value.unit), list[0]);
    while (draw(2) == 0) list.push_back(one_of(at(rank)));
    pass(rank, to, list);
  }
  // What the strand before has written is there only if that says so.
  void begin_strands() {
    for (Rank rank = 0; rank < shared_.ranks; ++rank) {
      forget_slots(rank, 0);
      if (tells_) of(rank).signal(rank);
      of(rank).strand();
      if (tells_) of(rank).wait(rank);
      const auto is_gone = [](const Place& p) { return p.buffer.space != Space::kInput; };
      if (!tells_) std::erase_if(at(rank), is_gone);
    }
  }

  Place fetch(Rank rank, const Value& value) {
    for (Rank from = draw(shared_.ranks); places_of(rank, value).empty();
         from = (from + 1) % shared_.ranks) {
      if (const auto has = places_of(from, value); !has.empty()) pass(from, rank, {one_of(has)});
    }
    return one_of(places_of(rank, value));
  }
  Place total(Rank rank, int unit, Rank first, Rank last) {
    if (last - first == 1) return fetch(rank, {unit, first, last});
    const Rank middle = first + 1 + draw(last - first - 1);
    const Value low = total(draw(shared_.ranks), unit, first, middle).value;
    const Value high = total(draw(shared_.ranks), unit, middle, last).value;
    Place left;
    do {  // what comes may be written over what was there
      fetch(rank, high);
      left = fetch(rank, low);
    } while (places_of(rank, high).empty());
    const Place right = one_of(places_of(rank, high));
    const Place sum{room(rank, unit), {unit, first, last, ++orders_}, true};
    of(rank).reduce(sum.buffer, left.buffer, right.buffer);
    note(rank, sum);
    return sum;
  }
  void end_unit(int unit) {
    Value sum;
    for (Rank rank = 0; rank < shared_.ranks; ++rank) {
      for (Place& goal : goals(rank)) {
        if (goal.value.unit != unit) continue;
        const bool combines = goal.value.last - goal.value.first > 1;
        if (combines && sum.order == 0) {
          sum = total(draw(shared_.ranks), unit, 0, shared_.ranks).value;
        }
        copy(rank, goal.buffer, fetch(rank, combines ? sum : goal.value), true);
        goal.stays = true;
      }
    }
  }

  Case problem_;
  Shared shared_;
  Limits limits_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Builder>> builders_;
  std::vector<std::vector<Place>> places_;  // by rank: where something is,
  std::vector<std::vector<Place>> goals_;   // and where what belongs in the end; then it stays
  std::vector<bool> sends_;                 // by pair of ranks
  std::vector<std::int64_t> lengths_;       // of units
  int orders_ = 0, strands_ = 1, strand_ = 0;
  bool tells_ = true;
};

}  // namespace carillon::test
