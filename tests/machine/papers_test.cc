// SPDX-License-Identifier: Apache-2.0
//
// What a paper's file may ask for beside what those of papers/ do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "base/embedded.h"
#include "predict/reproduce.h"

namespace carillon::predict {
namespace {

std::string text_of(std::span<const EmbeddedFile> files) {
  for (const EmbeddedFile& file : files) {
    if (file.name == "hu2013") return std::string(file.text);
  }
  ADD_FAILURE() << "there is no hu2013.toml";
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Their tables are of blocks of one length.
TEST(Papers, PairsMayBeOfCollectivesWithTables) {
  const std::pair<const char*, const char*> algorithms[] = {{"alltoallv", "pairwise"},
                                                            {"allgatherv", "pairwise"},
                                                            {"gatherv", "flat"},
                                                            {"scatterv", "flat"},
                                                            {"reduce_scatter", "pairwise"}};
  for (const auto& [collective, algorithm] : algorithms) {
    const std::string name(algorithm);
    const Result<Paper> paper = parse_paper(
        "title = \"t\"\nmachine = \"edr\"\n[sources]\ns = \"t\"\n[pairs.a]\ncollective = \"" +
            std::string(collective) + "\"\nbase = \"" + name + "\"\nours = \"" + name +
            "\"\n[[figures]]\nwhat = \"f\"\npair = \"a\"\nranks = 4\nbytes = 64\n" +
            "quantity = \"latency\"\nunpublished = true\nsource = \"s\"\n",
        "my.toml", "my");
    ASSERT_TRUE(paper.ok()) << paper.status().message();
    const Result<Reproduction> result = reproduce(paper.value());
    ASSERT_TRUE(result.ok()) << collective << ": " << result.status().message();
    EXPECT_GT(result.value().figures.at(0).ours, 0) << collective;
  }
}

// Of a machine with a level more: times have no room for what a byte would take.
TEST(Hu2013, OversubscriptionLeavesRoomForTimes) {
  const std::string path = testing::TempDir() + "carillon_three_levels.toml";
  std::ofstream(path) << text_of(machine_files())
                      << "[[topology.levels]]\nradix = 16\nestimate = \"so\"\n";
  const std::string paper =
      replaced(text_of(paper_files()), "machine = \"hu2013\"", "machine = \"" + path + "\"");
  EXPECT_TRUE(parse_paper(paper, "my.toml", "my").ok());
  const Result<Paper> more = parse_paper(
      replaced(paper, "oversubscription = 16", "oversubscription = 1000"), "my.toml", "my");
  EXPECT_THAT(std::string(more.status().message()),
              testing::HasSubstr("of 3 levels a byte takes "));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace carillon::predict
