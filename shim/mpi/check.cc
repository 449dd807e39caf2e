// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attributes.h"
#include "check_compare.h"
#include "comm_copy.h"
#include "communicator.h"
#include "flight.h"
#include "observe.h"
#include "process.h"
#include "world.h"

namespace carillon::shim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCallTag = 1, kAnswerTag = 2;
constexpr auto kSayAfter = std::chrono::seconds(10);

struct Message {
  std::vector<std::byte> bytes;
  int to = 0, tag = 0;
  MPI_Request request{};
  bool posted = false;
};

// A communicator of the program's, and what its ranks tell each other of it.
struct Channel {
  MPI_Comm of{};       // the program's
  CommCopy own;        // ours alone; of a communicator of one rank there is none
  bool ready = false;  // the copy is there, or none is needed
  int rank = 0, size = 0;
  std::string name;
  std::uint64_t calls = 0;     // of this rank
  std::uint64_t answered = 0;  // of these, found to fit, by rank 0 or as it has told
  std::list<Message> out;      // in order
  // Where the calls come together.
  std::vector<std::deque<Description>> came;  // by rank
  // Partner: on_freed, which may run with locks of the host's held and takes none.
  std::atomic<bool> freed = false;
  bool hidden = false;  // the host is freeing its communicator (hide_channel)
};

struct Checks {
  std::mutex mutex;  // of all of it; the host's functions that never wait are called with it held
  std::vector<std::unique_ptr<Channel>> channels;
  int keyval = MPI_KEYVAL_INVALID;
  std::vector<MPI_Comm> worlds;                   // copies, ours alone
  std::vector<std::unique_ptr<Channel>> earlier;  // until the program frees their communicators
  bool ending = false;
};

Checks& checks_made() {
  static Checks& all = *new Checks();  // never destroyed: threads may be in a call at the end
  return all;
}

int on_freed(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*extra*/) {
  static_cast<Channel*>(value)->freed.store(true, std::memory_order_release);
  return MPI_SUCCESS;
}

// By an end that is none of MPI's: launchers end the other ranks, and Open MPI 4's, told to abort
// the job while it is ending, may hang.
[[noreturn]] void end_job() {
  constexpr int kForwardUs = 100000;
  usleep(kForwardUs);  // launchers drop what they have not yet forwarded
  _exit(1);
}

std::string call_of(const Channel& channel, std::uint64_t number) {
  return "call " + std::to_string(number) + " on " + channel.name + " (" +
         std::to_string(channel.size) + " ranks)";
}

[[noreturn]] void report(const Channel& channel, const Difference& difference,
                         const std::vector<Description>& calls) {
  const auto text = [&](int rank) {
    return "\n  rank " + std::to_string(rank) + ": " + calls[static_cast<std::size_t>(rank)].text;
  };
  std::string line = call_of(channel, channel.answered + 1) + ": rank " +
                     std::to_string(difference.rank) + " does not fit with rank " +
                     std::to_string(difference.other) + ": " + difference.why +
                     text(difference.rank);
  if (difference.other != difference.rank) line += text(difference.other);
  say("check: %s", line.c_str());
  end_job();
}

// MPI_SUCCESS means nothing to a communicator that is only ours: what fails ends the job.
void require(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  say("check: the MPI refuses %s", what);
  end_job();
}

Channel* make_channel(MPI_Comm comm) {
  int is_inter = 0;
  host().Comm_test_inter(comm, &is_inter);
  auto made = std::make_unique<Channel>();
  made->of = comm;
  host().Comm_rank(comm, &made->rank);
  host().Comm_size(comm, &made->size);
  World* const world = is_inter != 0 ? nullptr : use_world(comm, made->size);
  const bool checked = world != nullptr && world->checked;
  drop_world(world);
  if (!checked) return nullptr;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  host().Comm_get_name(comm, name, &length);
  made->name = length > 0 ? name : "a communicator without a name";
  made->ready = made->size == 1;
  if (!made->ready) require(made->own.begin(comm), "a copy of a communicator");
  if (made->rank == 0) made->came.resize(static_cast<std::size_t>(made->size));
  Checks& all = checks_made();
  host().Comm_set_attr(comm, all.keyval, made.get());
  all.channels.push_back(std::move(made));
  return all.channels.back().get();
}

// Null: none, or not any more. Without asking the host, and with the lock held, as what follows.
Channel* find_channel(MPI_Comm comm, bool hidden) {
  for (const auto& channel : checks_made().channels) {
    if (channel->of == comm && channel->hidden == hidden &&
        !channel->freed.load(std::memory_order_acquire)) {
      return channel.get();
    }
  }
  return nullptr;
}

// Null: its ranks are not all known to check.
Channel* channel_of(MPI_Comm comm) {
  if (BeingFreed::is_any(comm)) return find_channel(comm, true);
  void* value = nullptr;
  int found = 0;
  if (host().Comm_get_attr(comm, checks_made().keyval, &value, &found) != MPI_SUCCESS) {
    return nullptr;
  }
  return found != 0 ? static_cast<Channel*>(value) : make_channel(comm);
}

bool is_ready(Channel& channel) {
  if (!channel.ready) {
    int done = 0;
    require(channel.own.test(&done), "a copy of a communicator");
    channel.ready = done != 0;
  }
  return channel.ready;
}

// A call's description is sent synchronously: at the end it is known to have been looked at.
void post(Channel& channel, Message& message) {
  const auto send = message.tag == kCallTag ? host().Issend : host().Isend;
  require(send(message.bytes.data(), static_cast<int>(message.bytes.size()), g_host.byte,
               message.to, message.tag, channel.own.comm(), &message.request),
          "a message");
  message.posted = true;
}

void move_on_messages(Channel& channel) {
  for (auto message = channel.out.begin(); message != channel.out.end();) {
    if (!message->posted) post(channel, *message);
    int done = 0;
    require(host().Test(&message->request, &done, MPI_STATUS_IGNORE), "a message");
    message = done != 0 ? channel.out.erase(message) : std::next(message);
  }
}

// A message that is there, of one of these tags; false: none is.
bool receive(Channel& channel, int from, int tag, std::vector<std::byte>* bytes, int* source) {
  if (channel.size == 1) return false;
  int found = 0, count = 0;
  MPI_Message message{};
  MPI_Status status{};
  require(host().Improbe(from, tag, channel.own.comm(), &found, &message, &status),
          "to look for messages");
  if (found == 0) return false;
  host().Get_count(&status, g_host.byte, &count);
  bytes->resize(static_cast<std::size_t>(count));
  require(host().Mrecv(bytes->data(), count, g_host.byte, &message, MPI_STATUS_IGNORE),
          "a message");
  *source = status.MPI_SOURCE;
  return true;
}

void answer(Channel& channel) {
  for (int rank = 1; rank < channel.size; ++rank) {
    channel.out.push_back({.bytes = std::vector<std::byte>(1), .to = rank, .tag = kAnswerTag});
  }
}

bool is_blocking(std::size_t called) {
  return static_cast<Form>(called / kCollectives) != Form::kStarted;
}

// At rank 0: the calls of which all have told.
void compare_calls(Channel& channel) {
  const auto all_there = [&] {
    return std::none_of(channel.came.begin(), channel.came.end(),
                        [](const auto& calls) { return calls.empty(); });
  };
  while (all_there()) {
    std::vector<Description> calls;
    for (auto& of_rank : channel.came) {
      calls.push_back(std::move(of_rank.front()));
      of_rank.pop_front();
    }
    if (const auto difference = find_difference(calls)) report(channel, *difference, calls);
    ++channel.answered;
    if (is_blocking(calls[0].called)) answer(channel);
  }
}

void take_descriptions(Channel& channel) {
  std::vector<std::byte> bytes;
  int source = 0;
  while (receive(channel, MPI_ANY_SOURCE, kCallTag, &bytes, &source)) {
    auto description = decode_description(bytes);
    if (!description) require(MPI_ERR_OTHER, "messages of this version of carillon");
    channel.came[static_cast<std::size_t>(source)].push_back(std::move(*description));
  }
}

void move_on(Channel& channel) {
  if (!is_ready(channel)) return;
  // Until this rank makes a call, nobody waits for what the others say of theirs.
  if (channel.rank == 0 && (channel.calls > channel.answered || checks_made().ending)) {
    take_descriptions(channel);
    compare_calls(channel);
  }
  move_on_messages(channel);
}

// Nothing is under way, and nothing will be.
bool is_over(const Channel& channel) {
  return channel.freed.load(std::memory_order_acquire) && channel.ready && channel.out.empty() &&
         std::all_of(channel.came.begin(), channel.came.end(),
                     [](const auto& calls) { return calls.empty(); });
}

void move_all_on() {
  auto& channels = checks_made().channels;
  for (const auto& channel : channels) move_on(*channel);
  std::erase_if(channels, [](const auto& channel) {
    if (!is_over(*channel)) return false;
    channel->own.free();
    return true;
  });
}

std::string missing_ranks(const Channel& channel) {
  std::string ranks;
  for (int rank = 0; rank < channel.size; ++rank) {
    if (!channel.came[static_cast<std::size_t>(rank)].empty()) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return ranks;
}

// The first call that some have made, and others not.
void say_who_is_missing(const Channel& channel, const std::string& how) {
  const auto made = std::find_if(channel.came.begin(), channel.came.end(),
                                 [](const auto& calls) { return !calls.empty(); });
  if (made == channel.came.end()) return;
  say("check: %s: %s without rank(s) %s\n  rank %d: %s",
      call_of(channel, channel.answered + 1).c_str(), how.c_str(), missing_ranks(channel).c_str(),
      static_cast<int>(made - channel.came.begin()), made->front().text.c_str());
}

// In MPI_Finalize: of calls that this process has not made, and will not. `all`: nor will others.
void end_if_calls_are_missing(bool all = false) {
  const std::lock_guard lock(checks_made().mutex);
  bool some = false;
  for (const auto& channel : checks_made().channels) {
    if (channel->rank != 0 || !(all || channel->came[0].empty())) continue;
    const bool whole = std::all_of(channel->came.begin(), channel->came.end(),
                                   [](const auto& calls) { return calls.empty(); });
    if (!whole) say_who_is_missing(*channel, "the program has ended");
    some = some || !whole;
  }
  if (some) end_job();
}

// They may need this process for collectives that it has left already.
void let_others_go_on() {
  progress_worlds();
  advance_flights();
  sched_yield();
}

// Tells rank 0 of a call. Its number; 0: the communicator is not checked.
std::uint64_t tell(std::size_t called, const Call& call, Channel** channel) {
  const InsideHost guard;
  const std::lock_guard lock(checks_made().mutex);
  *channel = channel_of(call.comm);
  if (*channel == nullptr) return 0;
  Channel& on = **channel;
  Description description = describe_call(called, call, on.rank, on.size);
  if (on.rank == 0) {
    on.came[0].push_back(std::move(description));
  } else {
    on.out.push_back({.bytes = encode(description), .to = 0, .tag = kCallTag});
  }
  return ++on.calls;
}

// Whether that call is known to fit. Blocking calls have answers, in the order of the calls.
bool has_answer(Channel& channel, std::uint64_t number) {
  const InsideHost guard;
  const std::lock_guard lock(checks_made().mutex);
  if (channel.rank == 0) return channel.answered >= number;
  std::vector<std::byte> bytes;
  int source = 0;
  return channel.ready && receive(channel, 0, kAnswerTag, &bytes, &source);
}

void wait_for_answer(Channel& channel, std::uint64_t number) {
  const auto say_at = Clock::now() + kSayAfter;
  bool said = channel.rank > 1;
  while (advance_checks(), !has_answer(channel, number)) {
    let_others_go_on();
    if (said || Clock::now() < say_at) continue;
    said = true;
    const std::lock_guard lock(checks_made().mutex);
    if (channel.rank == 0) {
      say_who_is_missing(channel, "waits");
    } else {
      say("check: rank 1 has waited 10 s in %s for the others to come",
          call_of(channel, number).c_str());
    }
  }
}

}  // namespace

CheckedCall::CheckedCall(std::size_t called, const Call& call) {
  // For what is no communicator the host calls an error handler of the program's, which may not
  // return.
  void* value = nullptr;
  int found = 0;
  const bool good =
      call.comm != g_host.comm_null &&
      host().Comm_get_attr(call.comm, checks_made().keyval, &value, &found) == MPI_SUCCESS;
  t_observed |= kChecking;
  if (!good) return;
  Channel* channel = nullptr;
  const std::uint64_t number = tell(called, call, &channel);
  if (number != 0 && is_blocking(called)) wait_for_answer(*channel, number);
}

CheckedCall::~CheckedCall() {
  t_observed &= ~kChecking;
  t_cache.last.generation = 0;  // the next call goes the slow way, too
}

void advance_checks() {
  if (!is_observed_by(kChecking)) return;
  const InsideHost guard;
  const std::unique_lock lock(checks_made().mutex, std::try_to_lock);
  if (lock.owns_lock()) move_all_on();
}

bool is_copied_for_checks(MPI_Comm comm) {
  const InsideHost guard;
  const std::lock_guard lock(checks_made().mutex);
  Channel* const channel = find_channel(comm, false);
  return channel != nullptr && !is_ready(*channel);
}

MPI_Comm copy_for_checks(MPI_Comm comm) {
  const std::lock_guard lock(checks_made().mutex);
  const Channel* const channel = find_channel(comm, false);
  return channel == nullptr || channel->size == 1 ? comm : channel->own.comm();
}

void await_copy(MPI_Comm comm) {
  if (!is_observed_by(kChecking) || t_cache.depth > 0) return;
  while (is_copied_for_checks(comm)) {
    advance_checks();
    let_others_go_on();
  }
}

void hide_channel(MPI_Comm comm) {
  if (!is_observed_by(kChecking)) return;
  const InsideHost guard;
  const std::lock_guard lock(checks_made().mutex);
  Channel* const channel = find_channel(comm, false);
  if (channel == nullptr) return;
  host().Comm_delete_attr(comm, checks_made().keyval);
  channel->freed.store(false, std::memory_order_relaxed);  // so on_freed has it
  channel->hidden = true;
}

void show_channel(MPI_Comm comm) {
  const InsideHost guard;
  const std::lock_guard lock(checks_made().mutex);
  Channel* const channel = find_channel(comm, true);
  if (channel == nullptr) return;
  channel->hidden = false;
  host().Comm_set_attr(comm, checks_made().keyval, channel);
}

void end_channel(MPI_Comm comm) {
  const std::lock_guard lock(checks_made().mutex);
  Channel* const channel = find_channel(comm, true);
  if (channel != nullptr) channel->freed.store(true, std::memory_order_release);
}

bool start_checking(MPI_Comm world) {
  Checks& all = checks_made();
  MPI_Comm own{};
  if (host().Comm_dup(world, &own) != MPI_SUCCESS) return false;
  const std::lock_guard lock(all.mutex);
  if (all.worlds.empty() && host().Comm_create_keyval(copy_no_attribute<MPI_Comm>, on_freed,
                                                      &all.keyval, nullptr) != MPI_SUCCESS) {
    return false;
  }
  all.worlds.push_back(own);
  observe(kChecking);
  return true;
}

// A barrier on each of our copies.
template <typename Pause>
void await_worlds(std::vector<MPI_Comm>& worlds, Pause pause) {
  std::vector<MPI_Request> requests(worlds.size());
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    require(host().Ibarrier(worlds[i], &requests[i]), "a barrier");
  }
  for (int done = 0; done == 0; pause()) {
    const int count = static_cast<int>(requests.size());
    require(host().Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE), "a barrier");
  }
}

// Of a life that is over. What is freed later says so to a channel, which must still be there. Not
// `frees`: the host is ending, and forgets its objects.
void put_channels_aside(bool frees) {
  Checks& all = checks_made();
  const std::lock_guard lock(all.mutex);
  for (auto& channel : all.channels) {
    if (frees) channel->own.free();
    all.earlier.push_back(std::move(channel));
  }
  all.channels.clear();
  all.worlds.clear();
  all.ending = false;
  if (frees) host().Comm_free_keyval(&all.keyval);
}

void finish_checking() {
  if (!is_observed_by(kChecking)) return;
  Checks& all = checks_made();
  {
    const std::lock_guard lock(all.mutex);
    all.ending = true;
  }
  const auto all_sent = [&] {
    const std::lock_guard lock(all.mutex);
    return std::all_of(all.channels.begin(), all.channels.end(),
                       [](const auto& channel) { return channel->out.empty(); });
  };
  const auto pause = [] {
    let_others_go_on();
    advance_checks();
    end_if_calls_are_missing();
  };
  while (!all_sent()) pause();
  await_worlds(all.worlds, pause);
  end_if_calls_are_missing(true);
  observe_no_more(kChecking);
  for (MPI_Comm& world : all.worlds) host().Comm_free(&world);
  put_channels_aside(process().begun == Begun::kBySession);
}

}  // namespace carillon::shim
