// SPDX-License-Identifier: Apache-2.0
//
// Memory of a process's own that the others of its node map (crl_context_config_t.heap): it is read
// where it stands, whatever the processes' differ in; where there is no room for that, it is as
// other memory, and the node is served all the same.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 20000;  // of values that are broadcast
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = kMiB << 10;

// A file in memory, and where it is.
class ProcessHeap {
 public:
  explicit ProcessHeap(std::size_t bytes) : bytes_(bytes), fd_(memfd_create("heap", 0)) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes)), 0);
    base_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    EXPECT_NE(base_, MAP_FAILED);
  }
  ~ProcessHeap() {
    munmap(base_, bytes_);
    close(fd_);
  }
  ProcessHeap(const ProcessHeap&) = delete;
  ProcessHeap& operator=(const ProcessHeap&) = delete;

  [[nodiscard]] crl_context_h join(Meeting& world, int rank) const {
    crl_context_config_t config = {};
    config.struct_bytes = sizeof config;
    config.oob = world.oob(rank);
    config.heap = base_;
    config.heap_bytes = bytes_;
    config.heap_fd = fd_;
    crl_context_h context = nullptr;
    expect_ok(crl_context_create(&config, &context));
    return context;
  }
  /// Of what is at its end.
  [[nodiscard]] std::int64_t* values() const {
    return reinterpret_cast<std::int64_t*>(static_cast<char*>(base_) + bytes_) - kCount;
  }

 private:
  std::size_t bytes_;
  int fd_;
  void* base_ = nullptr;
};

// Each rank gives what is in its heap. So many bytes of it are read where they stand.
std::uint64_t broadcast_from(crl_context_h context, crl_team_h team, const ProcessHeap& heap) {
  for (int root = 0; root < kRanks; ++root) {
    const auto values = values_of(root, 1, kCount);
    std::vector<std::int64_t> out(kCount);
    const bool gives = crl_team_rank(team) == root;
    if (gives) std::memcpy(heap.values(), values.data(), kCount * 8);
    expect_ok(crl_bcast(team, gives ? heap.values() : out.data(), kCount * 8, root));
    if (!gives) {
      EXPECT_EQ(out, values) << "root " << root;
    }
  }
  crl_traffic_t traffic;
  crl_context_traffic(context, &traffic);
  return traffic.in_place_bytes;
}

// Of this process's mappings of heaps, so many bytes are in a dump of it.
std::size_t dumped_bytes() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t dumped = 0, bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      bytes = line.find("memfd:heap") != std::string::npos ? to - from : 0;
    }
    if (line.starts_with("VmFlags:") && line.find(" dd") == std::string::npos) dumped += bytes;
  }
  return dumped;
}

// Of addresses that nothing has.
std::size_t longest_run() {
  std::size_t longest = 0;
  for (std::size_t more = std::size_t{1} << 56; more >= kGiB; more /= 2) {
    void* const run = mmap(nullptr, longest + more, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (run == MAP_FAILED) continue;
    munmap(run, longest + more);
    longest += more;
  }
  return longest;
}

void expect_read(const std::vector<std::size_t>& heaps, std::size_t file_limit, bool in_place) {
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    const std::size_t bytes = heaps[static_cast<std::size_t>(rank)];
    const ProcessHeap heap(bytes);
    const rlimit limit = {file_limit, file_limit};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    crl_context_h context = heap.join(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    ASSERT_EQ(settle(team), CRL_OK);
    EXPECT_EQ(broadcast_from(context, team, heap), in_place ? kCount * 8 : 0);
    EXPECT_EQ(dumped_bytes(), bytes) << "others' heaps are in this process's dump";
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

TEST(ProcessHeaps, AreReadWhereTheyStand) {
  expect_read({4 * kMiB, 4 * kMiB}, RLIM_INFINITY, true);
  expect_read({4 * kMiB, 3 * kMiB + 4096}, RLIM_INFINITY, true);
}

// One of them fits, but not the node's segment with room for all of them.
TEST(ProcessHeaps, AreNotReadWhereFilesMayNotBeSoLong) {
  expect_read({40 * kGiB, 40 * kGiB}, 60 * kGiB, false);
}
TEST(ProcessHeaps, AreNotReadWhereAddressesEnd) {
  const std::size_t bytes = longest_run() / 8 * 5 / kMiB * kMiB;
  expect_read({bytes, bytes}, RLIM_INFINITY, false);
}

}  // namespace
}  // namespace carillon::test
