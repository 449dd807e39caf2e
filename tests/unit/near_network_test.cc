// SPDX-License-Identifier: Apache-2.0
//
// Which cores are near a network's device, against folders such as the kernel's.
#include "team/near_network.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace carillon {
namespace {

Cores cores_of(std::initializer_list<std::size_t> numbers) {
  Cores cores;
  for (const std::size_t number : numbers) cores.set(number);
  return cores;
}

TEST(NearNetwork, ReadsTheKernelsLists) {
  EXPECT_EQ(parse_cores("0"), cores_of({0}));
  EXPECT_EQ(parse_cores("2-4,8"), cores_of({2, 3, 4, 8}));
  EXPECT_EQ(parse_cores("1,3,1023"), cores_of({1, 3, 1023}));
  for (const char* const wrong : {"", "-", "a", "1,", ",1", "3-1", "1-", "1024", "0-99999999999999",
                                  "18446744073709551616", "1 2", "1;2"}) {
    EXPECT_EQ(parse_cores(wrong), Cores()) << wrong;
  }
}

class Classes : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "near_network_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void add(const std::string& device, const std::string& list) {
    std::filesystem::create_directories(folder_ / device / "device");
    std::ofstream(folder_ / device / "device" / "local_cpulist") << list << '\n';
  }
  std::filesystem::path folder_;
};

TEST_F(Classes, OfVerbsTheOneDeviceCounts) {
  add("infiniband/mlx5_0", "0-3");
  add("infiniband/mlx5_1", "4-7");
  add("net/eth0", "1");
  EXPECT_EQ(cores_near_network("verbs mlx5_1", folder_), cores_of({4, 5, 6, 7}));
  EXPECT_EQ(cores_near_network("verbs mlx5_2", folder_), Cores());
}

TEST_F(Classes, OfOthersAnyDeviceThatThereIs) {
  EXPECT_EQ(cores_near_network("fabric tcp", folder_), Cores());
  add("infiniband/mlx5_0", "0-3");
  add("net/eth0", "5");
  add("net/eth1", "7-8");
  std::filesystem::create_directories(folder_ / "net" / "lo");  // which is no device
  EXPECT_EQ(cores_near_network("fabric tcp", folder_), cores_of({5, 7, 8}));
}

}  // namespace
}  // namespace carillon
