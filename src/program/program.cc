// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <algorithm>
#include <numeric>

namespace carillon::program {
namespace {

constexpr std::uint32_t kWorld = 0;

std::vector<Rank> every(Rank first, Rank step, Rank last) {
  std::vector<Rank> members;
  for (Rank rank = first; rank < last; rank += step) members.push_back(rank);
  return members;
}

}  // namespace

Status Program::error(std::int32_t line, const std::string& what) const {
  return {Code::kInvalidArgument, source + ":" + std::to_string(line) + ": " + what};
}

TeamTable::TeamTable(const Program& program) : program_(program) {
  for (std::uint32_t i = 0; i < program.teams.size(); ++i) {
    const Teams& teams = program.teams[i];
    first_.push_back(static_cast<std::uint32_t>(members_.size()));
    positions_.emplace_back();
    switch (teams.kind) {
      case Teams::Kind::kList: {
        members_.push_back(teams.members);
        for (std::size_t m = 0; m < teams.members.size(); ++m) {
          positions_.back().emplace_back(teams.members[m], static_cast<Rank>(m));
        }
        std::sort(positions_.back().begin(), positions_.back().end());
        break;
      }
      case Teams::Kind::kBlocks:
        for (Rank first = 0; first < program.ranks; first += teams.n) {
          members_.push_back(every(first, 1, std::min(program.ranks - first, teams.n) + first));
        }
        break;
      case Teams::Kind::kStride:
        for (Rank first = 0; first < std::min(teams.n, program.ranks); ++first) {
          members_.push_back(every(first, teams.n, program.ranks));
        }
        break;
    }
    teams_of_.resize(members_.size(), i);
  }
}

TeamTable::Place TeamTable::find(std::uint32_t teams, Rank rank) const {
  const Teams& row = program_.teams[teams];
  const std::uint32_t first = first_[teams];
  switch (row.kind) {
    case Teams::Kind::kBlocks:
      return {first + static_cast<std::uint32_t>(rank / row.n), rank % row.n};
    case Teams::Kind::kStride:
      return {first + static_cast<std::uint32_t>(rank % row.n), rank / row.n};
    case Teams::Kind::kList: break;
  }
  if (teams == kWorld) return {first, rank};
  const auto& positions = positions_[teams];
  const auto found = std::lower_bound(positions.begin(), positions.end(), std::pair(rank, Rank{0}));
  if (found == positions.end() || found->first != rank) return {first, -1};
  return {first, found->second};
}

std::string TeamTable::name(std::uint32_t team) const {
  const std::uint32_t teams = teams_of_[team];
  const Teams& row = program_.teams[teams];
  if (row.kind == Teams::Kind::kList) return row.name;
  return row.name + "[" + std::to_string(team - first_[teams]) + "]";
}

Result<Program> resized(const Program& program, Rank ranks) {
  if (ranks == program.ranks) return program;
  const auto refuse = [&](std::int32_t line, const std::string& what) {
    return program.error(line, what + ", which has no meaning on " + std::to_string(ranks) +
                                   " ranks instead of " + std::to_string(program.ranks));
  };
  for (const Call& call : program.calls) {
    const Teams& teams = program.teams[call.teams];
    if (has_tables(call.collective)) {
      return refuse(call.line, "call " + call.name + " has tables of some ranks");
    }
    if (teams.kind == Teams::Kind::kList && call.teams != kWorld) {
      return refuse(call.line,
                    "call " + call.name + " is on team " + teams.name + ", a list of some ranks");
    }
    if (teams.kind != Teams::Kind::kList &&
        (program.ranks % teams.n != 0 || ranks % teams.n != 0)) {
      return refuse(call.line, "call " + call.name + " is on teams " + teams.name + ", and " +
                                   std::to_string(teams.n) + " does not divide both");
    }
    // A root that stands for the last rank would stay where it was.
    if (call.root >= ranks) return refuse(call.line, "call " + call.name + " has another root");
  }
  Program copy = program;
  copy.ranks = ranks;
  copy.teams[kWorld].members.resize(static_cast<std::size_t>(ranks));
  std::iota(copy.teams[kWorld].members.begin(), copy.teams[kWorld].members.end(), 0);
  std::erase_if(copy.teams, [&](const Teams& teams) {  // unused, as was just seen
    if (teams.kind != Teams::Kind::kList) return teams.n > ranks;
    return teams.name != program.teams[kWorld].name;
  });
  for (Call& call : copy.calls) {
    const auto row = std::find_if(copy.teams.begin(), copy.teams.end(), [&](const Teams& teams) {
      return teams.name == program.teams[call.teams].name;
    });
    call.teams = static_cast<std::uint32_t>(row - copy.teams.begin());
  }
  copy.body_of.resize(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) {
    copy.body_of[static_cast<std::size_t>(rank)] =
        program.body_of[static_cast<std::size_t>(rank % program.ranks)];
  }
  return copy;
}

}  // namespace carillon::program
