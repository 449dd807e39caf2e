// SPDX-License-Identifier: Apache-2.0
#include "schedule/builder.h"

#include <algorithm>
#include <utility>

#include "schedule/streams.h"

namespace carillon {
namespace {

constexpr std::int64_t kScratchAlignment = 64;

bool is_word(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

bool has_table(const BufferList& list) { return has_table(list.items()); }

}  // namespace

bool continues(const Buffer& a, const Buffer& b) {
  return a.space == b.space && a.table == Table::kNone && b.table == Table::kNone &&
         a.message == b.message && a.range.stride == b.range.stride &&
         a.range.offset + a.range.length == b.range.offset;
}

std::int64_t BufferList::length() const {
  std::int64_t sum = 0;
  for (const Buffer& buffer : items()) sum += buffer.range.length;
  return sum;
}

std::int32_t BufferList::runs() const {
  std::int32_t runs = 0;
  const Buffer* last = nullptr;
  for (const Buffer& buffer : items()) {
    if (last == nullptr || !continues(*last, buffer)) ++runs;
    last = &buffer;
  }
  return runs;
}

Builder::Builder(const Call& call) { restart(call); }

void Builder::restart(const Call& call, Window window) {
  call_ = call;
  scopes_.clear();
  scopes_.push_back({.members = Members::all(call.shared.ranks)});
  scopes_.back().reaches_all = !call.params.two_sided && call.limits.one_node();
  schedule_.ranks = call.shared.ranks;
  begin(call.rank, window);
}

void Builder::restart(Rank rank, const Local& local, Window window) {
  call_.rank = rank;
  call_.local = local;
  scopes_.erase(scopes_.begin() + 1, scopes_.end());
  Scope& scope = scopes_.front();
  scope.begin = scope.part = 0;
  scope.forks = scope.fork_number = 0;
  begin(rank, window);
}

void Builder::begin(Rank rank, Window window) {
  schedule_.rank = rank;
  schedule_.scratch_bytes = 0;
  schedule_.strands.assign(1, {});
  schedule_.ops.clear();
  schedule_.buffers.clear();
  schedule_.phases.clear();
  schedule_.learned = {};
  channels_.clear();
  landings_.clear();
  landings_used_ = 0;
  if (!landed_.empty()) landed_.clear();
  open_repeat_ = -1;
  loops_ = 0;
  window_ = window;
  position_ = 0;
  in_steps_ = in_loop_ = forked_ = false;
  strand_positions_.assign(1, 0);
  status_ = {};
}

// Whether these ranks of the innermost scope are all those of one node.
bool Builder::whole_node(const Members& members) {
  if (call_.params.two_sided || members.size() == 0 || !is_member(members[0])) return false;
  const Rank first = team_rank(members[0]);
  for (Rank place = 1; place < members.size(); ++place) {
    const Rank member = members[place];
    if (!is_member(member) || !call_.limits.share_node(first, team_rank(member))) return false;
  }
  return members.size() == call_.limits.node_size(first, call_.shared.ranks);
}

bool Builder::put_all_is_large(std::int64_t bytes) const {
  const Call& call = here();
  return !reaches_all() && call.shared.ranks > 2 && bytes > call.limits.inline_bytes;
}

Rank Builder::team_rank(Rank rank) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    rank = scope->members[rank];
  }
  return rank;
}

// Of the innermost scope, and so of those around it.
bool Builder::is_member(Rank rank) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (rank < 0 || rank >= scope->members.size()) {
      fail("peer " + std::to_string(rank) + " is not in the team");
      return false;
    }
    rank = scope->members[rank];
  }
  return true;
}

void Builder::fail(std::string message) {
  if (!status_.ok()) return;
  status_ =
      Status(Code::kInternal, std::string(collective_name(call_.shared.collective)) +
                                  " schedule of rank " + std::to_string(call_.rank) + ", op " +
                                  std::to_string(schedule_.ops.size()) + ": " + std::move(message));
}

void Builder::fail(const Status& status) {
  if (status_.ok()) status_ = status;
}

Buffer Builder::slot(const Message& message, Range range) const {
  if (message.channel == Channel::kQueue) {
    const auto landed = landed_.find({message.peer, message.index});
    return scratch(landed == landed_.end() ? range : landed->second.sub(range));
  }
  return {.space = Space::kSlot, .range = range, .message = message};
}

Buffer Builder::input_of(Rank peer) const {
  return {.space = Space::kInput, .table = Table::kSend, .entry = peer};
}

Buffer Builder::output_of(Rank peer) const {
  return {.space = Space::kOutput, .table = Table::kRecv, .entry = peer};
}

Range Builder::allocate_scratch(std::int64_t bytes) {
  const Range range{schedule_.scratch_bytes, bytes};
  schedule_.scratch_bytes +=
      (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  return range;
}

// What continues the buffer before it becomes one with it; what is empty is left out.
std::uint32_t Builder::append(std::span<const Buffer> list, Merge merge) {
  std::vector<Buffer>& all = schedule_.buffers;
  const std::size_t first = all.size();
  for (const Buffer& buffer : list) {
    if (buffer.table == Table::kNone && buffer.range.length == 0) continue;
    if (merge == Merge::kTouching && all.size() > first && continues(all.back(), buffer)) {
      all.back().range.length += buffer.range.length;
    } else {
      all.push_back(buffer);
    }
  }
  return static_cast<std::uint32_t>(all.size() - first);
}

Op& Builder::add(OpKind kind, std::span<const Buffer> dst, std::span<const Buffer> src,
                 Merge merge) {
  constexpr std::uint64_t kOften = 1 << 16;
  if (++calls_ % kOften == 0 && stops_ && stops_()) throw Stopped();
  for (const std::span<const Buffer> list : {dst, src}) {
    for (const Buffer& buffer : list) {
      if (buffer.range.length < 0 || buffer.range.offset < 0) {
        fail("a buffer has a negative offset or length");
      }
    }
  }
  if (!is_emitting()) return dropped_;
  std::vector<Buffer>& buffers = schedule_.buffers;
  Op op{.kind = kind, .first_buffer = static_cast<std::uint32_t>(buffers.size())};
  if (kind == OpKind::kReduce) {  // three operands, never merged
    for (const std::span<const Buffer> list : {dst, src}) {
      buffers.insert(buffers.end(), list.begin(), list.end());
    }
    op.dst_count = static_cast<std::uint32_t>(dst.size());
    op.src_count = static_cast<std::uint32_t>(src.size());
  } else {
    op.dst_count = append(dst, merge);
    op.src_count = append(src, merge);
  }
  schedule_.ops.push_back(op);
  schedule_.strands.back().op_count =
      static_cast<std::uint32_t>(schedule_.ops.size()) - schedule_.strands.back().first_op;
  return schedule_.ops.back();
}

// Where a buffer really lies: in place, the input is a part of the output.
Buffer Builder::real(const Buffer& buffer) const {
  if (buffer.space != Space::kInput || !call_.local.in_place) return buffer;
  Buffer moved = buffer;
  moved.space = Space::kOutput;
  moved.range.offset += in_place_shift(call_.shared, call_.rank);
  return moved;
}

bool Builder::same_memory(const Buffer& dst, const Buffer& src) const {
  if (dst.table != Table::kNone || src.table != Table::kNone) return false;
  return real(dst) == real(src);
}

void Builder::copy(const BufferList& dst, const BufferList& src) {
  add_copy(dst, src, Merge::kTouching);
}

void Builder::copy_each(const BufferList& dst, const BufferList& src) {
  add_copy(dst, src, Merge::kNever);
}

void Builder::add_copy(const BufferList& dst, const BufferList& src, Merge merge) {
  const bool tables = has_table(dst) || has_table(src);
  if (!tables && dst.length() != src.length()) fail("copy of lists of different lengths");
  if (!tables && dst.length() == 0) return;
  if (dst.items().size() == 1 && src.items().size() == 1 &&
      same_memory(dst.items().front(), src.items().front())) {
    return;
  }
  add(OpKind::kCopy, dst.items(), src.items(), merge);
}

void Builder::reduce(const Buffer& dst, const Buffer& left, const Buffer& right) {
  if (dst.table != Table::kNone || left.table != Table::kNone || right.table != Table::kNone) {
    fail("reduce of table entries");
  }
  const std::int64_t length = dst.range.length;
  if (left.range.length != length || right.range.length != length) {
    fail("reduce of operands of different lengths");
  }
  if (length % here().shared.element_bytes != 0) fail("reduce of a part of an element");
  if (length == 0) return;
  const std::array<Buffer, 3> operands{dst, left, right};
  add(OpKind::kReduce, {operands.data(), 1}, {operands.data() + 1, 2});
}

Builder::ChannelState& Builder::channel(bool outgoing, Channel channel, Rank peer) {
  const std::int64_t key =
      (static_cast<std::int64_t>(peer) * kChannels + static_cast<int>(channel)) * 2 +
      (outgoing ? 1 : 0);
  ChannelState& state = channels_[key];
  if (open_repeat_ >= 0 && state.loop != loops_) {
    state.loop = loops_;
    state.loop_start = state.next;
    loop_channels_.push_back(key);
  }
  return state;
}

void Builder::post(OpKind kind, Channel channel_kind, Rank peer, const BufferList& src) {
  const bool to_all = has_readers(channel_kind);
  if (!to_all && !is_member(peer)) return;
  if (kind == OpKind::kPut && has_table(src)) fail("put of table entries (send can)");
  if (kind == OpKind::kPut && src.length() == 0) kind = OpKind::kSignal;
  if (kind == OpKind::kPut && src.length() > call_.limits.slot_bytes) {
    fail("put of " + std::to_string(src.length()) + " bytes; a slot holds " +
         std::to_string(call_.limits.slot_bytes));
  }
  const Rank reader = to_all ? -1 : team_rank(peer);
  ChannelState& state = channel(true, channel_kind, to_all ? 0 : reader);
  Op& op = add(kind, {}, src.items());
  op.message = {channel_kind, reader, state.next++, 0};
}

void Builder::put(Rank peer, const BufferList& src) {
  if (call_.params.two_sided) {
    send(peer, src);
  } else {
    post(OpKind::kPut, Channel::kPair, peer, src);
  }
}
void Builder::put_all(const BufferList& src) {
  const Call& call = here();
  if (reaches_all()) {
    if (call.shared.ranks > 1) post(OpKind::kPut, Channel::kAll, -1, src);
    return;
  }
  // The rank after this one first: ranks that all began with the same one would leave it with all
  // their messages at once, and the last one with none until the end.
  for (const Rank step : steps(call.shared.ranks - 1)) {
    const Rank peer = call.rank + 1 + step;
    put(peer < call.shared.ranks ? peer : peer - call.shared.ranks, src);
  }
}
void Builder::signal(Rank peer) { put(peer, {}); }
void Builder::signal_all() { put_all({}); }
void Builder::send(Rank peer, const BufferList& src) {
  post(OpKind::kSend, Channel::kQueue, peer, src);
}

// Whether this rank and those it names are in the group, and somebody hears it.
bool Builder::is_grouped(Channel group, Rank writer, const BufferList& list) {
  const Rank ranks = call_.shared.ranks;
  if (!is_group(group)) fail("a multicast to what is no group");
  if (call_.params.two_sided) fail("a multicast in a two-sided call");
  if (has_table(list)) fail("a multicast of table entries");
  if (writer < 0 || writer >= ranks || !in_group(group, writer, call_.limits) ||
      !in_group(group, call_.rank, call_.limits)) {
    fail("a multicast from or to a rank that is not in the group");
    return false;
  }
  if (list.length() > call_.limits.multicast_bytes) {
    fail("multicast of " + std::to_string(list.length()) + " bytes; it takes " +
         std::to_string(call_.limits.multicast_bytes));
  }
  return readers_of(group, writer, ranks, call_.limits) > 0;
}

void Builder::multicast(Channel group, const BufferList& src) {
  if (is_grouped(group, call_.rank, src)) post(OpKind::kMulticast, group, -1, src);
}

void Builder::receive(Channel group, Rank writer, const BufferList& dst) {
  if (!is_grouped(group, writer, dst)) return;
  if (!hears(group, writer, call_.rank, call_.limits)) {
    return fail("a multicast to nodes from a rank of this node");
  }
  ChannelState& state = channel(false, group, writer);
  Op& op = add(OpKind::kReceive, dst.items(), {});
  op.message = {group, writer, state.next++, 0};
}

void Builder::aggregate(const BufferList& dst, const BufferList& src) {
  if (has_table(dst) || has_table(src)) fail("an aggregate of table entries");
  if (open_repeat_ >= 0) fail("an aggregate in a loop");
  if (call_.limits.one_node() || !call_.limits.is_leader(call_.rank)) {
    return fail("an aggregate at a rank that leads no node, or the only one");
  }
  constexpr Rank kAllLeaders = -2;  // apart from multicasts to them
  ChannelState& state = channel(true, Channel::kLeaders, kAllLeaders);
  Op& op = add(OpKind::kAggregate, dst.items(), src.items());
  op.message = {Channel::kLeaders, -1, state.next++, 0};
}

Message Builder::expect(OpKind kind, Channel channel_kind, Rank peer, const BufferList& dst) {
  if (!is_member(peer)) return {};
  const Rank writer = team_rank(peer);
  ChannelState& state = channel(false, channel_kind, writer);
  Op& op = add(kind, dst.items(), {});
  op.message = {channel_kind, writer, state.next++, 0};
  return op.message;
}

Message Builder::wait(Rank peer, std::int64_t bytes) {
  if (call_.params.two_sided) return land(peer, bytes);
  return expect(OpKind::kWait, Channel::kPair, peer, {});
}
Message Builder::wait_all(Rank peer, std::int64_t bytes) {
  if (!reaches_all()) return wait(peer, bytes);
  return expect(OpKind::kWait, Channel::kAll, peer, {});
}

// recv into the next landing, which is made anew if it is too short.
Message Builder::land(Rank peer, std::int64_t bytes) {
  if (bytes == kUnknown) fail("a message of unknown length in a two-sided call");
  if (landings_used_ == landings_.size()) landings_.push_back(allocate_scratch(bytes));
  Range& landing = landings_[landings_used_++];
  if (landing.length < bytes) landing = allocate_scratch(bytes);
  const Range here{landing.offset, std::max<std::int64_t>(bytes, 0)};
  const Message message = expect(OpKind::kRecv, Channel::kQueue, peer, scratch(here));
  landed_[{message.peer, message.index}] = here;
  return message;
}
void Builder::recv(Rank peer, const BufferList& dst) {
  expect(OpKind::kRecv, Channel::kQueue, peer, dst);
}

void Builder::strand() {
  if (in_loop_) fail("a strand starts inside a loop");
  if (scopes_.size() == 1) {
    strand_positions_.push_back(++position_);
    if (schedule_.strands.back().op_count > 0) begin_strand();
    return;
  }
  if (!is_emitting()) {
    forked_ = true;
    return;
  }
  if (schedule_.ops.size() == scopes_.back().part) return;
  fork();
}

void Builder::begin_strand() {
  schedule_.strands.push_back({.first_op = static_cast<std::uint32_t>(schedule_.ops.size())});
  landings_used_ = landings_.size();
}

Steps Builder::steps(std::int32_t count) {
  count = std::max(count, 0);
  if (in_steps_ || scopes_.size() > 1 || in_loop_) return {nullptr, 0, count};
  in_steps_ = true;
  steps_position_ = position_ + 1;
  steps_end_ = steps_position_ + count;
  const auto within = [&](std::int64_t position) {
    return static_cast<std::int32_t>(std::clamp(position, steps_position_, steps_end_) -
                                     steps_position_);
  };
  const std::int32_t first = within(window_.first);
  return {this, first, std::max(first, within(window_.last))};
}

void Builder::end_steps() {
  in_steps_ = false;
  position_ = steps_end_;
}

void Builder::phase(std::string_view name) {
  if (!is_word(name)) fail("a phase name that is not one printable word");
  if (!is_emitting()) return;
  schedule_.phases.push_back({static_cast<std::uint32_t>(schedule_.ops.size()), std::string(name)});
}

bool Builder::check_segment(std::int64_t segment_bytes) {
  if (segment_bytes <= 0) fail("a segment of no bytes");
  return segment_bytes > 0;
}

void Builder::begin_repeat(std::int64_t count) {
  if (in_loop_) fail("a loop inside a loop");
  in_loop_ = true;
  if (!is_emitting()) return;
  ++loops_;
  loop_channels_.clear();
  Op& op = add(OpKind::kRepeat, {}, {});
  op.count = count;
  open_repeat_ = static_cast<std::int64_t>(schedule_.ops.size()) - 1;
}

// A message numbered inside the loop moves on, per iteration, by as many as the loop body puts on
// its channel.
void Builder::apply_index_strides(Message& message, bool outgoing) {
  const ChannelState& state = channel(outgoing, message.channel,
                                      has_readers(message.channel) && outgoing ? 0 : message.peer);
  if (message.index >= state.loop_start) message.index_stride = state.next - state.loop_start;
}

void Builder::end_repeat() {
  in_loop_ = false;
  if (open_repeat_ < 0) return;
  const auto repeat = static_cast<std::size_t>(open_repeat_);
  if (repeat + 1 == schedule_.ops.size()) {  // nothing to repeat
    schedule_.ops.pop_back();
    --schedule_.strands.back().op_count;
    open_repeat_ = -1;
    return;
  }
  for (std::size_t i = repeat + 1; i < schedule_.ops.size(); ++i) {
    Op& op = schedule_.ops[i];
    const bool outgoing = is_outgoing(op.kind);
    if (outgoing || is_incoming(op.kind)) {
      apply_index_strides(op.message, outgoing);
    }
    for (std::uint32_t j = 0; j < op.dst_count + op.src_count; ++j) {
      Buffer& buffer = schedule_.buffers[op.first_buffer + j];
      if (buffer.space == Space::kSlot) apply_index_strides(buffer.message, false);
    }
  }
  Op& op = schedule_.ops[repeat];
  op.body = static_cast<std::uint32_t>(schedule_.ops.size() - repeat - 1);
  for (const std::int64_t key : loop_channels_) {
    ChannelState& state = channels_[key];
    state.next += static_cast<std::int32_t>((state.next - state.loop_start) * (op.count - 1));
  }
  open_repeat_ = -1;
}

void Builder::next_stage(Range scratch) {
  if (scratch.length % 8 != 0) fail("a stage learns whole int64 values");
  schedule_.learned = scratch;
}

Status Builder::end() {
  if (in_loop_) fail("a loop is not closed");
  if (schedule_.strands.size() > 1 && schedule_.strands.back().op_count == 0) {
    schedule_.strands.pop_back();
  }
  return status_;
}

Result<Schedule> Builder::finish() {
  if (Status status = end(); !status.ok()) return status;
  return std::move(schedule_);
}

}  // namespace carillon
