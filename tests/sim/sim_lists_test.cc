// SPDX-License-Identifier: Apache-2.0
//
// The layouts of Bruck's all-to-all, simulated: deciding for each message takes no longer than the
// better of packing all and putting all as lists, those of several requests among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "machine/sheet.h"
#include "predict/predict.h"

namespace carillon {
namespace {

class SelectiveLists : public testing::TestWithParam<const char*> {
 protected:
  // Without `whole_lists` those of several requests are put where they cost less.
  [[nodiscard]] double latency_ns(const std::string& memory, std::int64_t bytes, Rank ppn,
                                  std::int32_t entries, bool whole_lists = false) const {
    const std::string choice = std::string(GetParam()) + ":memory=" + memory;
    const predict::Question question{.choice = parse_choice(choice).value(),
                                     .ranks = 64,
                                     .bytes = bytes,
                                     .ppn = ppn,
                                     .gather_entries = entries,
                                     .whole_lists = whole_lists};
    const Result<sim::Report> report = predict::simulated(machine_, question);
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? static_cast<double>(report.value().latency_ps) / 1e3 : 0;
  }

  machine::Machine machine_ = machine::load("edr").value();
};

TEST_P(SelectiveLists, AreNoSlowerThanTheBetter) {
  for (const Rank ppn : {1, 4}) {
    // A message's writer does not know how long its node's NIC is busy with others' messages.
    const double tolerance = ppn == 1 ? 1 : 1.02;
    for (const std::int32_t entries : {4, 16, 30}) {
      for (const std::int64_t bytes : {8, 64, 256, 512, 2048}) {
        const double pack = latency_ns("pack", bytes, ppn, entries);
        const double gather = latency_ns("gather", bytes, ppn, entries);
        EXPECT_LE(latency_ns("selective", bytes, ppn, entries), tolerance * std::min(pack, gather))
            << bytes << " bytes, " << ppn << " ranks on a node, " << entries << " entries: pack "
            << pack << ", gather " << gather;
      }
    }
  }
}

TEST_P(SelectiveLists, OfSeveralRequestsPayForLongBlocks) {
  for (const std::int32_t entries : {4, 30}) {
    EXPECT_LT(latency_ns("selective", 512, 1, entries),
              latency_ns("selective", 512, 1, entries, true))
        << entries << " entries";
    EXPECT_EQ(latency_ns("selective", 8, 1, entries), latency_ns("selective", 8, 1, entries, true))
        << entries << " entries";
  }
}

INSTANTIATE_TEST_SUITE_P(Bruck, SelectiveLists,
                         testing::Values("alltoall.bruck_inplace", "alltoall.bruck_resident",
                                         "alltoall.bruck_reversed", "alltoall.bruck_zerocopy"),
                         [](const auto& test) {
                           return std::string(test.param).substr(std::string("alltoall.").size());
                         });

}  // namespace
}  // namespace carillon
