// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>

#include "engine/plan.h"
#include "schedule/builder.h"
#include "schedule/lifetimes.h"
#include "schedule/streams.h"
#include "transport/shm/layout.h"

namespace carillon {
namespace {

class Lowering {
 public:
  Lowering(const Schedule& schedule, const Call& call)
      : schedule_(schedule), call_(call), lifetimes_(schedule, call) {}

  Result<Plan> run() {
    plan_.scratch_bytes = schedule_.scratch_bytes;
    plan_.stream_bytes = call_.limits.stream_bytes();
    plan_.two_sided = call_.params.two_sided;
    plan_.one_way = is_one_way(schedule_);
    plan_.learned = schedule_.learned;
    plan_.input_bytes = input_bytes(call_.shared, call_.local, schedule_.rank);
    plan_.output_bytes = output_bytes(call_.shared, call_.local, schedule_.rank);
    find_landings();
    find_gathers();
    count_messages();
    for (const ChannelUse& use : plan_.uses) {
      if (use.count > INT32_MAX) fail("more messages than can be numbered (larger segments?)");
    }
    if (use_index_.size() > std::size_t{UINT16_MAX} + 1) {
      fail("more channels than can be numbered (another algorithm for so many ranks?)");
    }
    plan_.by_tables = std::all_of(plan_.uses.begin(), plan_.uses.end(),
                                  [](const ChannelUse& use) { return use.table != Table::kNone; });
    check_groups();
    releases_ = release_points(schedule_);
    for (const Strand& strand : schedule_.strands) {
      plan_.strand_starts.push_back(static_cast<std::uint32_t>(plan_.code.size()));
      lower_ops(strand.first_op, strand.first_op + strand.op_count);
      plan_.code.push_back({});
    }
    plan_.slot_bases = static_cast<std::uint32_t>(slots_.size());
    plan_.slot_writers.resize(slots_.size());
    for (const auto& [key, slot] : slots_) plan_.slot_writers[slot] = std::get<1>(key);
    set_expected_lengths();
    if (!status_.ok()) return status_;
    return std::move(plan_);
  }

 private:
  using SlotKey = std::tuple<Channel, Rank, std::int32_t>;

  static Flow flow_of(const Op& op) {
    if (op.kind == OpKind::kAggregate) return Flow::kSwitch;
    const bool out = is_outgoing(op.kind);
    switch (op.message.channel) {
      case Channel::kAll: return out ? Flow::kOutAll : Flow::kInAll;
      case Channel::kDomain: return out ? Flow::kOutDomain : Flow::kInDomain;
      case Channel::kTeam: return out ? Flow::kOutTeam : Flow::kInTeam;
      case Channel::kLeaders: return out ? Flow::kOutLeaders : Flow::kInLeaders;
      case Channel::kNodes: return out ? Flow::kOutNodes : Flow::kInNodes;
      default: return out ? Flow::kOutPair : Flow::kInPair;
    }
  }

  // A node numbers what comes to it from all writers, in an order that all its ranks must agree on.
  // Where each rank has a node for itself, the other groups are one, and so are their numbers.
  void check_groups() {
    const auto to_nodes =
        std::count_if(plan_.uses.begin(), plan_.uses.end(), [](const ChannelUse& use) {
          return use.flow == Flow::kOutNodes || use.flow == Flow::kInNodes;
        });
    if (to_nodes > 1) fail("multicasts to nodes from several ranks");
    const auto& nodes = call_.limits.nodes;
    if (!nodes || nodes->count() != nodes->ranks()) return;
    bool used[2] = {};
    for (const Op& op : schedule_.ops) {
      if (op.message.channel == Channel::kTeam) used[0] = true;
      if (op.message.channel == Channel::kLeaders && op.kind != OpKind::kAggregate) used[1] = true;
    }
    if (used[0] && used[1]) fail("multicasts to two groups that are one");
  }

  std::uint16_t use_of(const Op& op) {
    const Flow flow = flow_of(op);
    const Rank peer = std::max(op.message.peer, 0);  // 0: there are several
    const auto [found, fresh] =
        use_index_.try_emplace({flow, peer}, static_cast<std::uint16_t>(plan_.uses.size()));
    if (fresh) plan_.uses.push_back({.flow = flow, .peer = peer});
    return found->second;
  }

  [[nodiscard]] std::span<const Buffer> data(const Op& op) const {
    return is_outgoing(op.kind) ? schedule_.src(op) : schedule_.dst(op);
  }

  void count_messages() {
    std::int64_t iterations = 1;
    std::size_t loop_end = 0;
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      const Op& op = schedule_.ops[i];
      if (i >= loop_end) iterations = 1;
      if (op.kind == OpKind::kRepeat) {
        iterations = op.count;
        loop_end = i + op.body + 1;
      }
      const bool stream = op.kind == OpKind::kSend || op.kind == OpKind::kRecv;
      if (!is_outgoing(op.kind) && !is_incoming(op.kind) && op.kind != OpKind::kAggregate) continue;
      ChannelUse& use = plan_.uses[use_of(op)];
      if (!stream) {
        use.count += iterations;
      } else if (iterations != 1 || use.table != Table::kNone) {
        fail("a send or recv inside a loop, or after one of table-given length");
      } else {
        count_stream(op, use);
      }
    }
  }

  void count_stream(const Op& op, ChannelUse& use) {
    if (op.message.index != streams_[&use - plan_.uses.data()]++) {
      fail("sends or recvs of a channel that do not stand in the order of their numbers");
    }
    stream_starts_.emplace(&op, static_cast<std::int32_t>(use.count));
    use.streams = true;
    std::int64_t length = 0;
    for (const Buffer& buffer : data(op)) {
      length += buffer.range.length;
      if (buffer.table == Table::kNone) continue;
      if (use.count != 0 || data(op).size() != 1) {
        fail("a table-given length beside other data of the same channel");
      }
      use.table = buffer.table;
      use.entry = buffer.entry;
    }
    if (use.table == Table::kNone) use.count += stream_messages(length, false, plan_.stream_bytes);
  }

  std::uint32_t slot_base(const Message& message) {
    const SlotKey key{message.channel, message.peer, message.index};
    const auto [found, fresh] = slots_.try_emplace(key, static_cast<std::uint32_t>(slots_.size()));
    return kBaseSlots + found->second;
  }

  Operand operand(const Buffer& buffer) {
    Operand out{.table = buffer.table,
                .entry = buffer.entry,
                .offset = buffer.range.offset,
                .stride = buffer.range.stride};
    switch (buffer.space) {
      case Space::kInput: out.base = kBaseInput; break;
      case Space::kOutput: out.base = kBaseOutput; break;
      case Space::kScratch: out.base = kBaseScratch; break;
      case Space::kCounts: out.base = kBaseCounts; break;
      case Space::kSlot:
        out.base = slot_base(buffer.message);
        note_slot_use(buffer, out.base);
        break;
    }
    return out;
  }

  void note_slot_use(const Buffer& buffer, std::uint32_t base) {
    std::int64_t& needed = needed_[base];
    std::int64_t last = buffer.range.offset + buffer.range.length;
    if (buffer.message.index_stride == 0) last += buffer.range.stride * (iterations_ - 1);
    needed = std::max(needed, last);
  }

  // A wait's message must hold all that is read of it.
  void set_expected_lengths() {
    for (Instruction& instruction : plan_.code) {
      if (instruction.action == Action::kWait) instruction.length = needed_[instruction.dst.base];
    }
  }

  void lower_ops(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      const Op& op = schedule_.ops[i];
      if (op.kind == OpKind::kRepeat) {
        plan_.code.push_back({.action = Action::kRepeat, .count = op.count});
        iterations_ = op.count;
        lower_ops(i + 1, i + 1 + op.body);
        iterations_ = 1;
        plan_.code.push_back({.action = Action::kEndRepeat});
      } else {
        if (const auto found = overwritten_.find(i); found != overwritten_.end()) {
          flush(found->second);
        }
        lower_op(op);
      }
      release_after(first, i);
      if (op.kind == OpKind::kRepeat) i += op.body;
    }
  }

  // Messages whose last use is op i and that must be counted.
  void release_after(std::size_t first, std::size_t i) {
    for (std::size_t w = first; w <= i; ++w) {
      if (releases_[w] != static_cast<std::int64_t>(i)) continue;
      const Op& wait = schedule_.ops[w];
      const std::uint16_t use = use_of(wait);
      if (plan_.uses[use].count <= call_.limits.window) continue;
      const Message& m = wait.message;
      if (const auto of = gathers_of_.find({m.channel, m.peer, m.index}); of != gathers_of_.end()) {
        flush(of->second);
      }
      plan_.code.push_back({.action = Action::kRelease,
                            .use = use,
                            .index = wait.message.index,
                            .index_stride = wait.message.index_stride});
    }
  }

  // Messages that may stand in the output from their wait on.
  void find_landings() {
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      if (schedule_.ops[i].kind != OpKind::kWait) continue;
      if (const auto copy = lifetimes_.landing(i)) {
        const Message& message = schedule_.ops[i].message;
        landings_[{message.channel, message.peer, message.index}] = *copy;
      }
    }
  }

  // Puts to other nodes whose bytes the network may take from where they stand, and what must wait
  // until it has; and recvs from there, whose places it may fill.
  void find_gathers() {
    if (call_.limits.gather_entries <= 1) return;
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      if (!may_gather(schedule_.ops[i]) || gathers_.size() == UINT16_MAX) continue;
      const auto id = static_cast<std::uint16_t>(gathers_.size() + 1);
      gathers_[&schedule_.ops[i]] = id;
      plan_.gathers.push_back({.hasty = plan_.two_sided && lifetimes_.is_hasty(i)});
      for (const std::size_t op : lifetimes_.overwriters(i)) overwritten_[op].push_back(id);
      for (const Buffer& source : schedule_.src(schedule_.ops[i])) {
        if (source.space != Space::kSlot) continue;
        const Message& m = source.message;
        std::vector<std::uint16_t>& ids = gathers_of_[{m.channel, m.peer, m.index}];
        if (ids.empty() || ids.back() != id) ids.push_back(id);
      }
    }
  }

  [[nodiscard]] bool may_gather(const Op& op) const {
    if (op.kind != OpKind::kPut && op.kind != OpKind::kSend && op.kind != OpKind::kRecv)
      return false;
    if (is_shared(op.message.channel)) return false;
    if (call_.limits.share_node(schedule_.rank, op.message.peer)) return false;
    std::int64_t length = 0;
    bool by_table = false;
    for (const Buffer& buffer : data(op)) {
      length += buffer.range.length;
      by_table = by_table || buffer.table != Table::kNone;
    }
    return by_table || length > call_.limits.inline_bytes;
  }

  void flush(const std::vector<std::uint16_t>& puts) {
    plan_.code.push_back({.action = Action::kFlush,
                          .first_piece = static_cast<std::uint32_t>(plan_.flushes.size()),
                          .piece_count = static_cast<std::uint32_t>(puts.size())});
    plan_.flushes.insert(plan_.flushes.end(), puts.begin(), puts.end());
  }

  // Where the message lands; null: nowhere.
  [[nodiscard]] const Op* landing_of(const Message& message) const {
    const auto found = landings_.find({message.channel, message.peer, message.index});
    return found == landings_.end() ? nullptr : &schedule_.ops[found->second];
  }

  // Such bytes need not be copied for the reader.
  [[nodiscard]] bool lasts(const Op& op, const Buffer& source) const {
    const auto index = static_cast<std::size_t>(&op - schedule_.ops.data());
    if (source.space != Space::kSlot) return lifetimes_.lasts(index, source);
    const Op* const copy = landing_of(source.message);
    if (copy == nullptr) return false;
    const auto brings = static_cast<std::size_t>(copy - schedule_.ops.data());
    return lifetimes_.lasts_landed(index, source, brings);
  }

  void lower_wait(const Op& op) {
    Instruction instruction{.action = Action::kWait,
                            .use = use_of(op),
                            .index = op.message.index,
                            .index_stride = op.message.index_stride,
                            .dst = {.base = slot_base(op.message)}};
    if (const Op* const copy = landing_of(op.message)) {
      instruction.a = operand(schedule_.dst(*copy)[0]);
      instruction.count = schedule_.dst(*copy)[0].range.length;
    }
    plan_.code.push_back(instruction);
  }

  void lower_op(const Op& op) {
    switch (op.kind) {
      case OpKind::kCopy: lower_copy(op); break;
      case OpKind::kReduce: lower_reduce(op); break;
      case OpKind::kPut:
      case OpKind::kSignal: lower_transfer(op, Action::kPut); break;
      case OpKind::kSend: lower_transfer(op, Action::kSend); break;
      case OpKind::kRecv: lower_transfer(op, Action::kRecv); break;
      case OpKind::kWait: lower_wait(op); break;
      case OpKind::kRepeat: break;
      case OpKind::kMulticast: lower_transfer(op, Action::kMulticast); break;
      case OpKind::kReceive: lower_transfer(op, Action::kReceive); break;
      case OpKind::kAggregate: lower_aggregate(op); break;
    }
  }

  void lower_aggregate(const Op& op) {
    const auto dst = schedule_.dst(op);
    const auto src = schedule_.src(op);
    Instruction instruction{.action = Action::kAggregate,
                            .use = use_of(op),
                            .index = op.message.index,
                            .first_piece = op.src_count,
                            .piece_count = op.dst_count};
    if (!src.empty()) instruction.a = operand(src[0]);
    if (!dst.empty()) instruction.dst = operand(dst[0]);
    instruction.length = !src.empty()   ? src[0].range.length
                         : !dst.empty() ? dst[0].range.length
                                        : 0;
    instruction.count = instruction.length / aggregate_unit(call_.shared);
    plan_.code.push_back(instruction);
  }

  void lower_reduce(const Op& op) {
    const Buffer& dst = schedule_.dst(op)[0];
    plan_.code.push_back({.action = Action::kReduce,
                          .length = dst.range.length,
                          .count = dst.range.length / call_.shared.element_bytes,
                          .dst = operand(dst),
                          .a = operand(schedule_.src(op)[0]),
                          .b = operand(schedule_.src(op)[1])});
  }

  // A copy between two lists becomes one copy per run of bytes that is whole in both.
  void lower_copy(const Op& op) {
    copies_ = packs(op) ? Work::kPack : Work::kRotate;
    const auto dst = schedule_.dst(op);
    const auto src = schedule_.src(op);
    if (dst.size() == 1 && src.size() == 1) {
      add_copy(operand(dst[0]), operand(src[0]), dst[0].range.length);
      return;
    }
    if (has_table(dst) || has_table(src)) fail("a table-given length in a list of a copy");
    std::size_t d = 0, s = 0;
    std::int64_t d_used = 0, s_used = 0;
    while (d < dst.size() && s < src.size()) {
      const std::int64_t run = std::min(dst[d].range.length - d_used, src[s].range.length - s_used);
      Operand to = operand(dst[d]);
      Operand from = operand(src[s]);
      to.offset += d_used;
      from.offset += s_used;
      add_copy(to, from, run);
      d_used += run;
      s_used += run;
      if (d_used == dst[d].range.length) ++d, d_used = 0;
      if (s_used == src[s].range.length) ++s, s_used = 0;
    }
  }

  // By send and recv messages come to scratch memory that is theirs alone.
  [[nodiscard]] bool was_received(const Operand& memory, std::int64_t length) const {
    if (memory.base != kBaseScratch) return false;
    auto after = received_.upper_bound(memory.offset);
    if (after == received_.begin()) return false;
    --after;
    return memory.offset + length <= after->first + after->second;
  }

  // Does the copy bring together, in scratch memory, what the next put of its strand begins with?
  [[nodiscard]] bool packs(const Op& op) const {
    const Buffer& to = schedule_.dst(op)[0];
    if (to.space != Space::kScratch) return false;
    auto next = static_cast<std::size_t>(&op - schedule_.ops.data());
    const auto passed_over = [](OpKind kind) {
      return kind == OpKind::kCopy || kind == OpKind::kRepeat;
    };
    while (next < schedule_.ops.size() && passed_over(schedule_.ops[next].kind)) ++next;
    if (next == schedule_.ops.size() || !is_outgoing(schedule_.ops[next].kind)) return false;
    const auto sent = merged(schedule_.src(schedule_.ops[next]));
    return sent.size() == 1 && sent[0].space == Space::kScratch &&
           sent[0].range.offset == to.range.offset;
  }

  void add_copy(Operand dst, Operand src, std::int64_t length) {
    const bool from_message = src.base >= kBaseSlots || was_received(src, length);
    const Work work = from_message ? Work::kUnpack : copies_;
    plan_.code.push_back(
        {.action = Action::kCopy, .work = work, .length = length, .dst = dst, .a = src});
  }

  void lower_transfer(const Op& op, Action action) {
    Instruction instruction{.action = action,
                            .use = use_of(op),
                            .index = op.message.index,
                            .index_stride = op.message.index_stride};
    if (action == Action::kSend || action == Action::kRecv) {
      instruction.index = stream_starts_.at(&op);
      instruction.index_stride = 0;
    }
    const auto runs = merged(data(op));
    if (action == Action::kRecv) note_received(runs);
    for (const Buffer& buffer : runs) instruction.length += buffer.range.length;
    if (const auto found = gathers_.find(&op); found != gathers_.end()) {
      instruction.gather = found->second;
    }
    if (runs.size() == 1) {
      (is_incoming(op.kind) ? instruction.dst : instruction.a) = operand(runs[0]);
    }
    if (runs.size() != 1 || instruction.gather != 0) add_pieces(runs, instruction);
    const bool posts = action == Action::kPut || action == Action::kSend;
    instruction.lasts = posts && runs.size() == 1 && lasts(op, runs[0]);
    const bool fits = instruction.a.table == Table::kNone &&
                      instruction.length <= std::int64_t{shm::kInlineBytes};
    plan_.posts_long = plan_.posts_long || (posts && !fits);
    plan_.code.push_back(instruction);
  }

  void note_received(const std::vector<Buffer>& runs) {
    for (const Buffer& buffer : runs) {
      if (buffer.space == Space::kScratch) received_[buffer.range.offset] = buffer.range.length;
    }
  }

  // The list with buffers that touch made one.
  static std::vector<Buffer> merged(std::span<const Buffer> list) {
    std::vector<Buffer> runs;
    for (const Buffer& buffer : list) {
      if (!runs.empty() && continues(runs.back(), buffer)) {
        runs.back().range.length += buffer.range.length;
      } else {
        runs.push_back(buffer);
      }
    }
    return runs;
  }

  void add_pieces(const std::vector<Buffer>& runs, Instruction& instruction) {
    const auto first = static_cast<std::uint32_t>(plan_.pieces.size());
    const auto count = static_cast<std::uint32_t>(runs.size());
    // One message: of several, each has a list of its own.
    bool fixed = instruction.action == Action::kPut || instruction.length <= plan_.stream_bytes;
    for (const Buffer& buffer : runs) {
      plan_.pieces.push_back({operand(buffer), buffer.range.length});
      fixed = fixed && buffer.space != Space::kSlot && buffer.table == Table::kNone &&
              (buffer.range.stride == 0 || iterations_ == 1);
    }
    if (count != 1) {
      instruction.first_piece = first;
      instruction.piece_count = count;
    }
    if (instruction.gather == 0) return;
    PlanGather& gather = plan_.gathers[instruction.gather - 1U];
    gather = {first, count, plan_.uses[instruction.use].peer, fixed, gather.hasty};
  }

  void fail(std::string_view what) {
    if (status_.ok()) {
      status_ = Status(Code::kUnsupported, std::string(collective_name(call_.shared.collective)) +
                                               ": the schedule has " + std::string(what) +
                                               ", which the engine cannot run");
    }
  }

  const Schedule& schedule_;
  const Call& call_;
  Plan plan_;
  Status status_;
  std::map<std::pair<Flow, Rank>, std::uint16_t> use_index_;
  std::map<SlotKey, std::uint32_t> slots_;
  std::map<std::uint32_t, std::int64_t> needed_;
  std::map<const Op*, std::int32_t> stream_starts_;
  std::map<std::ptrdiff_t, std::int32_t> streams_;  // so many, by use
  std::map<SlotKey, std::size_t> landings_;  // messages that may: the copies that would bring them
  std::map<const Op*, std::uint16_t> gathers_;                     // Instruction::gather
  std::map<std::size_t, std::vector<std::uint16_t>> overwritten_;  // by op: what it waits for
  std::map<SlotKey, std::vector<std::uint16_t>> gathers_of_;       // by message: what reads it
  std::vector<std::int64_t> releases_;
  Lifetimes lifetimes_;
  std::map<std::int64_t, std::int64_t> received_;  // scratch that recvs write: offset, length
  Work copies_ = Work::kRotate;
  std::int64_t iterations_ = 1;
};

}  // namespace

Result<Plan> lower(const Schedule& schedule, const Call& call) {
  Result<Plan> plan = Lowering(schedule, call).run();
  if (plan.ok()) complete(plan.value());
  return plan;
}

}  // namespace carillon
