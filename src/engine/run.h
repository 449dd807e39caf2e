// SPDX-License-Identifier: Apache-2.0
//
// A run: one collective in flight at this rank, a plan bound to a call's buffers. progress() moves
// it on as far as it goes without waiting; nothing in it allocates once the run object has served
// a plan of the same shape before.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "carillon/carillon.h"
#include "engine/message_ways.h"
#include "engine/patience.h"
#include "engine/plan.h"
#include "engine/sparse_plan.h"
#include "reduce/kernels.h"
#include "schedule/streams.h"
#include "switch/protocol/protocol.h"
#include "transport/net/fetches.h"
#include "transport/net/gathers.h"
#include "transport/net/links.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/pool.h"

namespace carillon {

class Team;

/// How this call's elements are combined.
struct Reduction {
  Kernel kernel = nullptr;  ///< a predefined operator; null: use `user`
  crl_op_fn_t user = nullptr;
  void* user_arg = nullptr;
  /// What switches compute, if the schedule has them do it; of one operand alone nothing changes.
  aggregate::Op switch_op = aggregate::Op::kOr;
  aggregate::Type switch_type = aggregate::Type::kInt32;
};

/// What a call binds to a plan.
struct Binding {
  const void* input = nullptr;
  void* output = nullptr;
  Reduction reduction;
  std::int32_t element_bytes = 1;
  Tables tables;
  /// Equal on all ranks if they make the same call; tells calls that do not fit together.
  std::uint16_t signature = 0;
  std::string_view collective;  ///< its name, for people; a constant
};

class Run {
 public:
  Run() = default;
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  enum class State { kIdle, kDeferred, kRunning, kDone, kFailed };

  [[nodiscard]] State state() const { return state_.load(std::memory_order_relaxed); }
  /// Any thread. What else the run has to tell, it tells who holds the engine's lock.
  [[nodiscard]] bool done() const {
    return state_.load(std::memory_order_acquire) >= State::kDone;  // partner: set_state
  }
  /// So it has ended, and nobody has anything to do with its buffers any more. Of one that has
  /// failed that is so once the lock is there: until then its team takes them back.
  [[nodiscard]] bool ended_well() const {
    return state_.load(std::memory_order_acquire) == State::kDone;  // partner: set_state
  }
  /// May a thread move it on that is not the caller's? Not if it calls the caller's operator.
  [[nodiscard]] bool needs_caller() const { return binding_.reduction.user != nullptr; }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] std::uint64_t collective() const { return collective_; }
  [[nodiscard]] Team& team() const { return *team_; }
  /// Of this call in its place among the team's: the next equal call has another one.
  [[nodiscard]] std::uint16_t signature() const {
    return static_cast<std::uint16_t>(binding_.signature + collective_);
  }
  [[nodiscard]] std::string_view collective_name() const { return binding_.collective; }
  [[nodiscard]] const Tables& tables() const { return binding_.tables; }
  /// Are any of the call's bytes there? Of calls that are not planned yet, a buffer counts whole.
  [[nodiscard]] bool has_buffer_in(std::span<const std::byte> memory) const;

  /// Takes the call's buffers (they stay the caller's) and copies of its tables.
  void prepare(Team& team, const Binding& binding);
  void set_plan(const std::shared_ptr<const Plan>& whole);
  /// For the next call of the same plan and binding: only the buffers are others.
  void bind_again(const void* input, void* output);
  /// The plan comes when the run begins: the team is not ready yet, or calls before it decide.
  void await_plan() { planned_ = brief_ = false; }
  [[nodiscard]] bool has_plan() const { return planned_; }
  /// TableFact::kNote of the call. Its tables were given to prepare.
  void set_note(std::int64_t note) { table_storage_.back() = note; }
  /// Takes the run's message numbers. Must happen in the same order on all ranks of a team.
  void begin(std::uint64_t collective);
  /// May run_briefly be called instead, if nothing is measured?
  [[nodiscard]] bool is_brief() const { return brief_; }
  /// begin(), then progress() by a shorter way, to the end if all comes within so many polls of it.
  /// True: it has; no state says so yet. False: the run has begun and goes on like any other.
  bool run_briefly(std::uint64_t collective, int polls);
  /// Goes on with the plan of the next stage; scratch stays. Only the team's oldest may: it tells
  /// that it has released all of this stage, whose channels the next one may use again.
  void next_stage(const std::shared_ptr<const Plan>& plan);
  /// Moves on; true when the plan is finished. A wait polls `polls` times before it gives up.
  bool progress(int polls);
  /// Ends the run with an error. The team fails next, and takes the caller's memory back:
  void fail(Status status);
  /// Readers on this node that have not released a message find that it is not good any more.
  void withdraw_messages();
  /// The processes from whose memory gets are under way.
  [[nodiscard]] std::vector<int> gets_from() const;
  /// The team fails: writers of messages that are to be placed hear of all receives for them.
  void tell_awaited();
  /// Messages that are to be placed are not awaited any more.
  void stop_awaiting();
  /// May ranks of other nodes that are alive still get what this run exposed?
  [[nodiscard]] bool may_be_read();
  /// The network may reach none of the caller's memory any more.
  void take_back();
  void set_state(State state) { state_.store(state, std::memory_order_release); }
  /// Is this run waiting for a message of `rank` that is not there? In vain, then, if that rank
  /// has completed the collective.
  [[nodiscard]] bool waits_in_vain(int rank) const;
  /// Can it not go on now without this rank: a message of it, or room for one to it?
  [[nodiscard]] bool waits_for(int rank) const;
  [[nodiscard]] std::uint64_t position() const;  ///< another value when it has moved on
  /// So long is a message that there is no room for, nor can any be made; 0: there is none.
  [[nodiscard]] std::uint64_t wants_room() const { return wants_room_; }
  /// The run's plan is done: counts what it had from other nodes, and what it copied.
  void note_received(net::Links& links);
  /// The run has become the team's oldest: counts kept back so far may be told.
  void tell_releases();
  /// The values the finished stage learned.
  [[nodiscard]] std::span<const std::int64_t> learned() const;
  [[nodiscard]] const Plan& plan() const { return *plan_; }

 private:
  struct Strand {
    std::uint32_t at = 0;
    std::uint32_t loop = 0;  // instruction after the repeat that it is in; 0: in none
    std::int64_t iteration = 0;
    std::int64_t iterations = 0;
    /// Messages of the current send or recv already moved; aggregate: its ticket, from 1 on.
    std::int64_t stream = 0;
    std::int64_t copied = 0;  // bytes of the put or send before, written together with their copy
    int read_ahead = 0;       // lent messages that have landed before their wait
    bool lends = false;       // the current send: its readers read where its bytes are
    bool finished = false;

    // One by one: assigned as a whole they are made on the stack and read from there in words wider
    // than those just written, for which a processor waits until these have left it.
    void begin_at(std::uint32_t start) {
      at = start;
      loop = 0;
      iteration = 0;
      iterations = 0;
      stream = 0;
      read_ahead = 0;
      lends = false;
      copied = 0;
      finished = false;
    }
  };
  struct Use {
    std::uint64_t first = 0;  // number of the collective's first message on the channel
    std::int64_t count = 0;
    std::uint64_t released = 0;  // how many, without a gap
    std::uint64_t ahead = 0;     // bit i: message released + 1 + i is released too
    bool awaited = false;        // the writer waits to hear of it: it exposed some
    bool in_place = false;       // some were in the writer's heap
    std::uint64_t told = 0;      // how many it has heard of
    Patience patience;           // from call to call

    void begin_at(std::uint64_t number, std::int64_t messages) {  // as Strand's
      first = number;
      count = messages;
      released = ahead = told = 0;
      awaited = in_place = false;
    }
  };
  struct Readers {   // of a channel, within the node
    int count = -1;  // not yet known; one more than are named: more
    std::array<int, kMostLentReaders> node_ranks = {};
    bool can_read = true;  // all of them, this process's memory
  };
  struct WayChosen {
    shm::Way way = shm::Way::kCached;
    bool learns = false;   // there was a choice
    bool invites = false;  // as MessageWays::Choice
  };
  struct Reference {  // a message whose readers read the user's memory itself
    std::uint16_t use = 0;
    std::uint64_t number = 0;
  };
  struct Lent {  // messages that were read in the sender's memory at once, and how long that took
    std::vector<std::byte> bytes;
    MessageWays::Clock::duration took{};
    std::int64_t length = 0;  // of all
    std::int64_t taken = 0;   // up to where their waits have come
    int ahead = 0;            // how many are still to be waited for
  };
  /// Where a message stands that is there: where the schedule copies it anyway; in the pool, by one
  /// way or another; where it was read to, if it was lent; or in its line, in what came over the
  /// network, in memory that all can read.
  enum class Came : std::uint8_t { kSomehow, kCached, kUncached, kHanded, kLent, kLanded };

  struct Arrival {
    Came came = Came::kSomehow;
    shm::Taken taken = shm::Taken::kCopied;  // as its writer says; what is learned is for writers
  };
  struct Taking {  // of a message, as it begins
    bool timed = false;
    Arrival arrival;
    MessageWays::Clock::time_point begin;
    bool copies = false, by_vectors = false;
  };
  struct HandedOver {  // a chunk, with a message that is not released yet
    std::uint16_t use = 0;
    std::uint64_t number = 0;
    shm::Pool::Handed chunk;
  };
  struct TakenPiece {  // of a stream's piece, when that was timed
    std::uint64_t collective = 0;
    std::uint32_t strand = 0;
    std::uint64_t take = 0;  // of all that are taken
    Came came = Came::kSomehow;
    MessageWays::Clock::time_point at;
  };

  struct Received {
    const std::byte* data = nullptr;
    std::int64_t length = 0;
    Arrival arrival;
    shm::Pool::Handed handed;                 // the chunk that it stands in, if that is handed over
    std::uint64_t lent = 0;                   // the data are still at this address of the writer's
    std::uint64_t behind = 0;                 // and so many of the messages after this one behind
    const std::byte* exposure = nullptr;      // the data are still where this says
    bool landed = false;                      // and have been got to where they may stay
    const std::byte* announcement = nullptr;  // the data are sent when they are awaited
  };

  struct BriefUse {  // of run_briefly: where the channel's numbers and lines are
    shm::Peer* peer = nullptr;
    std::uint64_t count = 0;
    std::uint64_t* next = nullptr;
    shm::Line* out_lines = nullptr;
    const shm::Line* in_lines = nullptr;
  };

  void set_buffers();
  void begin_strands();
  void reset(std::uint64_t collective);
  void find_brief_uses();
  bool put_briefly(const Instruction& in, const std::byte* from);
  bool put_long_briefly(const Instruction& in);
  bool wait_briefly(const Instruction& in, int polls);
  bool take_long_briefly(const Instruction& in, shm::Peer& peer, const shm::Line& line,
                         std::uint64_t header);
  bool leave_brief(const Instruction& in);
  bool wait_in_turn(const Instruction& in);
  void publish(const ChannelUse& channel, shm::Peer& peer, shm::Line& line, std::uint64_t number,
               std::uint8_t kind);
  [[nodiscard]] bool suits(const Instruction& in, std::uint64_t header) const;
  void prefetch_next_writes();
  // The bytes [offset, offset + length) of an instruction's list, as message `number`.
  struct Part {
    std::uint64_t number = 0;
    std::int64_t offset = 0, length = 0;
  };
  struct Landing {  // where a message may be got to at once; no bytes: nowhere,
    std::span<std::byte> bytes;
    std::span<std::byte> extent;  // known to the network with them
    Part part;                    // or to this part of a recv's list
  };
  // Clock: NoClock, or LapClock if the run is measured.
  template <typename Clock>
  bool advance_all(int polls, Clock clock);
  template <typename Clock>
  bool advance(Strand& strand, int polls, Clock& clock);
  template <typename Clock>
  bool put(const Instruction& in, Strand& strand, Clock& clock);
  template <typename Clock>
  bool send(const Instruction& in, Strand& strand, Clock& clock);
  template <typename Clock>
  bool recv(const Instruction& in, Strand& strand, int polls, Clock& clock);
  bool multicast(const Instruction& in, const Strand& strand);
  bool receive(const Instruction& in, const Strand& strand);
  bool aggregate(const Instruction& in, Strand& strand);
  bool receive_from_node(const Instruction& in, const Strand& strand);
  bool settle(const Result<bool>& moved);
  template <typename Clock>
  bool write_message(const Instruction& in, Strand& strand, const Part& part, Clock& clock);
  template <typename Clock>
  bool write_remote(const Instruction& in, Strand& strand, shm::Peer& peer, const Part& part,
                    Clock& clock);
  bool end();
  bool takes_lists(int rank);
  bool write_list(const Instruction& in, shm::Peer& peer, const Part& part, net::GatheredPut& put);
  net::GatheredPut* gathered(const Instruction& in, const Strand& strand, const Part& part);
  bool list_of(const Instruction& in, const Strand& strand, const Part& part,
               std::vector<wire::Piece>& to);
  bool make_list(const Instruction& in, const Strand& strand, const Part& part,
                 net::GatheredPut& put);
  bool find_registration(const Operand& memory, std::span<std::byte> bytes, const Strand& strand,
                         std::int64_t message_bytes, const wire::Registration** registration);
  void see_buffers();
  [[nodiscard]] bool flushed(const Instruction& in);
  [[nodiscard]] bool is_no_message(const Instruction& in) const;
  [[nodiscard]] bool flushes_for(const Instruction& in, int rank) const;
  std::byte* reserve_scratch(std::size_t bytes);
  [[nodiscard]] std::uint64_t header_of(std::uint64_t number, std::uint8_t kind) const;
  bool refused(const Instruction& in, const net::Pair& pair);
  void note_sent(shm::Peer& peer, std::uint64_t number);
  void count_sent(const Part& part, bool in_place);
  /// By send and recv, not by put.
  [[nodiscard]] bool sends(const Instruction& in) const {
    return plan_->two_sided && in.action == Action::kSend;
  }
  net::Fetches& fetches();
  [[nodiscard]] std::span<std::byte> extent_of(std::span<std::byte> bytes, const Operand& operand,
                                               const Strand& strand) const;
  std::optional<net::Exposure> exposure_of(const Instruction& in, Strand& strand, const Part& part);
  template <typename Clock>
  bool write_placed(const Instruction& in, const Strand& strand, shm::Peer& peer, const Part& part,
                    Clock& clock);
  bool receive_placed(const Instruction& in, const Strand& strand, const Part& part,
                      Received* received);
  Status begin_placed(const Instruction& in, const Strand& strand, const Part& part,
                      const Received& received, net::Placed& placed);
  bool stood_in(std::size_t put);
  [[nodiscard]] std::uint64_t taken_with(const Instruction& in, const Landing& to,
                                         std::uint64_t behind) const;
  bool begin_fetch(const Instruction& in, const Strand& strand, const Landing& to,
                   const net::Exposure& exposure, net::Fetch& fetch);
  Result<bool> fill(net::Pair& pair, net::Fetch& fetch, std::uint64_t bytes, bool more);
  [[nodiscard]] bool is_fetching(const Strand& strand) const;
  bool fetch(const Instruction& in, const Strand& strand, std::uint64_t number, const Landing& to,
             Received* received);
  [[nodiscard]] bool lasts(const Instruction& in) const;
  const Readers& readers_of(const Instruction& in);
  [[nodiscard]] bool may_lend(const Instruction& in, const Strand& strand, const Readers& readers,
                              const Part& part) const;
  [[nodiscard]] MessageWays::Choice decide_way(const Readers& readers, shm::Taken taken,
                                               MessageWays::Open open) const;
  WayChosen choose_way(const Instruction& in, Strand& strand, const Part& part, shm::Taken taken);
  [[nodiscard]] std::uint64_t bytes_behind(const Instruction& in, const Part& part) const;
  [[nodiscard]] static shm::Way way_of(Came came);
  [[nodiscard]] static bool is_in_pool(Came came);
  [[nodiscard]] Taking begin_copying(const Strand& strand, const Arrival& arrival,
                                     std::int64_t bytes);
  [[nodiscard]] Taking begin_taking(const Strand& strand, const Arrival& arrival,
                                    std::int64_t bytes);
  void leave_uncounted(const Strand& strand);
  // Are messages pieces of a stream, written by one rank while another takes those before them?
  [[nodiscard]] bool is_streamed(const Strand& strand) const {
    return strand.loop != 0 && plan_->one_way;
  }
  [[nodiscard]] bool reduces() const;
  [[nodiscard]] shm::Taken how_taken(const Instruction& in, const Strand& strand,
                                     std::int64_t bytes) const;
  [[nodiscard]] const Lent* read_here(const std::byte* data) const;
  void learn_taking(const Strand& strand, const Taking& taking, const std::byte* data,
                    std::int64_t bytes);
  Lent& place_of_lent(const Instruction& in, const Strand& strand);
  bool read_lent(const Instruction& in, Strand& strand, std::uint64_t number, const Landing& to,
                 Received* received);
  std::int64_t read_elsewhere(const Instruction& in, const Strand& strand, std::uint64_t number,
                              const Received& received, Lent& lent);
  [[nodiscard]] std::int64_t landing_behind(const Instruction& in, const Strand& strand,
                                            const Landing& to) const;
  int lent_after(std::uint16_t use, std::uint64_t number, const Received& received,
                 std::int64_t most);
  std::int64_t read_with(const Instruction& in, Strand& strand, std::uint64_t number,
                         const Landing& to, const Received& received);
  bool wait(const Instruction& in, Strand& strand, int polls);
  template <typename Clock>
  bool write_large(const Instruction& in, Strand& strand, shm::Line& line, const Part& part,
                   std::uint8_t* kind, Clock& clock);
  bool take_chunk(const Instruction& in, const Strand& strand, const Part& part, shm::Way way,
                  shm::ChunkRef* ref, std::uint8_t* kind);
  bool lends_instead(const Instruction& in, Strand& strand, const Part& part);
  static bool comes(const shm::Line& line, const shm::Peer& peer, std::uint64_t number, int polls,
                    std::uint64_t* header, Patience& patience);
  bool take_message(const Instruction& in, Strand& strand, std::uint64_t number);
  bool poll(std::uint16_t use, std::uint64_t number, int polls, Received* received);
  [[nodiscard]] const std::byte* find_chunk(const shm::Line& line, std::uint8_t kind,
                                            shm::ChunkRef* ref, Arrival* arrival) const;
  void fail_unreachable(int rank, const Status& why);
  void fail_given_up(int rank);
  void fail_freed(int rank);
  void fail_other_messages(int rank);
  void fail_place(int rank, const shm::ChunkRef& ref);
  /// The message found belongs to another call.
  void fail_mismatch(const ChannelUse& channel);
  bool release(std::uint16_t use, std::uint64_t number);
  void note_handed(std::uint16_t use, std::uint64_t number, const shm::Pool::Handed& chunk);
  void keep_handed(std::uint16_t use, std::uint64_t number);
  void keep_all_handed();
  bool stands(std::uint16_t use, std::uint64_t number);
  bool sources_stand();
  [[nodiscard]] const shm::Line& incoming_line(const ChannelUse& channel,
                                               std::uint64_t number) const;
  [[nodiscard]] bool hears_of(std::size_t use) const;
  void tell(std::size_t use, std::uint64_t count);
  void tell_all();
  void copy(const Instruction& in, Strand& strand);
  void copy_rest(const Instruction& in, Strand& strand);
  void reduce(const Instruction& in, const Strand& strand);
  void gather(std::byte* to, const Instruction& in, const Strand& strand, std::int64_t offset,
              std::int64_t length) const;
  template <typename Clock>
  void pack(std::byte* to, const Instruction& in, const Strand& strand, const Part& part,
            Clock& clock) const {
    clock.charge(Work::kPost);
    gather(to, in, strand, part.offset, part.length);
    clock.charge(Work::kPack);
  }
  template <typename Clock>
  void fill_chunk(std::byte* to, const Instruction& in, Strand& strand, const Part& part,
                  shm::Taken taken, const WayChosen& chosen, Clock& clock);
  void begin_measuring();
  [[nodiscard]] std::uint32_t index_of(const Strand& strand) const {
    return static_cast<std::uint32_t>(&strand - strands_.data());
  }
  void scatter(const std::byte* from, const Arrival& arrival, const Instruction& in,
               const Strand& strand, std::int64_t offset, std::int64_t length);
  void take(const Strand& strand, std::byte* to, const std::byte* from, std::int64_t length,
            const Arrival& arrival);
  void take_numbers();
  std::uint64_t take_numbers_of_several(const ChannelUse& channel, std::uint64_t numbers);
  [[nodiscard]] std::int64_t messages_by_table(const ChannelUse& channel) const;
  bool references_released();
  bool told_awaited();
  bool sent();
  [[nodiscard]] std::byte* at(const Operand& operand, const Strand& strand) const;
  [[nodiscard]] std::int64_t length_of(const Operand& operand, std::int64_t length) const;
  [[nodiscard]] std::span<const PlanPiece> pieces_of(const Instruction& in) const {
    return std::span(plan_->pieces).subspan(in.first_piece, in.piece_count);
  }
  [[nodiscard]] std::int64_t messages_of(Table table, std::int64_t length) const {
    return stream_messages(length, table != Table::kNone, plan_->stream_bytes);
  }
  [[nodiscard]] std::uint64_t number_of(const Instruction& in, const Strand& strand) const {
    return uses_[in.use].first +
           static_cast<std::uint64_t>(in.index + strand.iteration * in.index_stride);
  }

  std::atomic<State> state_ = State::kIdle;
  Team* team_ = nullptr;
  std::shared_ptr<const Plan> plan_;
  SparsePlan sparse_;
  bool planned_ = false;  // plan_ is this call's
  Binding binding_;
  std::uint64_t collective_ = 0;
  Breakdown* breakdown_ = nullptr;  // null: not measured
  std::int64_t lap_ns_ = 0;
  std::uint64_t wants_room_ = 0, copied_bytes_ = 0;
  std::uint64_t sent_copied_bytes_ = 0;  // of these, to send them to other nodes
  bool reads_in_place_ = false;          // some use does
  bool told_all_ = false;  // the strands are finished and everything read is acknowledged
  const shm::Line* next_line_ = nullptr;  // of the channel written last
  shm::ChunkRef next_chunk_ = {};         // of the pool, if a chunk was written
  std::vector<std::byte*> bases_;
  std::vector<Use> uses_;
  std::vector<BriefUse> brief_uses_;  // one for each of uses_, if the run is brief
  bool brief_ = false;
  int turns_ = 0;  // of wait_in_turn
  std::vector<Strand> strands_;
  std::chrono::steady_clock::time_point flushing_since_;  // none: it is not
  std::vector<net::Buffer*> sent_;  // and must have ended before the collective does
  std::vector<Reference> references_;
  std::vector<HandedOver> handed_;
  std::unique_ptr<net::Fetches> fetches_;  // null until the first
  std::vector<Lent> lent_;                 // messages that were read and landed nowhere else
  std::vector<Arrival> arrivals_;          // of messages, by slot base
  TakenPiece taken_;                       // last
  std::uint64_t takes_ = 0;                // messages that were taken
  std::vector<Readers> readers_;           // by use
  std::unique_ptr<net::Gathers> gathers_;  // null until the first
  struct {                                 // that lists were made for
    const std::byte *input = nullptr, *output = nullptr, *scratch = nullptr;
    std::uint64_t collective = 0, heap_changes = 0;
    bool registered_for_call = false;
  } seen_;
  std::uint64_t looked_in_ = 0;  // before this collective's first list: who is there
  std::vector<std::byte> scratch_;
  net::Block scratch_block_;               // instead, where the network must know it
  net::Memory* scratch_memory_ = nullptr;  // whose that is
  std::vector<std::int64_t> table_storage_;
  Status status_;
};

}  // namespace carillon
