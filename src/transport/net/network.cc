// SPDX-License-Identifier: Apache-2.0
#include "transport/net/network.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace carillon::net {
namespace {

constexpr std::uint64_t kPlace = 2 * sizeof(Note);  // of a process in a lobby: request, reply

constexpr std::chrono::milliseconds kSilence(10);  // before nothing more is expected

// Before a request that may have got lost is sent again: at first, and at most.
constexpr std::chrono::milliseconds kPatience(50), kMostPatience(1600);
constexpr int kMostFailures = 5;  // of one request; more are no accident

std::uint64_t note_offset(int process, bool reply) {
  return static_cast<std::uint64_t>(process) * kPlace + (reply ? sizeof(Note) : 0);
}

// What comes before the device: all nodes must have the same.
std::string transport_of(const std::string& name) {
  return name.starts_with("verbs ") ? "verbs" : name;
}

}  // namespace

Network::Network(std::unique_ptr<wire::Wire> wire, int processes, int self,
                 std::uint64_t largest_message)
    : wire_(std::move(wire)),
      memory_(*wire_),
      buffers_(memory_, largest_message + Pair::kHeadBytes),
      receive_buffers_(memory_, largest_message + Pair::kHeadBytes),
      placed_buffers_(memory_, largest_message + Pair::kHeadBytes),
      self_(self),
      largest_message_(largest_message),
      largest_send_(
          std::min(largest_message, wire_->capabilities().max_send_bytes - Pair::kHeadBytes)),
      processes_(static_cast<std::size_t>(processes)) {}

// Pairs and operations under way know nothing of each other any more. The wire may still write to
// what it was given for a recv: it goes before the memory does.
Network::~Network() {
  memory_.unregister();
  wire_.reset();
}

Result<std::unique_ptr<Network>> Network::create(std::unique_ptr<wire::Wire> wire, int processes,
                                                 int self, std::uint64_t largest_message) {
  const std::uint64_t most = wire->capabilities().max_bytes;
  std::unique_ptr<Network> network(
      new Network(std::move(wire), processes, self, std::min(largest_message, most - 64)));
  for (Block* block : {&network->lobby_, &network->staging_}) {
    auto memory = network->memory_.allocate(static_cast<std::uint64_t>(processes) * kPlace);
    if (!memory.ok()) return memory.status();
    *block = memory.value();
  }
  return network;
}

Contact Network::contact() const {
  Contact contact{.version = kVersion,
                  .lobby = lobby_.remote,
                  .max_bytes = largest_message_,
                  .max_send_bytes = largest_send_};
  const auto address = wire_->address();
  contact.address_bytes = static_cast<std::uint32_t>(address.size());
  std::memcpy(contact.address, address.data(), address.size());
  const std::string transport = transport_of(wire_->capabilities().name);
  transport.copy(contact.transport, sizeof contact.transport - 1);
  return contact;
}

Status Network::meet(std::span<const Contact> contacts) {
  const std::string own = transport_of(name());
  for (std::size_t i = 0; i < contacts.size(); ++i) {
    const Contact& contact = contacts[i];
    const std::string_view theirs(contact.transport,
                                  strnlen(contact.transport, sizeof contact.transport));
    const std::string who = "process " + std::to_string(i) + " of the job";
    if (contact.version != kVersion) {
      return {Code::kUnsupported, contact.version == 0
                                      ? who + " has no network"
                                      : who + " speaks version " + std::to_string(contact.version) +
                                            " of carillon's network protocol, others " +
                                            std::to_string(kVersion) +
                                            "; install the same carillon on all nodes"};
    }
    if (theirs != own.substr(0, sizeof contact.transport - 1) ||
        contact.address_bytes > sizeof contact.address) {
      return {Code::kUnsupported, who + " uses the network \"" + std::string(theirs) +
                                      "\", others \"" + std::string(own) +
                                      "\"; set CARILLON_NETWORK to one that all nodes have"};
    }
    largest_message_ = std::min(largest_message_, contact.max_bytes);
    largest_send_ = std::min(largest_send_, contact.max_send_bytes);
    processes_[i].contact = contact;
  }
  return {};
}

std::optional<std::uint32_t> Network::take_ids(int count, std::uint64_t generation) {
  const auto taken = ids_.allocate(static_cast<std::uint64_t>(count), 1);
  if (!taken) return {};
  const auto first = static_cast<std::uint32_t>(*taken);
  const std::size_t end = *taken + static_cast<std::uint64_t>(count);
  if (pairs_.size() < end) pairs_.resize(end);
  making_[first] = {static_cast<std::uint32_t>(count), generation};
  return first;
}

void Network::end_making(std::uint32_t first) {
  making_.erase(first);
  for (const int process : std::exchange(waiting_, {})) on_request(process);
}

bool Network::in_the_making(const Note& note) const {
  auto found = making_.upper_bound(note.id);
  if (found == making_.begin()) return false;
  --found;
  return note.id - found->first < found->second.count &&
         note.generation == found->second.generation;
}

void Network::return_ids(std::uint32_t first) {
  end_making(first);
  ids_.release(first);
}

void Network::name_pair(std::uint32_t id, Pair* pair) {
  pairs_[id] = pair;
  retries_.reserve(pairs_.size());  // a call allocates nothing
}

Pair* Network::pair_of(std::uint32_t id) const { return id < pairs_.size() ? pairs_[id] : nullptr; }

void Network::forget(Pair& pair) {
  name_pair(pair.place().id, nullptr);
  if (!pair.is_used()) return;
  forget_placed(pair);
  std::erase(retries_, &pair);
  buffers_.forget(&pair);
  receive_buffers_.forget(&pair);
  placed_buffers_.forget(&pair);
}

Result<wire::Peer> Network::peer_of(int process) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  if (other.peer < 0) {
    auto peer = wire_->add_peer({other.contact.address, other.contact.address_bytes});
    if (!peer.ok()) return peer;
    other.peer = peer.value();
    new_processes_.push_back(process);
  }
  return other.peer;
}

void Network::ask(int process, const Note& note) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  if (!other.trouble.ok()) return;
  other.requests.push_back(note);
  talking_.push_back(process);
}

Status Network::trouble_with(int process) const {
  return status_.ok() ? processes_[static_cast<std::size_t>(process)].trouble : status_;
}

void Network::give_up_on(int process, const Status& why) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  if (!other.trouble.ok()) return;
  other.trouble = why;
  other.requests.clear();
  other.asking = false;
  other.unsure = false;
  other.answering = false;
  other.numbering = nullptr;
  other.turns.clear();
  std::erase_if(unsent_, [&](const Unsent& one) { return one.process == process; });
  for (Pair* const pair : pairs_) {
    if (pair != nullptr && pair->place().process == process) pair->fail(why);
  }
}

// Who hears of an end hears of it by another connection than that which its last words come by, of
// which one look takes one.
bool Network::may_still_come(int process) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  const auto now = std::chrono::steady_clock::now();
  if (!other.silent_since || other.arrivals != other.last_words) {
    other.silent_since = now;
    other.last_words = other.arrivals;
  }
  return now - *other.silent_since < kSilence;
}

bool Network::settle(const std::function<bool()>& done, std::chrono::milliseconds within) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!done()) {
    if (!progress().ok() || std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
  return true;
}

void Network::cut_off(int process, const Status& why) {
  const wire::Peer peer = processes_[static_cast<std::size_t>(process)].peer;
  if (peer >= 0) wire_->cut_off(peer, why);
  give_up_on(process, why);
}

void Network::check_buffers() {
  buffers_.check();
  receive_buffers_.check();
  placed_buffers_.check();
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const Process& other = processes_[i];
    for (const wire::Operation* const note : {&other.request_operation, &other.reply_operation}) {
      if (!note->done() || note->status().ok()) continue;
      if (note == &other.request_operation && other.may_fail) continue;  // ask_again(), on_reply()
      give_up_on(static_cast<int>(i), note->status());
    }
  }
}

Note Network::note_from(int process, bool reply) const {
  Note note;
  std::memcpy(&note, lobby_.data + note_offset(process, reply), sizeof note);
  return note;
}

void Network::on_request(int process) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  const Note note = note_from(process, false);
  if (other.answering) return;  // it did not wait for the answer: no carillon does that
  if (in_the_making(note)) {
    waiting_.push_back(process);
    return;
  }
  answer(process, note);
}

// That the team has been given up may be said only when that process has answered what it was asked
// before, or may have got lost; but what follows from this is said now. Names of teams that were
// given up are not used again.
Note Network::gone(int process, std::uint32_t id) const {
  const auto& requests = processes_[static_cast<std::size_t>(process)].requests;
  const auto word = std::ranges::find_if(
      requests, [&](const Note& note) { return note.kind == Note::kGaveUp && note.own_id == id; });
  return {.kind = Note::kGone, .done = word == requests.end() ? 0 : word->done};
}

void Network::answer(int process, const Note& note) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  other.reply = gone(process, note.id);
  other.answering = true;
  talking_.push_back(process);
  Pair* const pair = pair_of(note.id);
  if (pair == nullptr || pair->place().process != process ||
      pair->place().generation != note.generation) {
    return;
  }
  if (note.kind == Note::kGaveUp) pair->on_gave_up(note.done);
  if (note.kind == Note::kExpect) pair->on_expect();
  if (note.kind == Note::kOpen) pair->on_opened(note);
  const bool expects = note.kind == Note::kExpect && pair->status().ok();
  const bool opened = note.kind == Note::kOpen && pair->is_open();
  if (!expects && !opened) return;
  other.reply = {.kind = Note::kOpened,
                 .id = pair->place().peer_id,
                 .generation = pair->place().peer_generation,
                 .block = pair->block()};
}

void Network::on_reply(int process) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  if (!other.asking || other.requests.empty()) return;
  const Note asked = other.requests.front();
  other.requests.pop_front();
  other.asking = false;
  other.unsure = false;
  talking_.push_back(process);
  if (asked.kind == Note::kGaveUp) return;
  const Note note = note_from(process, true);
  const auto of_asked = [&](const Pair* pair) {
    return pair != nullptr && pair->place().process == process &&
           pair->place().peer_id == asked.id && pair->place().peer_generation == asked.generation;
  };
  if (Pair* const pair = pair_of(note.id); note.kind == Note::kOpened && of_asked(pair)) {
    asked.kind == Note::kExpect ? pair->on_expecting() : pair->on_opened(note);
    return;
  }
  for (Pair* const pair : pairs_) {
    if (!of_asked(pair)) continue;
    pair->on_gave_up(note.done);
    pair->fail({Code::kPeerDead, "network: process " + std::to_string(process) +
                                     " of the job has left the team already"});
  }
}

Result<bool> Network::post_note(int process, const Note& note, bool reply, std::uint64_t number,
                                wire::Operation& operation) {
  const auto peer = peer_of(process);
  if (!peer.ok()) return peer.status();
  const std::uint64_t here = note_offset(process, reply);
  std::memcpy(staging_.data + here, &note, sizeof note);
  const std::array piece = {staging_.piece(here, sizeof note)};
  return wire_->put(
      peer.value(), piece,
      processes_[static_cast<std::size_t>(process)].contact.lobby.at(note_offset(self_, reply)),
      immediate(Kind::kNote, 2 * number + (reply ? 1 : 0), static_cast<std::uint32_t>(self_)),
      operation);
}

bool Network::send_note(int process, const Note& note, bool reply, wire::Operation& operation) {
  if (!operation.done()) return false;
  Process& other = processes_[static_cast<std::size_t>(process)];
  std::uint64_t& sent = reply ? other.replies_sent : other.requests_sent;
  const Result<bool> posted = post_note(process, note, reply, sent, operation);
  if (!posted.ok()) {
    give_up_on(process, posted.status());
    return false;
  }
  if (!posted.value()) return false;
  ++counters_.notes;
  ++sent;
  if (reply) return true;
  other.may_fail = other.arrivals == 0 && wire_->capabilities().crossing_loses;
  if (other.may_fail) {
    other.unsure = true;
    other.failures = 0;
    other.patience = kPatience;
    other.ask_again_at = std::chrono::steady_clock::now() + kPatience;
    unsure_.push_back(process);
  }
  return true;
}

// The same note with the same number: who has seen it does not look again.
void Network::ask_again() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(unsure_, [&](int process) {
    Process& other = processes_[static_cast<std::size_t>(process)];
    wire::Operation& operation = other.request_operation;
    if (!other.unsure) return true;
    if (!operation.done()) return false;
    if (!operation.status().ok()) {
      if (++other.failures > kMostFailures) {
        give_up_on(process, operation.status());
        return true;
      }
      other.ask_again_at = now;
    }
    if (now < other.ask_again_at) return false;
    const bool heard = other.arrivals > 0;  // what is sent from now on comes
    const Result<bool> posted =
        post_note(process, other.requests.front(), false, other.requests_sent - 1, operation);
    if (!posted.ok()) {
      give_up_on(process, posted.status());
      return true;
    }
    if (!posted.value()) return false;
    ++counters_.notes;
    ++counters_.asked_again;
    other.patience = std::min(2 * other.patience, kMostPatience);
    other.ask_again_at = now + other.patience;
    other.unsure = other.may_fail = !heard;
    return heard;
  });
}

void Network::send_notes() {
  std::vector<int> again;
  for (const int process : std::exchange(talking_, {})) {
    Process& other = processes_[static_cast<std::size_t>(process)];
    // The answer first: what is asked for next may count on it.
    if (other.answering && send_note(process, other.reply, true, other.reply_operation)) {
      other.answering = false;
    }
    if (!other.asking && !other.requests.empty() &&
        send_note(process, other.requests.front(), false, other.request_operation)) {
      other.asking = true;
    }
    if (other.answering || (!other.asking && !other.requests.empty())) again.push_back(process);
  }
  talking_.insert(talking_.end(), again.begin(), again.end());
}

Status Network::progress() {
  if (!status_.ok()) return status_;
  status_ = wire_->progress(*this);
  if (!talking_.empty()) send_notes();
  if (!unsure_.empty()) ask_again();
  if (!turning_.empty() || !placing_.empty()) progress_placed();
  if (!retries_.empty()) {
    // By index, and in place: others may join, and the next call allocates nothing.
    std::size_t i = 0;
    while (i < retries_.size()) {
      if (retries_[i]->retry()) retries_[i] = nullptr;
      ++i;
    }
    std::erase(retries_, nullptr);
  }
  return status_;
}

// Of operations whose process is not gone.
bool Network::all_sent(const std::function<bool(int)>& gone) const {
  bool all = buffers_.idle(gone) && placed_buffers_.idle(gone);
  for (std::size_t i = 0; i < processes_.size() && all; ++i) {
    const Process& other = processes_[i];
    all = (other.request_operation.done() && other.reply_operation.done()) ||
          gone(static_cast<int>(i));
  }
  return all;
}

bool Network::idle() const {
  const auto gone = [&](int process) {
    return !processes_[static_cast<std::size_t>(process)].trouble.ok();
  };
  return !status_.ok() ||
         (talking_.empty() && retries_.empty() && turning_.empty() && all_sent(gone));
}

std::vector<int> Network::waited_for() const {
  std::vector<int> processes = talking_;
  processes.insert(processes.end(), turning_.begin(), turning_.end());
  for (const Pair* const pair : retries_) processes.push_back(pair->place().process);
  static_cast<void>(all_sent([&](int process) {
    processes.push_back(process);
    return true;
  }));
  return processes;
}

// One that is told again is none.
void Network::on_note(int process, std::uint32_t number) {
  Process& other = processes_[static_cast<std::size_t>(process)];
  const bool reply = number % 2 == 1;
  std::uint64_t& seen = reply ? other.replies_seen : other.requests_seen;
  if (number != low_bits(2 * seen + (reply ? 1 : 0))) return;
  ++seen;
  reply ? on_reply(process) : on_request(process);
}

// The immediate may be anything: a peer sent it.
void Network::on_put(std::uint32_t value) {
  const auto kind = static_cast<Kind>(value >> (kIdBits + kNumberBits));
  const std::uint32_t number = low_bits(value >> kIdBits);
  const std::uint32_t id = value & ((UINT32_C(1) << kIdBits) - 1);
  if (kind == Kind::kNote) {
    if (id < processes_.size() && static_cast<int>(id) != self_) {
      note_arrival(static_cast<int>(id));
      on_note(static_cast<int>(id), number);
      return;
    }
  } else if (Pair* const pair = pair_of(id); pair != nullptr) {
    note_arrival(pair->place().process);
    if (kind != Kind::kStatus) {
      pair->on_message(number, kind == Kind::kLong);
    } else if (number == 0) {
      pair->on_status();
    } else if (number <= shm::kWindow) {
      pair->on_ready(number - 1);
    }
    return;
  } else if (id < pairs_.size()) {  // of a team that is gone
    if (kind == Kind::kStatus && number > 0) answer_unsent(id, number - 1);
    return;
  }
  if (!std::exchange(garbage_told_, true)) {
    log(LogLevel::kWarning,
        "network: ignoring what no carillon sends (immediate " + std::to_string(value) + ")");
  }
}

}  // namespace carillon::net
