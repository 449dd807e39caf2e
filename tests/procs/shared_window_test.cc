// SPDX-License-Identifier: Apache-2.0
//
// Windows of the C API: memory that the node's processes have mapped themselves, at other addresses
// in each, is read in place; who is not of one mind about it, or of one node, has other memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr std::size_t kCount = 20000;  // of values in a part
constexpr std::size_t kPart = kCount * 8;

// One file, mapped by each rank; with `apart`, the parts lie elsewhere at each.
class Mapped {
 public:
  explicit Mapped(int ranks) : ranks_(ranks), fd_(memfd_create("window", 0)) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(ranks * kPart)), 0);
  }
  ~Mapped() { close(fd_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  [[nodiscard]] std::vector<void*> parts(int rank, bool apart) const {
    const std::size_t bytes = static_cast<std::size_t>(ranks_) * kPart;
    (void)mmap(nullptr, static_cast<std::size_t>(rank + 1) * kPart, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::vector<void*> all;
    char* whole = nullptr;
    for (int i = 0; i < ranks_; ++i) {
      if (whole == nullptr || apart) {
        void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        EXPECT_NE(base, MAP_FAILED);
        whole = static_cast<char*>(base);
      }
      all.push_back(whole + static_cast<std::size_t>(i) * kPart);
    }
    return all;
  }

 private:
  int ranks_;
  int fd_;
};

std::uint64_t in_place(crl_context_h context) {
  crl_traffic_t traffic;
  crl_context_traffic(context, &traffic);
  return traffic.in_place_bytes;
}

void fill(void* part, int rank, int round) {
  const auto values = values_of(rank, round, kCount);
  std::memcpy(part, values.data(), kPart);
}

// `root` gives `part`; the others have a copy then.
void broadcast(crl_team_h team, int root, void* part, std::int64_t round) {
  std::vector<std::int64_t> out(kCount);
  const bool gives = crl_team_rank(team) == root;
  expect_ok(crl_bcast(team, gives ? part : out.data(), kPart, root));
  if (!gives) {
    EXPECT_EQ(out, values_of(root, round, kCount)) << "root " << root;
  }
}

// What the processes of a window meet by.
struct Meetings {
  explicit Meetings(int ranks) : world(ranks), team(ranks), window(ranks) {}
  Meeting world, team, window;
};

// One of them, with a window of all parts.
struct Member {
  Member(Meetings& meetings, int rank, std::vector<void*> all)
      : parts(std::move(all)),
        context(make_context(meetings.world, rank)),
        team(make_team(context, meetings.team.oob(rank))) {
    expect_ok(settle(team));
    const std::vector<std::size_t> bytes(parts.size(), kPart);
    const crl_oob_t oob = meetings.window.oob(rank);
    expect_ok(crl_window_create(context, &oob, parts.data(), bytes.data(), &window));
  }
  ~Member() {
    crl_window_destroy(window);
    crl_team_destroy(team);
    crl_context_destroy(context);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  std::vector<void*> parts;
  crl_context_h context;
  crl_team_h team;
  crl_window_h window = nullptr;
};

TEST(SharedWindow, IsReadWhereItStands) {
  for (const int ranks : {2, 3, 5}) {
    for (const bool apart : {false, true}) {
      const Mapped mapped(ranks);
      Meetings meetings(ranks);
      expect_processes_ok(ranks, [&](int rank) {
        const Member own(meetings, rank, mapped.parts(rank, apart));
        for (int root = 0; root < ranks; ++root) {
          // Its neighbour's part, as good as its own.
          void* const part = own.parts[static_cast<std::size_t>((root + 1) % ranks)];
          if (rank == root) fill(part, root, 1);
          const std::uint64_t before = in_place(own.context);
          broadcast(own.team, root, part, 1);
          EXPECT_EQ(in_place(own.context) > before, rank == root);
          expect_ok(crl_barrier(own.team));
        }
        expect_ok(crl_window_close(own.window));
        for (int root = 0; root < ranks; ++root) {
          void* const part = own.parts[static_cast<std::size_t>(root)];
          if (rank == root) fill(part, root, 2);
          const std::uint64_t before = in_place(own.context);
          broadcast(own.team, root, part, 2);
          EXPECT_EQ(in_place(own.context), before);
        }
        expect_ok(crl_barrier(own.team));
      });
    }
  }
}

TEST(SharedWindow, IsNotClosedWhileItIsUsed) {
  constexpr int kRanks = 2;
  const Mapped mapped(kRanks);
  Meetings meetings(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    const Member own(meetings, rank, mapped.parts(rank, false));
    std::vector<std::int64_t> out(kCount);
    crl_request_h request = nullptr;
    if (rank == 0) {
      fill(own.parts[0], 0, 3);
      expect_ok(crl_ibcast(own.team, own.parts[0], kPart, 0, &request));
      EXPECT_EQ(crl_window_close(own.window), CRL_ERR_INVALID_ARGUMENT);
      EXPECT_NE(std::string(crl_last_error()).find("bcast"), std::string::npos) << crl_last_error();
    }
    meetings.world.barrier(rank);
    if (rank != 0) expect_ok(crl_ibcast(own.team, out.data(), kPart, 0, &request));
    expect_ok(crl_request_wait(&request));
    if (rank != 0) {
      EXPECT_EQ(out, values_of(0, 3, kCount));
    }
    expect_ok(crl_window_close(own.window));
    expect_ok(crl_barrier(own.team));
  });
}

// An erroneous program: what a reader cannot find is an error that says so, and all learn of it.
TEST(SharedWindow, OfWhichOneRankKnowsNothingAnyMore) {
  constexpr int kRanks = 2;
  const Mapped mapped(kRanks);
  Meetings meetings(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    Member own(meetings, rank, mapped.parts(rank, false));
    std::vector<std::int64_t> out(kCount);
    if (rank == 1) {
      crl_window_destroy(std::exchange(own.window, nullptr));
      EXPECT_EQ(crl_bcast(own.team, out.data(), kPart, 0), CRL_ERR_INVALID_ARGUMENT);
      EXPECT_NE(std::string(crl_last_error()).find("window"), std::string::npos)
          << crl_last_error();
    } else {
      (void)crl_bcast(own.team, own.parts[0], kPart, 0);  // nobody reads there any more
      EXPECT_EQ(crl_barrier(own.team), CRL_ERR_INVALID_ARGUMENT);
    }
  });
}

TEST(SharedWindow, IsNotMadeWhereAProcessHasDied) {
  constexpr int kRanks = 3;
  const Mapped mapped(kRanks);
  Meeting world(kRanks), of_all(kRanks);
  const std::vector<int> exits = run_processes(
      kRanks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 200);
        world.barrier(rank);
        if (rank == 2) raise(SIGKILL);
        const auto parts = mapped.parts(rank, false);
        const std::vector<std::size_t> bytes(kRanks, kPart);
        const crl_oob_t oob = of_all.oob(rank);
        crl_window_h window = nullptr;
        EXPECT_EQ(crl_window_create(context, &oob, parts.data(), bytes.data(), &window),
                  CRL_ERR_PEER_DEAD);
        EXPECT_EQ(window, nullptr);
        crl_context_destroy(context);
      },
      10);
  EXPECT_EQ(exits, (std::vector<int>{0, 0, -9}));
}

TEST(SharedWindow, IsOfAllWhoAgree) {
  constexpr int kRanks = 3;
  const Mapped mapped(kRanks);
  Meeting world(kRanks), of_all(kRanks), of_some(kRanks - 1);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    const auto parts = mapped.parts(rank, false);
    crl_window_h window = nullptr;
    std::vector<std::size_t> bytes(kRanks, kPart);
    if (rank == 1) bytes[2] = kPart / 2;
    crl_oob_t oob = of_all.oob(rank);
    EXPECT_EQ(crl_window_create(context, &oob, parts.data(), bytes.data(), &window),
              CRL_ERR_UNSUPPORTED);
    bytes.assign(kRanks, kPart);
    if (rank == 2) bytes[0] = SIZE_MAX;
    EXPECT_EQ(crl_window_create(context, &oob, parts.data(), bytes.data(), &window),
              CRL_ERR_UNSUPPORTED);
    bytes.assign(kRanks, kPart);
    if (rank < kRanks - 1) {
      oob = of_some.oob(rank);
      EXPECT_EQ(crl_window_create(context, &oob, parts.data(), bytes.data(), &window),
                CRL_ERR_UNSUPPORTED);
    }
    EXPECT_EQ(crl_window_create(context, nullptr, parts.data(), bytes.data(), &window),
              CRL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(window, nullptr);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test
