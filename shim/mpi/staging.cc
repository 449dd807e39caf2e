// SPDX-License-Identifier: Apache-2.0
#include "staging.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "neighbours.h"

namespace carillon::shim {
namespace {

// Whether this rank's blocks are listed, or those of its neighbours lie one after the other.
bool has_blocks(const Rule& rule, const Side& side) {
  return side.block_per_rank && (rule.kind == Kind::kLists || rule.kind == Kind::kOneList ||
                                 rule.kind == Kind::kNeighbours);
}

// Elements of a side that is one block, or blocks one after the other.
std::int64_t elements_of(const Rule& rule, const Communicator& communicator, const Call& call,
                         bool output) {
  const Buffer& buffer = output ? call.out : call.in;
  const bool in_place = call.in.address == MPI_IN_PLACE;
  if (rule.kind == Kind::kReduceScatter) {
    if (output && !in_place) return call.in_blocks.count(communicator.rank);
    std::int64_t total = 0;
    for (int i = 0; i < communicator.size; ++i) total += call.in_blocks.count(i);
    return total;
  }
  // In place the output is the input, too.
  const bool per_rank = (output ? rule.out : rule.in).block_per_rank ||
                        (rule.kind == Kind::kReduction && in_place && rule.in.block_per_rank);
  return per_rank && rule.kind != Kind::kNeighbours ? buffer.count * communicator.size
                                                    : buffer.count;
}

// visit(block, type, elements, offset in bytes) for each block. False: arguments for others to
// judge.
template <typename Visit>
bool for_each_part(Collective collective, Communicator& communicator, const Call& call, bool output,
                   Visit visit) {
  const Rule& rule = rule_of(collective);
  const Side& side = output ? rule.out : rule.in;
  const Buffer& buffer = output ? call.out : call.in;
  Blocks blocks = output ? call.out_blocks : call.in_blocks;
  if (!has_blocks(rule, side)) {
    if (rule.kind == Kind::kReduceScatter && call.in_blocks.counts == nullptr) return false;
    const TypeInfo* const type = find_type(buffer.type);
    return type != nullptr && visit(std::size_t{0}, *type,
                                    elements_of(rule, communicator, call, output), std::int64_t{0});
  }
  const std::vector<int>* neighbours = nullptr;
  if (rule.kind == Kind::kNeighbours) {
    const Neighbours& all = neighbours_of(communicator);
    if (all.left_of(collective, communicator.grid_orders) != Reason::kNone) return false;
    neighbours = output ? &all.sources_of(collective).ranks : &all.destinations.ranks;
    if (blocks.offsets == nullptr) blocks.stride = buffer.count;
  } else if (blocks.counts == nullptr || blocks.offsets == nullptr) {
    return false;
  }
  const int count =
      neighbours != nullptr ? static_cast<int>(neighbours->size()) : communicator.size;
  for (int i = 0; i < count; ++i) {
    if (neighbours != nullptr && (*neighbours)[static_cast<std::size_t>(i)] == MPI_PROC_NULL) {
      continue;
    }
    const TypeInfo* const type = find_type(blocks.types != nullptr ? blocks.types[i] : buffer.type);
    const std::int64_t elements = blocks.counts != nullptr ? blocks.count(i) : buffer.count;
    if (type == nullptr && blocks.types != nullptr && elements == 0) continue;
    if (type == nullptr) return false;
    const std::int64_t unit = blocks.types != nullptr ? 1 : type->extent;
    if (!visit(static_cast<std::size_t>(i), *type, elements, blocks.offset(i) * unit)) return false;
  }
  return true;
}

}  // namespace

bool StagedSide::add(Area& area, const TypeInfo& type, std::int64_t elements, std::int64_t offset) {
  std::int64_t last = 0;
  if (__builtin_mul_overflow(elements - 1, type.extent, &last) ||
      __builtin_add_overflow(last, offset, &last)) {
    return false;
  }
  area.begin = std::min(area.begin, std::min(offset, last) + type.true_lower_bound);
  area.end = std::max(area.end, std::max(offset, last) + type.true_lower_bound + type.true_extent);
  auto layout = type.by_host ? std::nullopt : repeat(type.layout, elements, type.extent);
  area.whole = area.whole || !layout;
  if (layout) area.parts.push_back({std::move(*layout), offset});
  return true;
}

bool StagedSide::look_at(Collective collective, Communicator& communicator, const Call& call,
                         bool output) {
  const Rule& rule = rule_of(collective);
  const void* const buffer = (output ? call.out : call.in).address;
  // A first rank's result of an exscan does not count, but in place.
  const bool has_none = output && collective == Collective::kExscan && communicator.rank == 0 &&
                        call.in.address != MPI_IN_PLACE;
  if (buffer == MPI_IN_PLACE || has_none ||
      !counts_at((output ? rule.out : rule.in).at, call.root == communicator.rank)) {
    return false;
  }
  base_ = reinterpret_cast<std::uintptr_t>(buffer);
  const bool typed = (output ? call.out_blocks : call.in_blocks).types != nullptr;
  const auto visit = [&](std::size_t block, const TypeInfo& type, std::int64_t elements,
                         std::int64_t offset) {
    if (typed) {
      offsets_.resize(std::max(offsets_.size(), block + 1));
      offsets_[block] = offset;
    }
    if (elements <= 0 || type.size == 0) return elements >= 0;
    if (typed || areas_.empty()) {
      const DeviceRuntime* const runtime = find_device(address(offset + type.true_lower_bound));
      if (runtime == nullptr) return typed;
      areas_.push_back({.runtime = runtime, .block = block});
    }
    return add(areas_.back(), type, elements, offset);
  };
  if (!for_each_part(collective, communicator, call, output, visit)) areas_.clear();
  return exists();
}

bool StagedSide::make_copies(Call* call, bool output) {
  // Aligned as the originals are, for kernels that look at that.
  constexpr std::int64_t kAlignment = 64;
  std::int64_t bytes = 0;
  for (const Area& area : areas_) {
    std::int64_t length = 0;
    if (__builtin_sub_overflow(area.end, area.begin, &length) ||
        __builtin_add_overflow(bytes, length + 2 * kAlignment, &bytes)) {
      return false;
    }
  }
  if (!room_.make(bytes)) return false;
  Buffer& buffer = output ? call->out : call->in;
  Blocks& blocks = output ? call->out_blocks : call->in_blocks;
  std::int64_t at = 0;
  for (Area& area : areas_) {
    const std::uintptr_t first = address(area.begin);
    area.copy = room_.at(at + static_cast<std::int64_t>(first % kAlignment));
    at += (area.end - area.begin + 2 * kAlignment - 1) / kAlignment * kAlignment;
    const std::uintptr_t moved = reinterpret_cast<std::uintptr_t>(area.copy) - first;
    if (blocks.types != nullptr) {
      offsets_[area.block] += static_cast<std::int64_t>(moved);
    } else {
      buffer.address = reinterpret_cast<const void*>(base_ + moved);
    }
  }
  if (blocks.types != nullptr) {
    blocks.offsets = offsets_.data();
    blocks.wide_offsets = true;
  }
  return true;
}

bool StagedSide::bring(const Area& area) const {
  const auto bytes = static_cast<std::size_t>(area.end - area.begin);
  if (area.runtime->to_host(area.copy, address(area.begin), bytes)) return true;
  // What lies between need not be memory.
  return !area.whole && std::all_of(area.parts.begin(), area.parts.end(), [&](const Part& part) {
    return for_each_run(part.layout, part.offset, [&](const Run& run) {
      return area.runtime->to_host(area.copy + (run.offset - area.begin), address(run.offset),
                                   static_cast<std::size_t>(run.bytes));
    });
  });
}

// Only the bytes themselves: what lies between may be another call's. Runs that touch are one.
bool StagedSide::give_back(const Area& area) const {
  const auto write = [&](const Run& run) {
    return run.bytes <= 0 ||
           area.runtime->to_device(address(run.offset), area.copy + (run.offset - area.begin),
                                   static_cast<std::size_t>(run.bytes));
  };
  if (area.whole) return write({area.begin, area.end - area.begin});
  Run piece;
  const auto add = [&](const Run& run) {
    if (piece.offset + piece.bytes != run.offset) return write(std::exchange(piece, run));
    piece.bytes += run.bytes;
    return true;
  };
  return std::all_of(
             area.parts.begin(), area.parts.end(),
             [&](const Part& part) { return for_each_run(part.layout, part.offset, add); }) &&
         write(piece);
}

bool StagedSide::bring() const {
  return std::all_of(areas_.begin(), areas_.end(), [&](const Area& area) { return bring(area); });
}

bool StagedSide::give_back() const {
  return std::all_of(areas_.begin(), areas_.end(),
                     [&](const Area& area) { return give_back(area); });
}

bool StagedSide::whole() const {
  return std::any_of(areas_.begin(), areas_.end(), [](const Area& area) { return area.whole; });
}

bool stage(Collective collective, Communicator& communicator, Call* call,
           std::shared_ptr<Staging>* staging) {
  auto sides = std::make_shared<Staging>();
  const bool in = sides->in.look_at(collective, communicator, *call, false);
  const bool out = sides->out.look_at(collective, communicator, *call, true);
  if (!in && !out) return true;
  sides->brings_out = call->in.address == MPI_IN_PLACE || sides->out.whole();
  if (in && !sides->in.make_copies(call, false)) return false;
  if (out && !sides->out.make_copies(call, true)) return false;
  *staging = std::move(sides);
  return true;
}

int give_back(const Staging& staging) {
  return !staging.out.exists() || staging.out.give_back() ? MPI_SUCCESS : MPI_ERR_BUFFER;
}

}  // namespace carillon::shim
