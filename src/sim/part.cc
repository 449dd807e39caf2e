// SPDX-License-Identifier: Apache-2.0
#include "sim/part.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "schedule/streams.h"

namespace carillon::sim {

std::int64_t length_of(const Buffer& buffer, const Tables& tables) {
  const auto entry = static_cast<std::size_t>(buffer.entry);
  switch (buffer.table) {
    case Table::kSend: return tables.send_bytes[entry];
    case Table::kRecv: return tables.recv_bytes[entry];
    case Table::kNone: break;
  }
  return buffer.range.length;
}

std::int64_t length_of(std::span<const Buffer> list, const Tables& tables) {
  std::int64_t sum = 0;
  for (const Buffer& buffer : list) sum += length_of(buffer, tables);
  return sum;
}

namespace {

constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15U;

// Of the length and a few steps: shapes that agree in those are compared.
std::uint64_t hash_of(const std::vector<Step>& steps) {
  std::uint64_t hash = steps.size();
  const std::size_t stride = std::max<std::size_t>(1, steps.size() / 4);
  for (std::size_t i = 0; i < steps.size(); i += stride) {
    std::uint64_t words[3];
    std::memcpy(words, &steps[i], sizeof words);
    for (const std::uint64_t word : words) hash = (hash ^ word) * kMix ^ hash >> 29;
  }
  return hash;
}

bool same(const std::vector<Step>& a, const std::vector<Step>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Step)) == 0;
}

// Pieces of a copy between two lists that are contiguous on both sides.
std::int64_t runs_of(std::span<const Buffer> dst, std::span<const Buffer> src,
                     const Tables& tables) {
  if (dst.size() == 1 || src.size() == 1) {
    return static_cast<std::int64_t>(std::max(dst.size(), src.size()));
  }
  std::int64_t runs = 0;
  std::int64_t dst_end = 0, src_end = 0;  // of the entries taken so far
  for (std::size_t d = 0, s = 0; d < dst.size() || s < src.size(); ++runs) {
    const std::int64_t behind = dst_end - src_end;
    if (behind <= 0 && d < dst.size()) dst_end += length_of(dst[d++], tables);
    if (behind >= 0 && s < src.size()) src_end += length_of(src[s++], tables);
    if ((d == dst.size() && dst_end < src_end) || (s == src.size() && src_end < dst_end)) break;
  }
  return runs;
}

// A send or recv that is no message takes no step.
bool is_step(const Schedule& schedule, const Op& op, const Tables& tables) {
  if (op.kind != OpKind::kSend && op.kind != OpKind::kRecv) return true;
  const auto list = op.kind == OpKind::kSend ? schedule.src(op) : schedule.dst(op);
  return is_message(length_of(list, tables), has_table(list));
}

bool is_post(OpKind kind) { return is_outgoing(kind); }

// Whose channel can be short of room for messages.
bool takes_credit(OpKind kind) {
  return kind == OpKind::kPut || kind == OpKind::kSignal || kind == OpKind::kMulticast;
}

// Calls body(op, its last message's number) for puts, signals and multicasts.
template <typename Body>
void for_each_post(const Schedule& schedule, Body body) {
  std::int64_t rounds = 1;
  std::size_t loop_end = 0;
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (i == loop_end) rounds = 1;
    if (op.kind == OpKind::kRepeat) {
      rounds = op.count;
      loop_end = i + op.body + 1;
    }
    if (!takes_credit(op.kind)) continue;
    body(op, op.message.index + op.message.index_stride * (rounds - 1));
  }
}

std::uint64_t channel_key(const Op& op) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(op.message.peer)) << 3 |
         static_cast<std::uint64_t>(op.message.channel);
}

}  // namespace

Shape* ShapeTable::get(const std::vector<Step>& steps, std::size_t peers) {
  const std::uint64_t hash = hash_of(steps);
  Shape*& recent = recent_[hash >> 32 & (recent_.size() - 1)];
  if (recent != nullptr && same(recent->steps, steps)) {
    ++recent->users;
    return recent;
  }
  const auto [first, last] = shapes_.equal_range(hash);
  for (auto row = first; row != last; ++row) {
    if (!same(row->second->steps, steps)) continue;
    ++row->second->users;
    return recent = row->second.get();
  }
  if (shapes_.size() >= sweep_at_) sweep();
  return recent =
             shapes_.emplace(hash, std::make_unique<Shape>(Shape{steps, peers, 1}))->second.get();
}

void ShapeTable::sweep() {
  recent_.fill(nullptr);
  std::erase_if(shapes_, [](const auto& row) { return row.second->users == 0; });
  sweep_at_ = 2 * shapes_.size() + 1024;
}

std::uint32_t TransferTable::index(machine::Transfer transfer, OpKind kind) {
  const bool two_sided = kind == OpKind::kSend || kind == OpKind::kRecv;
  Last& last = last_[static_cast<std::size_t>(kind)];
  const Key key{transfer.bytes, transfer.entries, transfer.registered, two_sided};
  if (key == last.key) return last.index;
  const auto [row, is_new] = indices_.try_emplace(key, static_cast<std::uint32_t>(costs_.size()));
  last = {key, row->second};
  if (!is_new) return last.index;
  const machine::Machine& m = machine_;
  const bool gathers = machine::is_gathered(m, transfer, two_sided);
  Costs costs{.transfer = transfer,
              .put_ps = machine::put_ps(m, transfer),
              .send_ps = machine::send_ps(m, transfer),
              .recv_ps = machine::recv_ps(m, transfer),
              .local_put_ps = machine::local_put_ps(m, transfer),
              .local_recv_ps = machine::local_wait_ps(m) + machine::pack_ps(m, transfer),
              .multicast_ps = machine::multicast_ps(m, transfer),
              .receive_group_ps = machine::receive_ps(m, transfer),
              .deliver_ps = machine::deliver_ps(m, transfer),
              .put_copy_ps = machine::put_copy_ps(m, transfer),
              .send_copy_ps = machine::send_copy_ps(m, transfer),
              .recv_copy_ps = machine::recv_copy_ps(m, transfer),
              .group_copy_ps = machine::pack_ps(m, transfer),
              .local_put_copy_ps = machine::scattered_ps(m.memory, transfer),
              .local_recv_copy_ps = machine::pack_ps(m, transfer),
              .read_lent_ps = machine::read_lent_ps(m, transfer.bytes),
              .by_levels = {},
              .memory_ps = machine::memory_ps(m.memory, transfer.bytes)};
  const auto levels = static_cast<std::int32_t>(m.topology.levels.size());
  for (std::int32_t level = 0; level <= levels; ++level) {
    costs.by_levels.push_back(machine::occupancy(m, transfer, level, gathers));
  }
  costs_.push_back(std::move(costs));
  return last.index;
}

std::uint32_t* PeerPool::take(std::size_t size) {
  constexpr std::size_t kBlock = 1 << 18;
  if (size == 0) return nullptr;
  const std::size_t fours = rounded(size);
  if (fours < free_.size() && !free_[fours].empty()) {
    std::uint32_t* const list = free_[fours].back();
    free_[fours].pop_back();
    return list;
  }
  if (left_ < fours * 4) {
    left_ = std::max(kBlock, fours * 4);
    blocks_.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(left_));
  }
  left_ -= fours * 4;
  return blocks_.back().get() + left_;
}

void PeerPool::give_back(std::uint32_t* list, std::size_t size) {
  if (size == 0) return;
  const std::size_t fours = rounded(size);
  if (free_.size() <= fours) free_.resize(fours + 1);
  free_[fours].push_back(list);
}

// Who was named lately is not named again.
std::uint32_t Compiler::place(Rank peer) {
  constexpr std::size_t kLook = 4;
  const auto id = static_cast<std::uint32_t>(peer);
  const std::size_t end = peers_.size();
  for (std::size_t i = end; i > 0 && i + kLook > end; --i) {
    if (peers_[i - 1] == id) return static_cast<std::uint32_t>(i - 1);
  }
  peers_.push_back(id);
  return static_cast<std::uint32_t>(end);
}

// Whether the NIC can read all of the list where it is.
bool Compiler::is_registered(std::span<const Buffer> list) const {
  const machine::OneSided& rules = machine_.one_sided;
  return std::all_of(list.begin(), list.end(), [&](const Buffer& buffer) {
    return buffer.space == Space::kSlot || (buffer.space == Space::kInput && rules.stage_input) ||
           (buffer.space == Space::kOutput && rules.stage_output);
  });
}

Step Compiler::step_of(const Context& context, const Op& op) {
  const Tables& tables = context.local.tables;
  const std::span<const Buffer> dst = context.schedule.dst(op);
  const std::span<const Buffer> src = context.schedule.src(op);
  Step step{.kind = op.kind};
  switch (op.kind) {
    case OpKind::kCopy:
      step.set_time(machine::copy_ps(machine_.memory, length_of(dst, tables),
                                     static_cast<std::int64_t>(dst.size() + src.size()),
                                     runs_of(dst, src, tables)));
      step.transfer = transfers_.index({.bytes = length_of(dst, tables)}, op.kind);
      return step;
    case OpKind::kReduce:
      step.set_time(machine::reduce_ps(machine_.memory, dst.front().range.length));
      step.transfer = transfers_.index({.bytes = dst.front().range.length}, op.kind);
      return step;
    case OpKind::kRepeat:
      step.set_time(op.count);
      step.link = op.body;
      return step;
    case OpKind::kPut:
    case OpKind::kSend:
    case OpKind::kMulticast:
    case OpKind::kReceive:
    case OpKind::kRecv: {
      const std::span<const Buffer> list = is_incoming(op.kind) ? dst : src;
      step.transfer = transfers_.index({.bytes = length_of(list, tables),
                                        .entries = static_cast<std::int32_t>(list.size()),
                                        .registered = is_registered(list)},
                                       op.kind);
      break;
    }
    case OpKind::kAggregate:
      step.channel = kFromSwitches;
      step.link = src.empty() ? 0 : 1;
      step.set_time(std::max(length_of(dst, tables), length_of(src, tables)));
      step.transfer = transfers_.index({.bytes = step.time()}, op.kind);
      return step;
    case OpKind::kSignal:
    case OpKind::kWait: step.transfer = transfers_.index({.entries = 0}, op.kind); break;
  }
  step.channel = op.message.channel;
  const bool to_all = has_readers(step.channel) && is_post(op.kind);
  step.peer = to_all ? 0 : place(op.message.peer);
  if (context.rules.messages == Messages::kNumbered) {
    step.number = op.message.index + context.rules.stage * kStageMessages;
    step.stride = op.message.index_stride;
  }
  return step;
}

// A put needs a credit if its channel has more messages than the window; most have not.
void Compiler::mark_credited(const Context& context) {
  const std::span<const Op> ops(context.schedule.ops.data() + context.strand.first_op,
                                context.strand.op_count);
  std::unordered_set<std::uint64_t> channels;
  for_each_post(context.schedule, [&](const Op& op, std::int64_t last) {
    if (last >= context.rules.window) channels.insert(channel_key(op));
  });
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!takes_credit(ops[i].kind)) continue;
    const bool credited = credits_all(context.rules) || channels.contains(channel_key(ops[i]));
    steps_[places_[i]].credited = credited;
  }
}

bool Compiler::needs_credits(const Schedule& schedule, std::int32_t window) {
  bool needs = false;
  for_each_post(schedule, [&](const Op&, std::int64_t last) { needs = needs || last >= window; });
  return needs;
}

void Compiler::link_releases(const Context& context) {
  const std::vector<std::int64_t> points = release_points(context.schedule);
  for (std::uint32_t i = 0; i < context.strand.op_count; ++i) {
    const std::int64_t point = points[context.strand.first_op + i];
    if (point < 0) continue;
    const auto op = static_cast<std::size_t>(point) - context.strand.first_op;
    steps_[places_[i]].link = places_[op];
  }
}

// To the steps that there are.
void Compiler::shorten_loops(const Context& context) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Op& op = context.schedule.ops[context.strand.first_op + i];
    if (op.kind != OpKind::kRepeat) continue;
    const std::size_t next = i + 1 + op.body;
    const std::size_t end = next < places_.size() ? places_[next] : steps_.size();
    steps_[places_[i]].link = static_cast<std::uint32_t>(end - places_[i] - 1);
  }
}

// Whether a channel could have more messages than the window, at a glance.
bool Compiler::has_many(const Schedule& schedule, std::int32_t window) {
  std::int32_t many = 0;
  for (const Op& op : schedule.ops) {
    many |= op.message.index >= window ? 1 : op.message.index_stride;
  }
  return many != 0;
}

Part Compiler::compile(const Schedule& schedule, const Strand& strand, const Local& local,
                       const Rules& rules) {
  const Context context{schedule, strand, local, rules};
  steps_.clear();
  peers_.clear();
  places_.clear();
  for (std::uint32_t i = 0; i < strand.op_count; ++i) {
    const Op& op = schedule.ops[strand.first_op + i];
    places_.push_back(static_cast<std::uint32_t>(steps_.size()));
    if (!is_step(schedule, op, local.tables)) continue;
    steps_.push_back(step_of(context, op));
    if (steps_.back().kind == OpKind::kWait || steps_.back().kind == OpKind::kReceive)
      steps_.back().link = places_.back();
  }
  if (steps_.size() < places_.size()) shorten_loops(context);
  const bool lends = rules.lender != nullptr && machine::lends(machine_) && mark_lent(context);
  const bool counts = credits_all(rules) || has_many(schedule, rules.window);
  if (counts) mark_credited(context);
  if (counts || lends || rules.tells_read) link_releases(context);
  const Part part{.shape = shapes_.get(steps_, peers_.size()), .peers = pool_.take(peers_.size())};
  std::copy(peers_.begin(), peers_.end(), part.peers);
  return part;
}

void Compiler::give_back(Part* part) {
  if (part->shape == nullptr) return;
  pool_.give_back(part->peers, part->shape->peers);
  ShapeTable::give_back(part->shape);
  *part = {};
}

}  // namespace carillon::sim
