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

#include <initializer_list>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/schedule.h"

namespace carillon {

/// A list of buffers; a single buffer converts to a list of one.
class BufferList {
 public:
  BufferList() = default;
  BufferList(const Buffer& buffer) : buffers_{buffer} {}  // NOLINT(google-explicit-constructor)
  BufferList(std::initializer_list<Buffer> buffers) : buffers_(buffers) {}
  void add(const Buffer& buffer) { buffers_.push_back(buffer); }
  [[nodiscard]] const std::vector<Buffer>& items() const { return buffers_; }
  [[nodiscard]] std::int64_t length() const;

 private:
  std::vector<Buffer> buffers_;
};

/// The numbers 0..count-1.
class Steps {
 public:
  class Iterator {
   public:
    explicit Iterator(std::int32_t step) : step_(step) {}
    std::int32_t operator*() const { return step_; }
    Iterator& operator++() {
      ++step_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return step_ != other.step_; }

   private:
    std::int32_t step_;
  };
  explicit Steps(std::int32_t count) : count_(count) {}
  [[nodiscard]] static Iterator begin() { return Iterator(0); }
  [[nodiscard]] Iterator end() const { return Iterator(count_ > 0 ? count_ : 0); }

 private:
  std::int32_t count_;
};

class Builder {
 public:
  explicit Builder(const Call& call);

  // Memory.
  [[nodiscard]] Buffer input(Range range) const;
  [[nodiscard]] Buffer output(Range range) const;
  [[nodiscard]] Buffer scratch(Range range) const;
  [[nodiscard]] Buffer slot(const Message& message, Range range) const;
  /// Entry `peer` of the call's send (input) or receive (output) table.
  [[nodiscard]] Buffer input_of(Rank peer) const;
  [[nodiscard]] Buffer output_of(Rank peer) const;
  /// Scratch memory of this call; 64-byte aligned.
  Range allocate_scratch(std::int64_t bytes);

  // Ops (schedule.h says what each means).
  void copy(const BufferList& dst, const BufferList& src);
  void reduce(const Buffer& dst, const Buffer& left, const Buffer& right);
  void put(Rank peer, const BufferList& src);
  /// To every other rank: written once and read by all where reaches_all(), else a put to each.
  void put_all(const BufferList& src);
  void signal(Rank peer);
  void signal_all();
  /// The next message peer puts to this rank. `bytes`, its length, is needed where the call is
  /// two-sided: put is then a send, and wait a recv into scratch memory, which is what slot names.
  /// In `segments` each round uses the same scratch.
  Message wait(Rank peer, std::int64_t bytes = kUnknown);
  /// The next message peer puts to all.
  Message wait_all(Rank peer, std::int64_t bytes = kUnknown);
  static constexpr std::int64_t kUnknown = -1;
  void send(Rank peer, const BufferList& src);
  void recv(Rank peer, const BufferList& dst);

  /// Whether the ranks are all those of one node, so that all can read one message.
  [[nodiscard]] bool reaches_all() const { return scopes_.back().reaches_all; }
  /// Whether a put_all of that many bytes takes more than one large slot.
  [[nodiscard]] bool put_all_is_large(std::int64_t bytes) const;

  // Structure.
  /// Starts a new strand; the ops that follow run concurrently with the strands before.
  void strand();
  /// Labels the ops that follow.
  void phase(std::string_view name);
  /// Algorithm steps 0..count-1: for (const std::int32_t step : Builder::steps(n)).
  [[nodiscard]] static Steps steps(std::int32_t count) { return Steps(count); }
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
  /// what the memory says, not call.local.
  Call enter(const Call& call, std::span<const Rank> members, const Buffer& input,
             const Buffer& output);
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

 private:
  // The call being emitted: the team's, or a group's within it.
  struct Scope {
    Call call;
    std::vector<Rank> members;  // as ranks of the team; empty: all of them
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
    std::int32_t loop_start = 0;  // `next` when the current loop began
  };

  bool check_segment(std::int64_t segment_bytes);
  void begin_repeat(std::int64_t count);
  void end_repeat();
  Message land(Rank peer, std::int64_t bytes);
  Op& add(OpKind kind, const BufferList& dst, const BufferList& src);
  void post(OpKind kind, Channel channel, Rank peer, const BufferList& src);
  Message expect(OpKind kind, Channel channel, Rank peer, const BufferList& dst);
  [[nodiscard]] Rank team_rank(Rank rank) const;
  [[nodiscard]] bool is_member(Rank rank);
  [[nodiscard]] bool whole_node(const Scope& scope) const;
  [[nodiscard]] Buffer placed(const Buffer& base, Range range) const;
  [[nodiscard]] Buffer real(const Buffer& buffer) const;
  void begin(Scope scope);
  void begin_strand();
  void fork();
  ChannelState& channel(bool outgoing, Channel channel, Rank peer);
  void apply_index_strides(Message& message, bool outgoing);
  bool same_memory(const Buffer& dst, const Buffer& src) const;
  void fail(std::string message);

  Call call_;                  // the team's
  std::vector<Scope> scopes_;  // the team's, and the groups entered
  Schedule schedule_;
  std::unordered_map<std::int64_t, ChannelState> channels_;
  // Two-sided: scratch that messages land in, in use up to landings_used_ (or by another strand),
  // and which message is where (by writer and number).
  std::vector<Range> landings_;
  std::size_t landings_used_ = 0;
  std::map<std::pair<Rank, std::int32_t>, Range> landed_;
  std::int64_t open_repeat_ = -1;  // index of the repeat op, or -1
  Status status_;
};

}  // namespace carillon
