// SPDX-License-Identifier: Apache-2.0
//
// Why an alltoallv is done as it is, for people: what crl_team_decisions and `carillon run --stats`
// say.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carillon {

enum class Why : std::uint8_t {
  // Of teams whose tables are not surveyed.
  kOverride,
  kSurveysOff,
  kOneNode,
  kSharedCores,
  kFewRanks,
  // Of those whose tables are: alltoallv.survey, .bruck_two_phase, .merged, and why it is pairwise.
  kSurvey,
  kPays,
  kMerged,
  kUnknown,
  kNoRadix,
  kLongBlocks,
  kNewTables,
  kSlower,
  kGrown,
};
inline constexpr std::size_t kWhys = static_cast<std::size_t>(Why::kGrown) + 1;

/// A few words that stay where they are, ended by a zero.
constexpr const char* text_of(Why why) {
  switch (why) {
    case Why::kOverride: return "as CARILLON_ALGORITHM says";
    case Why::kSurveysOff: return "no surveys: CARILLON_SURVEYS=off";
    case Why::kOneNode: return "no surveys: the ranks are on one node";
    case Why::kSharedCores: return "no surveys: ranks share cores";
    case Why::kFewRanks: return "no surveys: two phases cannot pay for so few ranks";
    case Why::kSurvey: return "a survey of the tables";
    case Why::kPays: return "short blocks in tables that repeat";
    case Why::kMerged: return "short blocks from node to node in tables that repeat";
    case Why::kUnknown: return "nothing known before the first survey";
    case Why::kNoRadix: return "two phases cannot be for so many ranks, or so few";
    case Why::kLongBlocks: return "a block is too long for two phases";
    case Why::kNewTables: return "two phases would pay if tables repeated";
    case Why::kSlower: return "two phases would not be faster";
    case Why::kGrown: return "a block has grown too long since the survey";
  }
  return "";
}

}  // namespace carillon
