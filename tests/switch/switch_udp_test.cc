// SPDX-License-Identifier: Apache-2.0
//
// Hosts and switches in software over UDP on loopback, two jobs at once, with sockets that lose,
// repeat and overtake: the right bits, and nothing for a third who has no key.
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "switch/daemon/server.h"
#include "transport/aggregate/control.h"
#include "transport/aggregate/stream.h"

namespace carillon::aggregate {
namespace {

constexpr std::uint32_t kLoopback = 0x7f000001;
constexpr SipKey kAdministrator = {0x1122334455667788, 0x99aabbccddeeff00};
// For as long as a busy machine may take: what is waited for comes, or the test has failed.
constexpr std::int64_t kLong = std::int64_t{200} * 1'000'000'000;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// A server, and the thread that it works in.
class Daemon {
 public:
  explicit Daemon(std::uint16_t number, std::uint32_t at = kLoopback)
      : stop_(eventfd(0, EFD_CLOEXEC)) {
    const SwitchConfig config = {.administrator = kAdministrator, .number = number};
    auto server = Server::open({.at = {at, 0}}, std::make_unique<ReferenceEngine>(config));
    EXPECT_TRUE(server.ok()) << server.status().to_string();
    server_ = std::move(server.value());
    thread_ = std::thread([this] { status_ = server_->serve(stop_.get()); });
  }
  ~Daemon() { (void)stop(); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  [[nodiscard]] Endpoint at() const { return server_->at(); }
  // After this, what it has counted may be read.
  const Server& stop() {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      EXPECT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
      thread_.join();
      EXPECT_TRUE(status_.ok()) << status_.to_string();
    }
    return *server_;
  }

 private:
  UniqueFd stop_;
  std::unique_ptr<Server> server_;
  Status status_;
  std::thread thread_;
};

// A host's socket, with faults both ways.
class FaultyPort final : public Output, public DatagramListener {
 public:
  using Receiver = std::function<void(const Endpoint&, std::span<const std::byte>)>;
  FaultyPort(std::uint64_t seed, double lose, double duplicate, double reorder)
      : random_(seed), lose_(lose), duplicate_(duplicate), reorder_(reorder) {
    auto port = UdpPort::open({kLoopback, 0});
    EXPECT_TRUE(port.ok()) << port.status().to_string();
    port_ = std::move(port.value());
  }
  [[nodiscard]] Endpoint at() const { return port_->at(); }
  Receiver receiver;

  void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override {
    for (const Endpoint& one : to) {
      pass(one, datagram, [this](const Endpoint& at, std::span<const std::byte> bytes) {
        port_->send({&at, 1}, bytes);
      });
    }
  }
  void on_datagram(const Endpoint& from, std::span<const std::byte> datagram) override {
    // Who receives when it is handed on, not when it came.
    pass(from, datagram,
         [this](const Endpoint& at, std::span<const std::byte> bytes) { receiver(at, bytes); });
  }
  void move() {
    port_->flush();
    const Status status = port_->receive(*this);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

 private:
  bool chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  template <typename Way>
  void pass(const Endpoint& at, std::span<const std::byte> datagram, const Way& way) {
    if (chance(lose_)) return;
    if (!kept_.empty() && chance(0.5)) {
      const auto kept = std::move(kept_);
      kept_.clear();
      for (const auto& [where, bytes, then] : kept) then(where, bytes);
    }
    if (chance(reorder_)) {
      kept_.push_back({at, {datagram.begin(), datagram.end()}, way});
      return;
    }
    way(at, datagram);
    if (chance(duplicate_)) way(at, datagram);
  }

  struct Kept {
    Endpoint at;
    std::vector<std::byte> bytes;
    Receiver way;
  };
  std::unique_ptr<UdpPort> port_;
  std::mt19937_64 random_;
  double lose_, duplicate_, reorder_;
  std::vector<Kept> kept_;
};

template <typename Control>
void settle(Control& control, FaultyPort& port) {
  port.receiver = [&](const Endpoint& from, std::span<const std::byte> datagram) {
    (void)control.take(from, datagram);
  };
  const std::int64_t end = now_ns() + kLong;
  while (!control.done() && now_ns() < end) {
    control.progress(now_ns(), port);
    port.move();
  }
  port.receiver = [](const Endpoint&, std::span<const std::byte>) {};
  ASSERT_TRUE(control.done() && control.status().ok()) << control.status().to_string();
}

constexpr ControlTimes kPatient = {.retry_ns = 20'000'000, .give_up_ns = kLong};

// A job's hosts on a root and two switches below it: an uneven tree.
class JobOnTree {
 public:
  JobOnTree(std::uint32_t job, int hosts, const std::vector<Endpoint>& switches)
      : job_(job), key_(job_key(kAdministrator, job, job + 1000)) {
    for (int host = 0; host < hosts; ++host) {
      ports_.push_back(
          std::make_unique<FaultyPort>(job * 100 + static_cast<unsigned>(host), 0.1, 0.05, 0.1));
    }
    Requests install(kAdministrator, job << 16, kPatient);
    std::vector<Request> requests;
    for (const Endpoint& at : switches) {
      requests.push_back(
          install_job(at, job, {.nonce = job + 1000, .groups = 2, .memory_bytes = 16 << 20}));
    }
    install.start(requests, now_ns());
    settle(install, *ports_[0]);
    plan_.window = 8;
    plan_.operand_bytes = 1408;
    plan_.switches = {{.at = switches[0], .parent = {}, .children = {switches[1], {}, switches[2]}},
                      {.at = switches[1], .parent = 0, .children = {}},
                      {.at = switches[2], .parent = 0, .children = {}}};
    plan_.switches[0].children.push_back(ports_[0]->at());
    for (int host = 1; host < hosts; ++host) {
      plan_.switches[static_cast<std::size_t>(1 + host % 2)].children.push_back(
          ports_[static_cast<std::size_t>(host)]->at());
    }
    EXPECT_TRUE(check_plan(plan_).ok()) << check_plan(plan_).to_string();
    TreeControl control(job, key_, 1 << 20, kPatient);
    control.build(plan_, now_ns());
    settle(control, *ports_[0]);
    group_ = control.group();
    for (int host = 0; host < hosts; ++host) add_stream(host);
  }

  // All hosts' calls, one after the other, and progress for all until each has its results.
  void allreduce(std::size_t count, int calls) {
    const std::size_t hosts = streams_.size();
    std::vector<std::vector<std::int64_t>> buffers(hosts);
    for (std::size_t host = 0; host < hosts; ++host) {
      for (std::size_t i = 0; i < count; ++i) {
        buffers[host].push_back(static_cast<std::int64_t>((host + 1) * 1'000'000 + i * (job_ + 3)));
      }
    }
    const auto h = static_cast<std::int64_t>(hosts);
    std::int64_t scale = 1;
    for (int call = 0; call < calls; ++call, scale *= h) {
      std::vector<Stream::Ticket> tickets;
      for (std::size_t host = 0; host < hosts; ++host) {
        auto* const at = reinterpret_cast<std::byte*>(buffers[host].data());
        tickets.push_back(*streams_[host]->post(
            {.op = Op::kSum, .type = Type::kInt64, .input = at, .output = at, .count = count}));
      }
      ASSERT_TRUE(progress(tickets));
    }
    scale /= h;  // every sum after the first is of equal values
    for (std::size_t host = 0; host < hosts; ++host) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t first =
            h * (h + 1) / 2 * 1'000'000 + h * static_cast<std::int64_t>(i * (job_ + 3));
        ASSERT_EQ(buffers[host][i], first * scale) << "host " << host << ", element " << i;
      }
    }
  }

  // Another tree of the job's, and its end.
  void build_and_free() {
    FaultyPort sound(1, 0, 0, 0);  // nothing that was asked for before comes after
    TreeControl control(job_, key_, 2 << 20, kPatient);
    control.build(plan_, now_ns());
    settle(control, sound);
    EXPECT_NE(control.group(), group_);
    control.free(now_ns());
    settle(control, sound);
  }

  [[nodiscard]] std::uint32_t group() const { return group_; }
  [[nodiscard]] std::uint64_t again() const {
    std::uint64_t all = 0;
    for (const auto& stream : streams_) all += stream->counts().again;
    return all;
  }

 private:
  void add_stream(int host) {
    const auto index = static_cast<std::size_t>(host);
    const Endpoint own = ports_[index]->at();
    StreamConfig config = {.job = job_,
                           .group = group_,
                           .key = key_,
                           .window = plan_.window,
                           .operand_bytes = plan_.operand_bytes,
                           .path = {},
                           .times = {.give_up_ns = kLong}};
    for (const TreeSwitch& one : plan_.switches) {
      for (std::size_t child = 0; child < one.children.size(); ++child) {
        if (!(one.children[child] == own)) continue;
        config.child = static_cast<std::uint16_t>(child);
        config.path = {one.at};
        if (one.parent) config.path.push_back(plan_.switches[*one.parent].at);
      }
    }
    streams_.push_back(std::make_unique<Stream>(config));
    Stream* const stream = streams_.back().get();
    ports_[index]->receiver = [stream](const Endpoint& from, std::span<const std::byte> datagram) {
      (void)stream->take(from, datagram, now_ns());
    };
  }
  bool progress(const std::vector<Stream::Ticket>& tickets) {
    const std::int64_t end = now_ns() + kLong;
    for (bool all = false; !all;) {
      if (now_ns() > end) return false;
      all = true;
      for (std::size_t host = 0; host < streams_.size(); ++host) {
        streams_[host]->progress(now_ns(), *ports_[host]);
        ports_[host]->move();
        EXPECT_TRUE(streams_[host]->status().ok()) << streams_[host]->status().to_string();
        all = all && streams_[host]->done(tickets[host]);
      }
    }
    return true;
  }

  std::uint32_t job_;
  SipKey key_;
  std::vector<std::unique_ptr<FaultyPort>> ports_;
  TreePlan plan_;
  std::uint32_t group_ = 0;
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST(SwitchUdp, TwoJobsReduceOnOneTreeAndAThirdGetsNothing) {
  Daemon root(0), left(1), right(2);
  const std::vector<Endpoint> switches = {root.at(), left.at(), right.at()};
  JobOnTree one(1, 5, switches), two(2, 3, switches);
  for (const std::size_t count : {1, 32, 33, 3000}) {
    one.allreduce(count, 2);
    two.allreduce(count, 3);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(one.again(), 0U) << "nothing was lost";

  // Who knows all but the key, and who names a job that is not there.
  const auto stranger = UdpPort::open({kLoopback, 0});
  ASSERT_TRUE(stranger.ok());
  for (const std::uint32_t job : {1, 3}) {
    std::vector<std::byte> datagram(kHeaderBytes + 8);
    seal({1, 2},
         {.version = kVersion,
          .kind = Kind::kContribute,
          .type = Type::kInt64,
          .count = 1,
          .job = job,
          .group = one.group()},
         datagram);
    const Endpoint to = root.at();
    stranger.value()->send({&to, 1}, datagram);
  }
  stranger.value()->flush();
  struct Answers final : DatagramListener {
    std::vector<Header> headers;
    void on_datagram(const Endpoint&, std::span<const std::byte> datagram) override {
      headers.push_back(load_header(datagram.data()));
    }
  } answers;
  for (const std::int64_t end = now_ns() + kLong; answers.headers.empty() && now_ns() < end;) {
    ASSERT_TRUE(stranger.value()->receive(answers).ok());
  }
  ASSERT_EQ(answers.headers.size(), 1U);
  EXPECT_EQ(answers.headers[0].reason, Reason::kUnknownJob);
  EXPECT_EQ(answers.headers[0].job, 3U);

  two.build_and_free();
  const Server& server = root.stop();
  EXPECT_EQ(server.model().counters().bad_tag, 1U);
  EXPECT_EQ(server.model().counters().unknown_job, 1U);
  EXPECT_EQ(server.model().counters().malformed, 0U);
  EXPECT_GT(server.model().counters().resent_results, 0U);
  EXPECT_EQ(server.model().jobs(), 2U);
  EXPECT_EQ(server.model().groups(), 2U) << "each job's first";
}

// They listen at all addresses of their machine. Who names one that no route would take hears from
// that, a switch's parent too.
TEST(SwitchUdp, SwitchesAnswerFromTheAddressThatTheyAreNamedBy) {
  Daemon root(0, 0), left(1, 0), right(2, 0);
  JobOnTree job(1, 5,
                {{kLoopback + 1, root.at().port},
                 {kLoopback + 2, left.at().port},
                 {kLoopback + 3, right.at().port}});
  if (HasFatalFailure()) return;
  for (const std::size_t count : {1, 3000}) job.allreduce(count, 2);
}

void set_mtu_of_loopback(int mtu) {
  const UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq lo = {};
  std::strcpy(lo.ifr_name, "lo");
  lo.ifr_flags = IFF_UP;
  ASSERT_EQ(ioctl(any.get(), SIOCSIFFLAGS, &lo), 0);
  lo.ifr_mtu = mtu;
  ASSERT_EQ(ioctl(any.get(), SIOCSIFMTU, &lo), 0);
}

// In a network of the thread's own. When the MTU is lowered, what was sent before goes on coming if
// fragments may, and what is longer does not.
void lower_the_mtu(bool fragments) {
  constexpr std::size_t kMany = 4000, kMore = 5000;
  set_mtu_of_loopback(4200);
  const auto from = UdpPort::open({kLoopback, 0}), to = UdpPort::open({kLoopback, 0});
  ASSERT_TRUE(from.ok() && to.ok());
  if (fragments) from.value()->allow_fragments();
  struct Lengths final : DatagramListener {
    std::vector<std::size_t> all;
    void on_datagram(const Endpoint&, std::span<const std::byte> datagram) override {
      EXPECT_EQ(datagram[0], std::byte(all.size())) << "in the order of their sending";
      all.push_back(datagram.size());
    }
  } heard;
  std::byte number{};
  std::vector<std::size_t> expected;
  const auto send = [&](std::size_t bytes, bool arrives) {
    const Endpoint there = to.value()->at();
    from.value()->send({&there, 1}, std::vector<std::byte>(bytes, number));
    from.value()->flush();
    ASSERT_TRUE(to.value()->receive(heard).ok());  // on loopback it is there, or will never be
    if (arrives) number = std::byte(std::to_integer<int>(number) + 1);
    if (arrives) expected.push_back(bytes);
    ASSERT_EQ(heard.all, expected);
  };
  send(kMany, true);
  send(kMore, false);
  set_mtu_of_loopback(1500);
  send(kMore, false);
  send(kMany, fragments);
  send(100, true);
  send(kMany, fragments);
  EXPECT_EQ(from.value()->counts().unsent, fragments ? 2U : 4U);
}

TEST(SwitchUdp, WhereAnMtuIsLoweredLongPacketsGoInFragments) {
  bool may = true;
  std::thread([&] {
    may = unshare(CLONE_NEWNET) == 0;
    for (const bool fragments : {false, true}) {
      if (may) lower_the_mtu(fragments);
    }
  }).join();
  if (!may) GTEST_SKIP() << "needs CAP_SYS_ADMIN for a network of its own";
}

std::int64_t resident_kib() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

// Each communicator of a program has one of each.
TEST(SwitchUdp, WhatIsNotUsedTakesNoMemory) {
  constexpr std::int64_t kPorts = 20, kMostKib = 200;
  std::vector<std::unique_ptr<UdpPort>> ports;
  std::vector<std::unique_ptr<Stream>> streams;
  const std::int64_t before = resident_kib();
  for (std::int64_t i = 0; i < kPorts; ++i) {
    auto port = UdpPort::open({kLoopback, 0});
    ASSERT_TRUE(port.ok()) << port.status().to_string();
    ports.push_back(std::move(port.value()));
    streams.push_back(std::make_unique<Stream>(StreamConfig{
        .window = 64, .operand_bytes = kBurstOperandBytes, .path = {ports.back()->at()}}));
  }
  EXPECT_LT(resident_kib() - before, kPorts * kMostKib);
}

TEST(SwitchUdp, APortThatIsTakenIsAnErrorWithItsAddress) {
  const auto first = UdpPort::open({kLoopback, 0});
  ASSERT_TRUE(first.ok());
  const auto second = UdpPort::open(first.value()->at());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("127.0.0.1:"), std::string_view::npos);
}

}  // namespace
}  // namespace carillon::aggregate
