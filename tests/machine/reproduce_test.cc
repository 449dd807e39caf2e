// SPDX-License-Identifier: Apache-2.0
//
// Published figures next to ours: papers/ can be read, mistakes in such files are told by file and
// line, and gupta2003 comes out as the docs say.
#include "predict/reproduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/embedded.h"

namespace carillon::predict {
namespace {

using testing::HasSubstr;

// papers/gupta2003.toml with one thing replaced by another.
std::string gupta(const std::string& from, const std::string& to) {
  std::string text(paper_files().front().text);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const Result<Paper> paper = parse_paper(text, "my.toml", "my");
  return paper.ok() ? "no error" : std::string(paper.status().message());
}

std::string error_of_fit(const std::string& number) {
  Result<Paper> paper = load_paper("gupta2003");
  EXPECT_TRUE(paper.ok());
  paper.value().fitted = {number};
  const Result<Reproduction> result = reproduce(paper.value());
  return result.ok() ? "no error" : std::string(result.status().message());
}

TEST(Papers, AllLoad) {
  EXPECT_THAT(paper_names(), testing::Contains("gupta2003"));
  for (const std::string& name : paper_names()) {
    const Result<Paper> paper = load_paper(name);
    EXPECT_TRUE(paper.ok()) << paper.status().message();
  }
}

TEST(Papers, MistakesAreTold) {
  struct Case {
    std::string from, to, message;
  };
  const Case cases[] = {
      {"collective = \"bcast\"", "collective = \"bcst\"", "bcst.binomial"},
      {"base = \"binomial:transfer=sendrecv\"", "", "pair bcast needs base"},
      {"ours = \"degree_k\"", "ours = \"ring\"", "allreduce.ring has no parameter k"},
      {"most_k = 16", "most_k = 0", "most_k is 0"},
      {"pair = \"bcast\"", "pair = \"bcasts\"", "no section [pairs.bcasts]"},
      {"ranks = 16", "ranks = 0", "ranks is 0"},
      {"ranks = 16", "ranks = \"16\"", "ranks must be a number"},
      {"quantity = \"time_saved\"", "quantity = \"time\"", "not \"time\""},
      {"published = 14", "", "needs published"},
      {"published_max = 40", "", "needs published_max"},
      {"source = \"abstract\"", "source = \"nowhere\"", "no source \"nowhere\""},
      {"published = 14", "publishd = 14", "a figure has no publishd"},
      {"\"one_sided.poll_ns\"", "\"one_sided.poll_ns\", \"a\"", "at most two"},
      {"[[figures]]", "[[figurs]]", "the file has no figurs"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(error_of(gupta(c.from, c.to)), HasSubstr(c.message)) << c.from << " -> " << c.to;
    EXPECT_THAT(error_of(gupta(c.from, c.to)), testing::StartsWith("my.toml:"));
  }
}

TEST(Papers, OnlyEstimatesAreFitted) {
  EXPECT_THAT(error_of_fit("network.ns_per_byte"), HasSubstr("has a source"));
  EXPECT_THAT(error_of_fit("network.nothing"), HasSubstr("is not in its file"));
  EXPECT_THAT(error_of_fit("two_sided.copy_in"), HasSubstr("has no range"));
}

TEST(Gupta2003, ComesOutAsTheDocsSay) {
  const Result<Paper> paper = load_paper("gupta2003");
  ASSERT_TRUE(paper.ok());
  Result<Reproduction> result = reproduce(paper.value());
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Reproduction& ours = result.value();
  ASSERT_EQ(ours.figures.size(), paper.value().figures.size());
  for (std::size_t i = 0; i < ours.figures.size(); ++i) {
    const Figure& figure = paper.value().figures[i];
    const Reproduced& row = ours.figures[i];
    EXPECT_NEAR(row.ours, std::clamp(row.ours, figure.published_min, figure.published_max),
                figure.measured ? 3 : 5)
        << figure.what;
    EXPECT_EQ(row.model, row.ours) << figure.what;
    EXPECT_LE(row.ours_min, row.ours);
    EXPECT_GE(row.ours_max, row.ours);
  }
  for (const Fitted& each : ours.fitted) {
    EXPECT_GE(each.value, each.number.min);
    EXPECT_LE(each.value, each.number.max);
  }
}

// The fit sees the measured figures only: other predictions do not move it.
TEST(Gupta2003, FitIgnoresWhatWasModelled) {
  Paper paper = load_paper("gupta2003").value();
  const Reproduction before = reproduce(paper).value();
  for (Figure& figure : paper.figures) {
    if (!figure.measured) figure.published = 77;
  }
  const Reproduction after = reproduce(paper).value();
  ASSERT_EQ(before.fitted.size(), 2u);
  EXPECT_EQ(before.fitted[0].value, after.fitted[0].value);
  EXPECT_EQ(before.fitted[1].value, after.fitted[1].value);
}

TEST(Quantities, SpeedupAndLatency) {
  Paper paper = load_paper("gupta2003").value();
  paper.fitted.clear();
  paper.figures.resize(1);
  const double saved = reproduce(paper).value().figures[0].ours;
  paper.figures[0].quantity = Quantity::kSpeedup;
  EXPECT_NEAR(reproduce(paper).value().figures[0].ours, 1 / (1 - saved / 100), 1e-9);
  paper.figures[0].quantity = Quantity::kLatency;
  const Question question{paper.pairs[paper.figures[0].pair].ours, 16, 4096};
  const machine::Machine machine = machine::load("clan_via").value();
  EXPECT_EQ(reproduce(paper).value().figures[0].ours,
            static_cast<double>(simulated_ps(machine, question).value()) / 1e6);
}

// Without a closed form, by simulation.
TEST(Quantities, OfAnyAlgorithm) {
  Paper paper = load_paper("gupta2003").value();
  paper.fitted.clear();
  paper.figures.resize(1);
  paper.pairs[paper.figures[0].pair].ours = parse_choice("bcast.flat").value();
  const Reproduced row = reproduce(paper).value().figures[0];
  EXPECT_FALSE(row.model);
  EXPECT_LT(row.ours, 0) << "the root sends fifteen times";
}

}  // namespace
}  // namespace carillon::predict
