// SPDX-License-Identifier: Apache-2.0
//
// The half of a lifeline that calls: each address in turn, and again after a while.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "team/lifeline.h"

namespace carillon {
namespace {

using lifeline::Verdict;

constexpr auto kConnectWithin = std::chrono::seconds(2);  // per address
constexpr auto kSoon = std::chrono::milliseconds(150);
constexpr auto kLater = std::chrono::seconds(5);
// The other side may get through meanwhile, where a firewall lets calls through one way only.
constexpr int kRefusedRounds = 3;
constexpr int kHungUp = 3;

// The node is there, and nobody on that port: or nobody any more, if it had taken the call in.
bool is_refusal(int error) { return error == ECONNREFUSED || error == ECONNRESET; }

}  // namespace

void Lifeline::watch(int rank, const LifelineAddress& address) {
  if (inherited() || !joined_ || rank < 0 || rank >= ranks_ || rank == rank_) return;
  Peer& other = peer(rank);
  if (other.port != 0 || final(other.state)) return;
  const auto unreachable = [&](const std::string& what) {
    if (other.state != State::kAlive) {
      settle(rank, State::kUnreachable,
             {Code::kUnsupported, what + "; if " + name(rank) + " ends, it will not be noticed"});
    }
  };
  if (address.version != lifeline::kVersion) {
    return unreachable(lifeline::other_version(name(rank), address.version));
  }
  if (address.port == 0 || address.count > address.ips.size()) {
    return unreachable(name(rank) + " gives an address that cannot be");
  }
  other.port = address.port;
  for (std::size_t i = 0; i < address.count; ++i) {
    // What another node has in common with this one (of its inner networks) leads nowhere but here.
    const bool ours = std::find(own_.begin(), own_.end(), address.ips[i]) != own_.end();
    if (address.node == address_.node || !ours) other.ips.push_back(address.ips[i]);
  }
  if (other.ips.empty()) {
    return unreachable(name(rank) + " has no address that leads to its node from this one");
  }
  if (other.state == State::kAlive) return;  // has called
  other.state = State::kConnecting;
  call_again(rank, Clock::duration::zero());
  call_next(rank);
}

// Begins a round after so long.
void Lifeline::call_again(int rank, Clock::duration after) {
  Peer& other = peer(rank);
  other.call = 0;
  other.next = other.refused = 0;
  other.trouble.clear();
  other.call_at = Clock::now() + after;
  at(other.call_at);
  if (std::find(calling_.begin(), calling_.end(), rank) == calling_.end()) calling_.push_back(rank);
}

// Calls the next address of this round that does not fail at once.
void Lifeline::call_next(int rank) {
  Peer& other = peer(rank);
  other.call_at = Time::max();
  if (other.state == State::kAlive || final(other.state)) return;
  if (other.next == other.ips.size()) return end_round(rank);
  const lifeline::Ip& ip = other.ips[other.next++];
  lifeline::OwnFd fd = lifeline::OwnFd::tcp_socket(lifeline::family_of(ip));
  if (!fd.valid()) {
    const int error = errno;
    note_descriptors(error);
    return call_failed(rank, std::strerror(error), false);
  }
  lifeline::watch_closely(fd);
  const int error = lifeline::start_connect(fd, ip, other.port);
  if (error != 0 && error != EINPROGRESS) {
    return call_failed(rank, std::strerror(error), is_refusal(error));
  }
  const Id id =
      add_link(Link::Kind::kCalling, std::move(fd), EPOLLOUT, Clock::now() + kConnectWithin);
  if (id == 0) return call_failed(rank, std::strerror(errno), false);
  find_link(id)->rank = rank;
  other.call = id;
  if (error == 0) on_called(id);
}

void Lifeline::call_failed(int rank, const std::string& what, bool refused) {
  Peer& other = peer(rank);
  other.call = 0;
  if (refused) ++other.refused;
  if (!other.trouble.empty()) other.trouble += ", ";
  other.trouble += lifeline::to_string(other.ips[other.next - 1]) + ": " + what;
  call_next(rank);  // at most as deep as there are addresses
}

void Lifeline::end_round(int rank) {
  Peer& other = peer(rank);
  const std::string where = " (port " + std::to_string(other.port) + " at " + other.trouble + ")";
  if (other.refused == other.ips.size()) {
    if (++other.refused_rounds < kRefusedRounds) return call_again(rank, kSoon);
    return settle(rank, State::kDead,
                  {Code::kPeerDead, name(rank) + " does not listen any more" + where +
                                        ": it has ended, or a firewall refuses for it"});
  }
  other.refused_rounds = 0;
  settle(rank, State::kUnreachable,
         {Code::kTimeout, name(rank) + " cannot be reached over TCP" + where +
                              "; if it ends, it will not be noticed. Does a firewall drop TCP " +
                              "between the nodes, or are descriptors (ulimit -n) short?"});
  call_again(rank, kLater);
}

void Lifeline::on_called(Id id) {
  Link& link = *find_link(id);
  const int rank = link.rank;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(link.fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error == 0 && !say(link, {.world = world_, .from = rank_, .to = rank})) error = ECONNRESET;
  if (error != 0) {
    close_link(link);
    return call_failed(rank, std::strerror(error), is_refusal(error));
  }
  // From here on the link is kept, however long the answer takes: the other process may be busy,
  // and if it found the hello and then an end, it would have to believe that this one has died.
  link.kind = Link::Kind::kAsking;
  link.deadline = Time::max();
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = id}};
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd.get(), &event);
}

// The call was taken, and ended before an answer. If the other process ended, the next call will be
// refused; if it took this one for a stranger who says nothing, the next will do better.
void Lifeline::hung_up(Link& link, int error) {
  const int rank = link.rank;
  Peer& other = peer(rank);
  close_link(link);
  if (final(other.state)) return;
  if (++other.hung_up < kHungUp) {
    return call_again(rank, other.hung_up == 1 ? Clock::duration::zero() : kSoon);
  }
  if (other.state != State::kAlive) {
    settle(rank, State::kUnreachable,
           {Code::kTimeout, name(rank) + " hangs up before it says who it is (" +
                                (error == 0 ? "closed" : std::strerror(error)) +
                                "): does another program answer on port " +
                                std::to_string(other.port) + "?"});
  }
  call_again(rank, kLater);
}

void Lifeline::take_answer(Link& link, const Verdict& verdict) {
  const int rank = link.rank;
  Peer& other = peer(rank);
  if (verdict.kind == Verdict::Kind::kGood && verdict.from == rank) {
    other.hung_up = other.refused_rounds = 0;
    return became_live(link, rank);
  }
  if (verdict.kind != Verdict::Kind::kOtherVersion) {
    if (!told_of_strangers_) {
      log(LogLevel::kWarning, "lifelines: what answers at the address of " + name(rank) +
                                  " is no rank of this job (said once)");
    }
    told_of_strangers_ = true;
    return hung_up(link, EPROTO);
  }
  close_link(link);
  other.call = 0;
  if (other.state == State::kAlive) return;
  settle(rank, State::kUnreachable,
         {Code::kUnsupported, lifeline::other_version(name(rank), verdict.version)});
}

}  // namespace carillon
