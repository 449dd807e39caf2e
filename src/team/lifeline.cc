// SPDX-License-Identifier: Apache-2.0
#include "team/lifeline.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"

namespace carillon {
namespace {

using lifeline::Verdict;

constexpr auto kHelloWithin = std::chrono::seconds(3);  // a caller may be busy between two steps
constexpr int kSpareStrangers = 64;  // beyond one per rank, which may all call at once
constexpr int kAcceptsPerProgress = 64;
constexpr int kEventsPerProgress = 64;
constexpr std::uint64_t kListenerId = 0;

}  // namespace

Result<std::unique_ptr<Lifeline>> Lifeline::open(int rank, int ranks) {
  std::unique_ptr<Lifeline> made(new Lifeline(rank, ranks));
  auto listening = lifeline::listen_anywhere();
  if (!listening.ok()) return listening.status();
  made->listener_ = std::move(listening.value().fd);
  made->epoll_ = lifeline::OwnFd::epoll();
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kListenerId}};
  if (!made->epoll_.valid() ||
      epoll_ctl(made->epoll_.get(), EPOLL_CTL_ADD, made->listener_.get(), &event) != 0) {
    return Status(Code::kSystem, std::string("lifelines: epoll: ") + std::strerror(errno));
  }
  made->peers_.resize(static_cast<std::size_t>(ranks));
  made->peer(rank).state = State::kAlive;
  made->own_ = lifeline::every_own_address();
  LifelineAddress& address = made->address_;
  address = {
      .version = lifeline::kVersion, .port = listening.value().port, .node = lifeline::node_id()};
  for (const lifeline::Ip& ip : lifeline::node_addresses()) {
    if (address.count < address.ips.size()) address.ips[address.count++] = ip;
  }
  return made;
}

void Lifeline::join(std::uint64_t world) {
  world_ = world;
  joined_ = true;
}

// Who has called and not been let in yet is, so that it hears of the orderly end, too.
Lifeline::~Lifeline() {
  if (inherited() || !joined_) return;
  try {
    for (int accepted = 0; accepted <= ranks_; accepted += kAcceptsPerProgress) progress();
  } catch (const std::bad_alloc&) {
    // Those who were not let in find the port closed, and take this for an end, too.
  }
  for (Link& link : links_) {
    if (link.kind == Link::Kind::kLive || link.kind == Link::Kind::kAsking) {
      (void)send(link.fd.get(), &lifeline::kBye, 1, MSG_NOSIGNAL);
    }
  }
}

Lifeline::State Lifeline::state(int rank) const {
  if (rank < 0 || rank >= ranks_) return State::kUnknown;
  return peers_[static_cast<std::size_t>(rank)].state;
}

const Status& Lifeline::reason(int rank) const {
  static const Status kOk;
  if (rank < 0 || rank >= ranks_) return kOk;
  return peers_[static_cast<std::size_t>(rank)].reason;
}

Lifeline::Id Lifeline::add_link(Link::Kind kind, lifeline::OwnFd fd, std::uint32_t events,
                                Time deadline) {
  std::size_t place = links_.size();
  if (free_.empty()) {
    links_.emplace_back().place = place;
    free_.reserve(links_.size());  // so that closing needs no memory
  } else {
    place = free_.back();
    free_.pop_back();
  }
  Link& link = links_[place];
  const Id id = static_cast<Id>(link.uses) << 32 | (place + 1);
  epoll_event event = {.events = events, .data = {.u64 = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    free_.push_back(place);
    return 0;
  }
  link.kind = kind;
  link.fd = std::move(fd);
  link.deadline = deadline;
  link.hello_bytes = 0;
  link.rank = -1;
  link.called_us = kind == Link::Kind::kStranger;
  at(deadline);
  return id;
}

Lifeline::Link* Lifeline::find_link(Id id) {
  const std::size_t place = (id & 0xffffffffU) - 1;
  if (place >= links_.size()) return nullptr;
  Link& link = links_[place];
  return link.kind != Link::Kind::kFree && link.uses == id >> 32 ? &link : nullptr;
}

void Lifeline::close_link(Link& link) {
  if (link.kind == Link::Kind::kFree) return;
  if (link.kind == Link::Kind::kStranger) --stranger_count_;
  // Said, not left to close(): a child that is being forked may hold the descriptor a moment more.
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link.fd.get(), nullptr);
  lifeline::OwnFd ended = std::move(link.fd);
  link.kind = Link::Kind::kFree;
  ++link.uses;
  free_.push_back(link.place);
}

// A new connection takes so few bytes at once; one that does not is of no use.
bool Lifeline::say(Link& link, const lifeline::Hello& hello) {
  const lifeline::HelloBytes bytes = lifeline::encode(hello);
  return send(link.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

void Lifeline::progress() {
  if (inherited() || !joined_) return;
  std::array<epoll_event, kEventsPerProgress> events = {};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const Id id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == kListenerId) {
      accept_some();
    } else {
      on_event(id);
    }
  }
  // Nobody's time is up who has done something that was not looked at yet.
  const bool seen_all = count < static_cast<int>(events.size());
  if (seen_all && next_timer_ != Time::max() && Clock::now() >= next_timer_) check_timers();
}

void Lifeline::on_event(Id id) {
  Link* const link = find_link(id);
  if (link == nullptr) return;
  switch (link->kind) {
    case Link::Kind::kCalling: on_called(id); break;
    case Link::Kind::kAsking:
    case Link::Kind::kStranger: read_hello(id); break;
    case Link::Kind::kLive: read_live(*link); break;
    case Link::Kind::kFree: break;
  }
}

void Lifeline::accept_some() {
  for (int i = 0; i < kAcceptsPerProgress; ++i) {
    lifeline::OwnFd fd = lifeline::OwnFd::accept(listener_);
    if (!fd.valid()) {
      return note_descriptors(errno);
    }
    // The oldest has had the longest time. Members of the job are too few to push each other out.
    while (stranger_count_ >= ranks_ + kSpareStrangers) {
      Link* const oldest = find_link(strangers_.front());
      strangers_.pop_front();
      if (oldest != nullptr && oldest->kind == Link::Kind::kStranger) {
        drop_stranger(*oldest, "says nothing, and others are waiting");
      }
    }
    lifeline::watch_closely(fd);
    const Id id =
        add_link(Link::Kind::kStranger, std::move(fd), EPOLLIN, Clock::now() + kHelloWithin);
    if (id == 0) return;
    ++stranger_count_;
    strangers_.push_back(id);
    read_hello(id);  // it is often there already
  }
}

void Lifeline::note_descriptors(int error) {
  if ((error != EMFILE && error != ENFILE) || std::exchange(told_of_descriptors_, true)) return;
  log(LogLevel::kWarning,
      "lifelines: no file descriptor is left; raise the limit (ulimit -n), or the ends of some "
      "processes will not be noticed");
}

void Lifeline::drop_stranger(Link& link, const std::string& why) {
  if (!std::exchange(told_of_strangers_, true)) {
    log(LogLevel::kWarning, "lifelines: a connection to port " + std::to_string(address_.port) +
                                " was closed: it " + why + " (said once)");
  }
  close_link(link);
}

// No more than a hello is read: what follows is for read_live.
void Lifeline::read_hello(Id id) {
  Link& link = *find_link(id);
  const ssize_t got = recv(link.fd.get(), link.hello.data() + link.hello_bytes,
                           link.hello.size() - link.hello_bytes, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (link.kind == Link::Kind::kAsking) return hung_up(link, got == 0 ? 0 : errno);
    return close_link(link);  // it has not said anything that one could believe
  }
  link.hello_bytes += static_cast<std::size_t>(got);
  const Verdict verdict = lifeline::judge(std::span(link.hello).first(link.hello_bytes),
                                          {.world = world_, .to = rank_, .ranks = ranks_});
  if (verdict.kind == Verdict::Kind::kIncomplete) return;
  if (link.kind == Link::Kind::kAsking) return take_answer(link, verdict);
  take_caller(id, verdict);
}

void Lifeline::take_caller(Id id, const Verdict& verdict) {
  Link& link = *find_link(id);
  switch (verdict.kind) {
    case Verdict::Kind::kIncomplete: return;
    case Verdict::Kind::kNotCarillon: return drop_stranger(link, "does not speak carillon");
    case Verdict::Kind::kOtherWorld: return drop_stranger(link, "is of another job");
    case Verdict::Kind::kWrongRank: return drop_stranger(link, "gives ranks that cannot be");
    case Verdict::Kind::kOtherVersion:
      (void)say(link, {});  // so that it can tell its user, too; the world is not for everybody
      if (!std::exchange(told_of_versions_, true)) {
        log(LogLevel::kWarning,
            lifeline::other_version("lifelines: a process that called", verdict.version));
      }
      return close_link(link);
    case Verdict::Kind::kGood: break;
  }
  Peer& caller = peer(verdict.from);
  if (final(caller.state)) return close_link(link);
  if (caller.has_called) return drop_stranger(link, "calls a second time");
  if (!say(link, {.world = world_, .from = rank_, .to = verdict.from})) return close_link(link);
  became_live(link, verdict.from);
}

void Lifeline::became_live(Link& link, int rank) {
  if (link.kind == Link::Kind::kStranger) --stranger_count_;
  Peer& other = peer(rank);
  link.kind = Link::Kind::kLive;
  link.rank = rank;
  link.deadline = Time::max();
  if (link.called_us) other.has_called = true;
  ++other.live;
  other.state = State::kAlive;
  other.reason = {};
  other.call_at = Time::max();
}

void Lifeline::read_live(Link& link) {
  std::array<std::byte, 64> bytes;
  const ssize_t got = recv(link.fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return live_ended(link, got == 0 ? 0 : errno);
  if (std::find(bytes.begin(), bytes.begin() + got, lifeline::kBye) != bytes.begin() + got) {
    const int rank = link.rank;
    settle(rank, State::kLeft, {Code::kPeerDead, name(rank) + " has ended its work with carillon"});
  }
}

void Lifeline::live_ended(Link& link, int error) {
  const int rank = link.rank;
  Peer& other = peer(rank);
  if (link.called_us) other.has_called = false;
  close_link(link);
  if (--other.live > 0 || final(other.state)) return;
  std::string what = name(rank) + " has ended without saying so (killed, or crashed?)";
  if (error != 0 && error != ECONNRESET && error != EPIPE) {
    what = name(rank) + " cannot be reached any more (" + std::strerror(error) +
           "): is its node down, or the network to it?";
  }
  settle(rank, State::kDead, {Code::kPeerDead, what});
}

void Lifeline::settle(int rank, State state, Status reason) {
  Peer& other = peer(rank);
  if (final(other.state)) return;
  other.state = state;
  other.reason = std::move(reason);
  if (!final(state)) return;
  other.call_at = Time::max();
  if (Link* const call = find_link(other.call);
      call != nullptr && call->rank == rank && call->kind != Link::Kind::kLive) {
    close_link(*call);
  }
  other.call = 0;
}

void Lifeline::check_timers() {
  const Time now = Clock::now();
  next_timer_ = Time::max();
  while (!strangers_.empty()) {
    Link* const link = find_link(strangers_.front());
    const bool stranger = link != nullptr && link->kind == Link::Kind::kStranger;
    if (stranger && link->deadline > now) {
      at(link->deadline);
      break;
    }
    if (stranger) drop_stranger(*link, "did not say who it is in time");
    strangers_.pop_front();
  }
  for (const int rank : calling_) {  // who calls again is in there already
    Link* const link = find_link(peer(rank).call);
    if (link != nullptr && link->kind == Link::Kind::kCalling && link->deadline <= now) {
      close_link(*link);
      call_failed(rank, "no answer", false);
    }
    if (peer(rank).call_at <= now) call_next(rank);
  }
  std::erase_if(calling_, [&](int rank) {
    Peer& other = peer(rank);
    const Link* const link = find_link(other.call);
    const bool under_way = link != nullptr && link->kind == Link::Kind::kCalling;
    if (under_way) at(link->deadline);
    at(other.call_at);
    return !under_way && other.call_at == Time::max();
  });
}

}  // namespace carillon
