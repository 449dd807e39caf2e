// SPDX-License-Identifier: Apache-2.0
//
// Processes join their node where the program has signals, where one of them can have no socket,
// and where pids mean other processes than they say (containers on one network).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "support/calls.h"
#include "transport/shm/segment.h"

namespace carillon::test {
namespace {

constexpr int kPatienceMs = 20000;

std::atomic<int> g_sockets = 1000;  // that this process may still have, of those within the node

std::atomic<int> g_handled = 0;

// The program's handler, which asks for no call to be begun again.
class Signals {
 public:
  Signals() {
    struct sigaction handler = {};
    handler.sa_handler = [](int) { g_handled.fetch_add(1); };
    sigaction(SIGUSR1, &handler, &before_);
  }
  ~Signals() { sigaction(SIGUSR1, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// So many arrive in another thread, that runs body(), one after another.
  static std::thread disturb(int signals, std::atomic<bool>& over,
                             const std::function<void()>& body) {
    over = false;
    std::thread thread([&over, body] {
      body();
      over = true;
    });
    for (int i = 0; i < signals && !over.load(); ++i) {
      const int handled = g_handled.load();
      pthread_kill(thread.native_handle(), SIGUSR1);
      while (g_handled.load() == handled && !over.load()) sched_yield();
    }
    return thread;
  }

 private:
  struct sigaction before_ = {};
};

shm::SegmentSizes small_sizes() {
  return {.control_bytes = 1 << 20,
          .pool = {.small_bytes = 1 << 18, .large_bytes = 3 << 18},
          .reserve_bytes = 1 << 20,
          .heap_bytes = 1 << 20,
          .program_bytes = 1 << 20};
}

TEST(Joining, SignalsOfTheProgramDoNotEndIt) {
  constexpr int kSignals = 200;
  const Signals signals;
  auto segment = shm::Segment::create(2, small_sizes());
  ASSERT_TRUE(segment.ok());
  auto leader = shm::Exchange::listen();
  ASSERT_TRUE(leader.ok());
  std::atomic<bool> over = false;
  Result<UniqueFd> asked = Status(Code::kInternal, "nothing yet");
  std::thread asks = Signals::disturb(
      kSignals, over, [&] { asked = shm::Exchange::request(leader.value().name(), kPatienceMs); });
  EXPECT_FALSE(over.load()) << asked.status().to_string();
  EXPECT_TRUE(leader.value().serve(segment.value()->fd(), 1, kPatienceMs).ok());
  asks.join();
  EXPECT_TRUE(asked.ok()) << asked.status().to_string();

  Status served;
  std::thread serves = Signals::disturb(kSignals, over, [&] {
    served = leader.value().serve(segment.value()->fd(), 1, kPatienceMs);
  });
  EXPECT_FALSE(over.load()) << served.to_string();
  EXPECT_TRUE(shm::Exchange::request(leader.value().name(), kPatienceMs).ok());
  serves.join();
  EXPECT_TRUE(served.ok()) << served.to_string();
}

// One process gets so few sockets while it joins: its node is not served, and that is all.
void join_without(int rank, int without, int sockets, Meeting& world, Meeting& meeting) {
  if (rank == without) g_sockets = sockets;
  crl_context_h context = make_context(world, rank);
  crl_team_h team = make_team(context, meeting.oob(rank));
  EXPECT_EQ(settle(team), CRL_ERR_UNSUPPORTED) << "rank " << rank;
  crl_team_destroy(team);
  crl_context_destroy(context);
}

constexpr int kRanks = 3;

// The leader does not wait until its patience is over, which is more than the test's.
TEST(Joining, ItIsKnownAtOnceThatAProcessHasNoSocket) {
  setenv("CARILLON_JOIN_TIMEOUT_S", "600", 1);
  for (const int without : {0, 2}) {
    Meeting world(kRanks), meeting(kRanks);
    expect_processes_ok(
        kRanks, [&](int rank) { join_without(rank, without, 0, world, meeting); },
        kPatienceMs / 1000);
  }
  unsetenv("CARILLON_JOIN_TIMEOUT_S");
}

// One for the socket that it listens on, none for the one that it would ask with: the leader waits,
// but not for so long that the others give up waiting for the leader.
TEST(Joining, TheLeadersPatienceEndsBeforeTheOthersDoes) {
  setenv("CARILLON_JOIN_TIMEOUT_S", "4", 1);
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(
      kRanks, [&](int rank) { join_without(rank, 2, 1, world, meeting); }, kPatienceMs / 1000);
  unsetenv("CARILLON_JOIN_TIMEOUT_S");
}

// The others neither wait for who cannot go on, nor are they told that he has not come.
TEST(Joining, ItIsKnownAtOnceThatAProcessHasASettingThatCannotBe) {
  constexpr int kWrong = 1;
  setenv("CARILLON_JOIN_TIMEOUT_S", "600", 1);
  for (const auto& [name, value] :
       {std::pair("CARILLON_SLOT_BYTES", "x"), std::pair("CARILLON_ALGORITHM", "allreduce=none"),
        std::pair("CARILLON_SWITCH", "x")}) {
    Meeting world(kRanks);
    expect_processes_ok(
        kRanks,
        [&](int rank) {
          if (rank == kWrong) setenv(name, value, 1);
          crl_context_config_t config = {};
          config.struct_bytes = sizeof config;
          config.oob = world.oob(rank);
          crl_context_h context = nullptr;
          EXPECT_EQ(crl_context_create(&config, &context),
                    rank == kWrong ? CRL_ERR_INVALID_ARGUMENT : CRL_ERR_UNSUPPORTED);
          const std::string said = crl_last_error();
          const char* const why = rank == kWrong ? name : "process 1 of the job does not take part";
          EXPECT_NE(said.find(why), said.npos) << said;
        },
        kPatienceMs / 1000);
  }
  unsetenv("CARILLON_JOIN_TIMEOUT_S");
}

// What is behind the end of a file cannot be touched.
TEST(Joining, ASegmentThatIsNotAsLongAsItSaysIsRefused) {
  const auto part = static_cast<std::uint64_t>(shm::kHugePageBytes);
  const auto attached = [&](std::uint32_t ranks, std::uint64_t parts, std::uint64_t heap_bytes) {
    UniqueFd file(memfd_create("carillon-test", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>((1 + parts) * part)), 0);
    shm::SegmentHeader header = {};
    header.shape.magic = shm::kMagic;
    header.shape.version = shm::kVersion;
    header.shape.ranks = ranks;
    header.shape.part_bytes = part;
    header.shape.heap_bytes = heap_bytes;
    EXPECT_EQ(pwrite(file.get(), &header, sizeof header, 0), ssize_t{sizeof header});
    return shm::Segment::attach(std::move(file)).status().code();
  };
  EXPECT_EQ(attached(2, 2, 0), Code::kOk);
  EXPECT_EQ(attached(2, 2, part), Code::kOk);
  EXPECT_EQ(attached(2, 1, 0), Code::kMismatch);
  EXPECT_EQ(attached(2, 0, 0), Code::kMismatch);
  EXPECT_EQ(attached(0, 2, 0), Code::kMismatch);
  EXPECT_EQ(attached(3, 2, 0), Code::kMismatch);
  EXPECT_EQ(attached(UINT32_MAX, 2, 0), Code::kMismatch);
  EXPECT_EQ(attached(2, 2, part + 1), Code::kMismatch);
  EXPECT_EQ(attached(2, 2, UINT64_MAX), Code::kMismatch);
}

// A descriptor that belongs to another process than was meant is not touched: to close the segment
// a second time would drop the lock by which others see that this process lives.
TEST(Joining, OnlyTheOthersHeapIsOpened) {
  auto created = shm::Segment::create(2, small_sizes());
  ASSERT_TRUE(created.ok());
  shm::Segment& segment = *created.value();
  ASSERT_TRUE(segment.enter(0).ok());
  struct stat own = {};
  ASSERT_EQ(fstat(segment.fd(), &own), 0);
  shm::RankState& other = segment.state(1);
  other.pid = getpid();
  other.heap_fd = segment.fd();
  other.heap_device = own.st_dev;
  other.heap_inode = own.st_ino + 1;
  other.heap_bytes = shm::kPageBytes;
  EXPECT_EQ(segment.map_heaps(0), 1);
  EXPECT_FALSE(segment.heap_is_mapped(1));
  const pid_t child = fork();
  if (child == 0) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    _exit(fcntl(segment.fd(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the lock is gone";
}

}  // namespace
}  // namespace carillon::test

// socket() of all that is linked statically is led through here.
extern "C" {
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol) {
  const bool counts = domain == AF_UNIX && (type & SOCK_STREAM) != 0;
  if (!counts || carillon::test::g_sockets.fetch_sub(1) > 0) {
    return __real_socket(domain, type, protocol);
  }
  errno = EMFILE;
  return -1;
}
}  // extern "C"
