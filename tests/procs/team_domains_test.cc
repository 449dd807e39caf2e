// SPDX-License-Identifier: Apache-2.0
//
// NUMA domains of a team's members: as a setting says, or as hwloc finds them for what each process
// may run on; the same at all members. OfThisMachine is for one that has several.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"
#include "support/multicast_team.h"
#include "team/numa.h"

namespace carillon::test {
namespace {

class DomainsOfTeams : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name :
         {"CARILLON_NODE_RANKS", "CARILLON_DOMAIN_RANKS", "CARILLON_ALGORITHM",
          "CARILLON_MULTICAST", "CARILLON_MULTICAST_JOIN_S", "HWLOC_SYNTHETIC", "HWLOC_XMLFILE"}) {
      unsetenv(name);
    }
  }
  // Each rank may run on the cores given for it, or on all. The algorithm is that of broadcasts.
  static void expect_domains(const std::vector<std::int32_t>& domains, std::int32_t count,
                             const std::vector<int>& cores = {}, const char* algorithm = nullptr) {
    const auto ranks = static_cast<int>(domains.size());
    Meeting world(ranks), members(ranks);
    expect_processes_ok(
        ranks,
        [&](int rank) {
          if (!cores.empty() && cores[static_cast<std::size_t>(rank)] >= 0) {
            cpu_set_t own;
            CPU_ZERO(&own);
            CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(rank)]), &own);
            ASSERT_EQ(sched_setaffinity(0, sizeof own, &own), 0);
          }
          crl_context_h context = make_context(world, rank);
          crl_team_h team = make_team(context, members.oob(rank));
          expect_ok(settle(team));
          const auto& found = team->team->limits().domains;
          if (count == 0) {
            EXPECT_EQ(found, nullptr);
          } else if (found == nullptr) {
            ADD_FAILURE() << "no domains at rank " << rank;
          } else {
            EXPECT_EQ(found->count(), count);
            EXPECT_EQ(*found, Nodes(domains));
          }
          std::vector<std::uint64_t> data(1000, 0);
          for (std::size_t i = 0; rank == 1 && i < data.size(); ++i) data[i] = 7 * i + 5;
          expect_ok(crl_bcast(team, data.data(), data.size() * sizeof data.front(), 1));
          for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], 7 * i + 5);
          if (algorithm != nullptr) {
            broadcast_rounds(team, 17);
            EXPECT_STREQ(crl_team_last_algorithm(team), algorithm);
          }
          crl_team_destroy(team);
          crl_context_destroy(context);
        },
        kAtMost_s);
  }
  static constexpr int kAtMost_s = 300;  // in a virtual machine
};

TEST_F(DomainsOfTeams, AreWhatTheSettingSays) {
  setenv("CARILLON_DOMAIN_RANKS", "3,2", 1);
  expect_domains({0, 0, 0, 1, 1, 2, 2}, 3);
  setenv("CARILLON_DOMAIN_RANKS", "rr:2", 1);
  expect_domains({0, 1, 0, 1, 0}, 2);
  setenv("CARILLON_DOMAIN_RANKS", "8", 1);
  expect_domains({0, 0, 0}, 0);
}

TEST_F(DomainsOfTeams, AreCountedOnEachNode) {
  setenv("CARILLON_NODE_RANKS", "4,3", 1);
  setenv("CARILLON_DOMAIN_RANKS", "2", 1);
  expect_domains({0, 0, 1, 1, 2, 2, 3}, 4);
}

TEST_F(DomainsOfTeams, AWrongSettingIsRefused) {
  setenv("CARILLON_DOMAIN_RANKS", "2,x", 1);
  Meeting world(1);
  crl_context_config_t config{};
  config.struct_bytes = sizeof config;
  config.oob = world.oob(0);
  crl_context_h context = nullptr;
  EXPECT_EQ(crl_context_create(&config, &context), CRL_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(crl_last_error()).find("CARILLON_DOMAIN_RANKS=2,x"), std::string::npos)
      << crl_last_error();
}

std::vector<int> usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::vector<int> list;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return list;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &cores)) list.push_back(core);
  }
  return list;
}

// A machine that has each core in a domain of its own.
TEST_F(DomainsOfTeams, AreWhereTheProcessesAreBound) {
  const std::vector<int> cores = usable_cores();
  if (cores.size() < 2 || cores.back() > 63) GTEST_SKIP() << "needs two of the first 64 cores";
  setenv("HWLOC_SYNTHETIC", ("numa:" + std::to_string(cores.back() + 1) + " core:1 pu:1").c_str(),
         1);
  const int a = cores[0], b = cores[1];
  expect_domains({0, 1, 1, 0, 1}, 2, {a, b, b, a, b});
  // Who may run anywhere is near to nothing, and then nobody of the node is.
  expect_domains({0, 1, 1}, 0, {a, b, -1});
}

// The numbers of a list like "0,2-3".
std::vector<int> numbers_in(const std::string& file) {
  std::vector<int> numbers;
  std::ifstream text(file);
  int first = 0;
  while (text >> first) {
    int last = first;
    if (text.peek() == '-') {
      text.get();
      text >> last;
    }
    for (int i = first; i <= last; ++i) numbers.push_back(i);
    text.get();
  }
  return numbers;
}

// The first and the last usable core of two domains that the kernel tells of.
std::vector<int> cores_of_two_domains() {
  const std::string folder = "/sys/devices/system/node/";
  const std::vector<int> usable = usable_cores();
  std::vector<int> cores;
  for (const int domain : numbers_in(folder + "has_cpu")) {
    auto its = numbers_in(folder + "node" + std::to_string(domain) + "/cpulist");
    std::erase_if(its, [&](int core) { return !std::ranges::binary_search(usable, core); });
    if (its.empty() || cores.size() == 4) continue;
    cores.insert(cores.end(), {its.front(), its.back()});
  }
  return cores;
}

TEST_F(DomainsOfTeams, OfThisMachine) {
  const std::vector<int> cores = cores_of_two_domains();
  if (cores.size() < 4) GTEST_SKIP() << "the machine has one NUMA domain";
  expect_domains({0, 1, 1, 0, 0}, 2, {cores[0], cores[2], cores[3], cores[1], cores[0]});
  expect_domains({0, 1, 1}, 0, {cores[0], cores[2], -1});
}

// Two nodes, each with both domains, and broadcasts from all ranks.
TEST_F(DomainsOfTeams, OfThisMachineInBroadcasts) {
  const std::vector<int> cores = cores_of_two_domains();
  if (cores.size() < 4) GTEST_SKIP() << "the machine has one NUMA domain";
  set_environment("multicast_leader", "udp:lo");
  setenv("CARILLON_NODE_RANKS", "4,3", 1);
  expect_domains({0, 1, 1, 0, 2, 3, 3}, 4,
                 {cores[0], cores[2], cores[3], cores[1], cores[0], cores[2], cores[3]},
                 "bcast.multicast_leader");
}

Cores of(std::initializer_list<std::size_t> list) {
  Cores cores;
  for (const std::size_t core : list) cores.set(core);
  return cores;
}

TEST_F(DomainsOfTeams, AreWhatHwlocHas) {
  setenv("HWLOC_SYNTHETIC", "numa:3 core:2 pu:1", 1);
  const std::vector<Cores> processes{of({0}),    of({1}), of({2, 3}), of({5}),
                                     of({1, 2}), of({}),  of({0, 6}), of({4, 5})};
  EXPECT_EQ(numa_domains(processes), (std::vector<int>{0, 0, 1, 2, -1, -1, -1, 2}));
}

// hwloc is asked only where its answer can matter.
TEST_F(DomainsOfTeams, ArentAskedForWhereNobodyIsBound) {
  setenv("HWLOC_SYNTHETIC", "numa:3 core:2 pu:1", 1);
  const std::vector<Cores> bound{of({0}), of({2})};
  EXPECT_EQ(numa_domains(bound), (std::vector<int>{0, 1}));
  for (const std::vector<Cores>& alike :
       {std::vector<Cores>{}, {of({0})}, {of({0}), of({0})}, {of({0, 1, 2}), of({0, 1, 2})}}) {
    EXPECT_EQ(numa_domains(alike), std::vector<int>(alike.size(), -1));
  }
}

TEST_F(DomainsOfTeams, AreNotKnownWithoutHwlocOrATopology) {
  const std::vector<Cores> processes{of({0}), of({2})};
  const std::vector<int> unknown{-1, -1};
  setenv("HWLOC_SYNTHETIC", "numa:3 core:2 pu:1", 1);
  EXPECT_EQ(numa_domains(processes), (std::vector<int>{0, 1}));
  EXPECT_EQ(numa_domains(processes, "libhwloc-that-is-not-there.so"), unknown);
  EXPECT_EQ(numa_domains(processes, "libm.so.6"), unknown) << "it lacks a function";
  unsetenv("HWLOC_SYNTHETIC");
  const std::string garbage = testing::TempDir() + "topology-" + std::to_string(getpid()) + ".xml";
  std::ofstream(garbage) << "no topology\n";
  for (const std::string& file : {garbage, std::string("/dev/null")}) {
    setenv("HWLOC_XMLFILE", file.c_str(), 1);
    // It may read this machine instead, which has no such cores.
    EXPECT_EQ(numa_domains(std::vector<Cores>{of({1020}), of({1021})}), unknown) << file;
  }
  std::filesystem::remove(garbage);
}

// Memory that all cores are as near to beside the two domains' own.
TEST_F(DomainsOfTeams, MemoryOfSeveralDomainsIsNone) {
  setenv("HWLOC_SYNTHETIC", "[numa] pack:2 [numa] core:2 pu:1", 1);
  const std::vector<Cores> processes{of({0}), of({3}), of({1, 2})};
  const std::vector<int> found = numa_domains(processes);
  EXPECT_GE(found[0], 0);
  EXPECT_GE(found[1], 0);
  EXPECT_NE(found[0], found[1]);
  EXPECT_EQ(found[2], -1);
}

}  // namespace
}  // namespace carillon::test
