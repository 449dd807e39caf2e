// SPDX-License-Identifier: Apache-2.0
//
// Builder: how an algorithm writes its schedule. It numbers messages, merges adjacent ranges,
// drops empty transfers of data, empty loops and copies of bytes onto themselves, and keeps loops
// as loops.
//
//   void emit_example(const Call& call, Builder& b) {
//     const Message m = b.wait(left);
//     b.reduce(b.output(all), b.input(all), b.slot(m, all));
//     b.put(right, b.output(all));
//   }
//
// Errors (a peer out of range, lengths that differ, nested loops) are sticky: the first one is
// what finish() returns, so that emit code needs no checks of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stamped_map.h"
#include "base/status.h"
#include "schedule/members.h"
#include "schedule/schedule.h"

namespace carillon {

/// Whether b continues a in the same memory, so that the two are one range.
bool continues(const Buffer& a, const Buffer& b);

/// A list of buffers; a single buffer converts to a list of one. Short ones are not on the heap.
class BufferList {
 public:
  BufferList() {}
  BufferList(const Buffer& buffer) {  // NOLINT(google-explicit-constructor)
    few_[0] = buffer;
    size_ = 1;
  }
  BufferList(std::initializer_list<Buffer> buffers) {
    for (const Buffer& buffer : buffers) add(buffer);
  }
  void add(const Buffer& buffer) {
    if (size_ == kShort) many_.assign(few_.begin(), few_.end());
    if (size_ < kShort) {
      few_[size_] = buffer;
    } else {
      many_.push_back(buffer);
    }
    ++size_;
  }
  [[nodiscard]] std::span<const Buffer> items() const {
    return {size_ <= kShort ? few_.data() : many_.data(), size_};
  }
  [[nodiscard]] std::int64_t length() const;
  /// How many entries it has when those that touch are one.
  [[nodiscard]] std::int32_t runs() const;

 private:
  static constexpr std::size_t kShort = 2;
  union {
    std::array<Buffer, kShort> few_;  // without values as long as they are not in use
  };
  std::vector<Buffer> many_;  // all of them, if they are more
  std::size_t size_ = 0;
};

class Builder;

/// The steps 0..count-1 of a loop, or those of them that the Builder's window holds.
class Steps {
 public:
  class Iterator {
   public:
    Iterator(Builder* builder, std::int32_t step) : builder_(builder), step_(step) {}
    inline std::int32_t operator*() const;
    Iterator& operator++() {
      ++step_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return step_ != other.step_; }

   private:
    Builder* builder_;  // null: not the outermost loop
    std::int32_t step_;
  };
  Steps(Builder* builder, std::int32_t first, std::int32_t last)
      : builder_(builder), first_(first), last_(last) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  inline ~Steps();
  [[nodiscard]] Iterator begin() const { return {builder_, first_}; }
  [[nodiscard]] Iterator end() const { return {builder_, last_}; }

 private:
  Builder* builder_;
  std::int32_t first_, last_;
};

/// A part of a rank's schedule. A schedule has *positions*: each step of an outermost loop over
/// steps() is one, and so is what stands before, between and after such loops. A position's ops are
/// all of one strand.
struct Window {
  std::int64_t first = 0, last = INT64_MAX;  ///< positions first, ..., last-1
  [[nodiscard]] bool holds(std::int64_t position) const {
    return first <= position && position < last;
  }
};

class Builder {
 public:
  explicit Builder(const Call& call);
  /// Begins anew, in the memory that is there. Of a window that is not all, message numbers mean
  /// nothing: messages of a channel are then those in their order.
  void restart(const Call& call, Window window = {});
  /// The same for another rank of the call that is being emitted.
  void restart(Rank rank, const Local& local, Window window);
  /// Asked now and then while a schedule is emitted, which may be long: once it says true, what the
  /// algorithm calls throws Stopped.
  struct Stopped : std::exception {};
  void stop_if(std::function<bool()> stops) { stops_ = std::move(stops); }

  // Memory.
  [[nodiscard]] Buffer input(Range range) const { return placed(scopes_.back().input, range); }
  [[nodiscard]] Buffer output(Range range) const { return placed(scopes_.back().output, range); }
  [[nodiscard]] static Buffer scratch(Range range) {
    return {.space = Space::kScratch, .range = range};
  }
  [[nodiscard]] Buffer slot(const Message& message, Range range) const;
  /// Entry `peer` of the call's send (input) or receive (output) table.
  [[nodiscard]] Buffer input_of(Rank peer) const;
  [[nodiscard]] Buffer output_of(Rank peer) const;
  /// A part of the call's count_row: for copies in a first stage, which does not depend on the
  /// tables.
  [[nodiscard]] static Buffer counts(Range range) {
    return {.space = Space::kCounts, .range = range};
  }
  /// Scratch memory of this call; 64-byte aligned.
  Range allocate_scratch(std::int64_t bytes);

  // Ops (schedule.h says what each means).
  void copy(const BufferList& dst, const BufferList& src);
  /// The same with the lists as they are, each buffer a copy of its own though they touch.
  void copy_each(const BufferList& dst, const BufferList& src);
  void reduce(const Buffer& dst, const Buffer& left, const Buffer& right);
  void put(Rank peer, const BufferList& src);
  /// To every other rank: written once and read by all where reaches_all(), else a put to each, the
  /// rank after this one first.
  void put_all(const BufferList& src);
  void signal(Rank peer);
  void signal_all();
  /// The next message peer puts to this rank. `bytes`, its length, is needed where the call is
  /// two-sided: put is then a send, and wait a recv into scratch memory, which is what slot names.
  /// In `segments` each round uses the same scratch.
  Message wait(Rank peer, std::int64_t bytes = kUnknown);
  /// The next message peer puts to all.
  Message wait_all(Rank peer, std::int64_t bytes = kUnknown);
  /// To every other rank of the group that is in this rank's NUMA domain, and the next message that
  /// one of those puts so: written once where the group has all ranks of the domain.
  void put_domain(const BufferList& src);
  Message wait_domain(Rank peer, std::int64_t bytes = kUnknown);
  static constexpr std::int64_t kUnknown = -1;
  void send(Rank peer, const BufferList& src);
  void recv(Rank peer, const BufferList& dst);

  /// To all other ranks of a group (channel team or leaders), or of all other nodes (channel
  /// nodes), at once, at most Limits::multicast_bytes, or none; from one of them, its next message
  /// to them.
  /// A schedule has one writer to nodes. Groups and ranks are the team's, whatever group has been
  /// entered. Nothing where the group has one rank.
  void multicast(Channel group, const BufferList& src);
  void receive(Channel group, Rank writer, const BufferList& dst);

  /// What the leaders of all nodes give as `src`, each or some, combined by switches. Groups and
  /// ranks are the team's. Only where there are several nodes, and on leaders.
  void aggregate(const BufferList& dst, const BufferList& src);

  /// Whether the ranks are all those of one node, so that all can read one message.
  [[nodiscard]] bool reaches_all() const { return scopes_.back().reaches_all; }
  /// Whether a put_all of that many bytes takes more than one large slot.
  [[nodiscard]] bool put_all_is_large(std::int64_t bytes) const;

  // Structure.
  /// Starts a new strand; the ops that follow run concurrently with the strands before.
  void strand();
  /// Labels the ops that follow.
  void phase(std::string_view name);
  /// Algorithm steps 0..count-1: for (const std::int32_t step : b.steps(n)). Steps of an outermost
  /// loop that are not in the window are skipped: a step must not depend on those before it.
  [[nodiscard]] Steps steps(std::int32_t count);
  /// Calls body(Range) for the segments of `bytes`: once with the range of the first segment and
  /// a stride for the loop over all full ones, once more for a shorter last one. Ranges are
  /// relative: use block.sub(segment). Where the call is two-sided the loop is unrolled: the
  /// places in a queue of messages of any length cannot be counted by rounds.
  template <typename Body>
  void segments(std::int64_t bytes, std::int64_t segment_bytes, Body body) {
    if (!check_segment(segment_bytes)) return;
    const std::int64_t full = bytes / segment_bytes;
    if (call_.params.two_sided) {
      const std::size_t landings = landings_used_;
      for (std::int64_t done = 0; done < bytes; done += segment_bytes) {
        body(Range{done, done + segment_bytes < bytes ? segment_bytes : bytes - done, 0});
        landings_used_ = landings;
      }
      return;
    }
    if (full > 1) {
      begin_repeat(full);
      body(Range{0, segment_bytes, segment_bytes});
      end_repeat();
    } else if (full == 1) {
      body(Range{0, segment_bytes, 0});
    }
    if (bytes % segment_bytes != 0) body(Range{full * segment_bytes, bytes % segment_bytes, 0});
  }
  /// From here to leave(), ranks, input and output are those of `call`, made by a group of this
  /// call's ranks: its rank i is members[i]. Input and output lie in the given buffers' memory,
  /// from their offsets on. The strands of the group's part begin after what was emitted before
  /// and end before what comes after. Ranks that are no members do not call this. In place is
  /// what the memory says, not call.local; domains are the group's ranks'. The list of the members
  /// must last until leave().
  Call enter(const Call& call, const Members& members, const Buffer& input, const Buffer& output);
  void leave();
  /// Like enter for the same call, with a copy of the input in scratch: what is still to be put
  /// may then be overwritten.
  void enter_staged();
  /// This stage ends by learning the int64 values in `scratch`; emit is called again with
  /// stage + 1 and those values.
  void next_stage(Range scratch);

  /// The first error counts, as everywhere in the Builder.
  void fail(const Status& status);
  /// The schedule, or the first error.
  Result<Schedule> finish();

  // For who emits many schedules, or windows of one.
  /// The end of the emission; what has been built is then built().
  Status end();
  [[nodiscard]] const Schedule& built() const { return schedule_; }
  /// How many positions the whole schedule has, and at which ones its strands begin.
  [[nodiscard]] std::int64_t positions() const { return position_ + 1; }
  [[nodiscard]] std::span<const std::int64_t> strand_positions() const { return strand_positions_; }
  /// Whether it can be emitted by windows: not if a group has strands of its own.
  [[nodiscard]] bool has_windows() const { return !forked_; }

 private:
  // The call being emitted: the team's, or a group's within it.
  struct Scope {
    std::shared_ptr<const Call> own;  // the group's; null: the team's
    Members members;                  // as ranks of the scope around it
    Buffer input = {.space = Space::kInput};
    Buffer output = {.space = Space::kOutput};
    bool reaches_all = true;
    std::size_t begin = 0;         // its first op
    std::int32_t forks = 0;        // strands begun in it,
    std::int32_t fork_number = 0;  // by signals to this rank itself from this number on
    std::size_t part = 0;          // first op of its current strand
  };
  struct ChannelState {
    std::int32_t next = 0;        // number of the next message
    std::int32_t loop = 0;        // the last loop that used it,
    std::int32_t loop_start = 0;  // and `next` when that began
  };
  friend class Steps;

  void begin(Rank rank, Window window);
  bool check_segment(std::int64_t segment_bytes);
  void begin_repeat(std::int64_t count);
  void end_repeat();
  Message land(Rank peer, std::int64_t bytes);
  enum class Merge : std::uint8_t { kNever, kTouching };
  Op& add(OpKind kind, std::span<const Buffer> dst, std::span<const Buffer> src,
          Merge merge = Merge::kTouching);
  void add_copy(const BufferList& dst, const BufferList& src, Merge merge);
  void post(OpKind kind, Channel channel, Rank peer, const BufferList& src);
  Message expect(OpKind kind, Channel channel, Rank peer, const BufferList& dst);
  [[nodiscard]] Rank team_rank(Rank rank) const;
  [[nodiscard]] bool is_member(Rank rank);
  bool is_grouped(Channel group, Rank writer, const BufferList& list);
  [[nodiscard]] bool whole_node(const Members& members);
  // The group's ranks in this rank's domain, and the channel by which it writes to them.
  struct Near {
    std::vector<Rank> ranks;
    Channel channel = Channel::kPair;
  };
  [[nodiscard]] Near near() const;
  [[nodiscard]] static Buffer placed(const Buffer& base, Range range) {
    range.offset += base.range.offset;
    return {.space = base.space, .range = range};
  }
  [[nodiscard]] Buffer real(const Buffer& buffer) const;
  void begin(Scope scope);
  // The call that is being emitted: the innermost scope's.
  [[nodiscard]] const Call& here() const {
    return scopes_.back().own ? *scopes_.back().own : call_;
  }
  void begin_strand();
  void fork();
  ChannelState& channel(bool outgoing, Channel channel, Rank peer);
  [[nodiscard]] bool is_emitting() const { return window_.holds(position_); }
  void end_steps();
  std::uint32_t append(std::span<const Buffer> list, Merge merge);
  void apply_index_strides(Message& message, bool outgoing);
  bool same_memory(const Buffer& dst, const Buffer& src) const;
  void fail(std::string message);

  Call call_;                  // the team's
  std::vector<Scope> scopes_;  // the team's, and the groups entered
  Schedule schedule_;
  StampedMap<ChannelState> channels_;
  // Two-sided: scratch that messages land in, in use up to landings_used_ (or by another strand),
  // and which message is where (by writer and number).
  std::vector<Range> landings_;
  std::size_t landings_used_ = 0;
  std::map<std::pair<Rank, std::int32_t>, Range> landed_;
  std::int64_t open_repeat_ = -1;            // index of the repeat op, or -1
  std::int32_t loops_ = 0;                   // repeats so far,
  std::vector<std::int64_t> loop_channels_;  // and the channels used by the open one
  // What is emitted: of the window only.
  Window window_;
  std::int64_t position_ = 0;
  bool in_steps_ = false, in_loop_ = false;  // whether of the window or not
  std::int64_t steps_position_ = 0;          // of the loop's step 0,
  std::int64_t steps_end_ = 0;               // and behind it
  bool forked_ = false;
  std::vector<std::int64_t> strand_positions_;
  Op dropped_;
  Status status_;
  std::function<bool()> stops_;
  std::uint64_t calls_ = 0;
};

inline std::int32_t Steps::Iterator::operator*() const {
  if (builder_ != nullptr) builder_->position_ = builder_->steps_position_ + step_;
  return step_;
}

inline Steps::~Steps() {
  if (builder_ != nullptr) builder_->end_steps();
}

}  // namespace carillon
