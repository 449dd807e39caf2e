// SPDX-License-Identifier: Apache-2.0
//
// A program as the simulator sees it: what each rank computes, and which collectives it starts and
// waits for, on which teams. Written by hand, or recorded from a real run (text.h: the file).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/problem.h"

namespace carillon::program {

/// Teams that have a name in common and no rank.
struct Teams {
  enum class Kind : std::uint8_t {
    kList,    ///< one: `members`, in the order of their ranks in the team
    kBlocks,  ///< of `n` ranks that follow one another; the last may be smaller
    kStride,  ///< `n` of them: team i has the ranks i, i + n, i + 2 n, ...
  };
  std::string name;
  Kind kind = Kind::kList;
  std::vector<Rank> members;
  Rank n = 0;
};

/// A call as one rank makes it.
struct Call {
  std::string name;
  Collective collective = Collective::kBarrier;
  std::uint32_t teams = 0;  ///< which of Program::teams; the rank's own team of those
  Rank root = 0;
  std::int64_t count = 0;  ///< as in Shared
  std::int32_t element_bytes = 1;
  bool commutative = true;
  bool in_place = false;
  std::vector<std::int64_t> send_bytes, recv_bytes;  ///< alltoallv: to and from each member
  std::vector<std::int64_t> send_offsets, recv_offsets;
  std::int32_t line = 0;  ///< of the file

  [[nodiscard]] Local local() const {
    return {in_place, {send_bytes, send_offsets, recv_bytes, recv_offsets}};
  }
};

enum class StepKind : std::uint8_t {
  kCompute,  ///< `value` ns
  kDo,       ///< starts `call` and waits for it
  kStart,    ///< starts `call`, as `slot`
  kWait,     ///< for what was started as `slot`
  kOther,    ///< a call that is known by the `value` ns that it took
  kRepeat,   ///< `value` times what follows, up to its kEnd
  kEnd,
};

struct Step {
  StepKind kind = StepKind::kCompute;
  std::uint32_t call = 0;  ///< of Program::calls; kOther: of Program::others
  std::uint32_t slot = 0;  ///< of those of the body that are in flight; 0 is kDo's
  std::int32_t line = 0;
  std::int64_t value = 0;
  std::size_t end = 0;  ///< kRepeat: where its kEnd stands; kEnd: its kRepeat
};

/// What some ranks do.
struct Body {
  std::vector<Step> steps;
  std::vector<std::string> slots{"do"};  ///< their names
};

struct Program {
  std::string source;  ///< the file, for messages
  Rank ranks = 0;
  std::vector<Teams> teams;  ///< the first is the world
  std::vector<Call> calls;
  std::vector<std::string> others;  ///< names of calls that are not simulated
  std::vector<Body> bodies;
  std::vector<std::uint32_t> body_of;  ///< of each rank

  /// "FILE:LINE: what".
  [[nodiscard]] Status error(std::int32_t line, const std::string& what) const;
};

/// The teams there are, each with a number, and who is who in them.
class TeamTable {
 public:
  explicit TeamTable(const Program& program);
  struct Place {
    std::uint32_t team = 0;
    Rank member = -1;  ///< -1: in none of these teams
  };
  [[nodiscard]] Place find(std::uint32_t teams, Rank rank) const;
  [[nodiscard]] const std::vector<Rank>& members(std::uint32_t team) const {
    return members_[team];
  }
  /// "world", or, of several with the name, "row[2]".
  [[nodiscard]] std::string name(std::uint32_t team) const;
  [[nodiscard]] std::size_t size() const { return members_.size(); }

 private:
  const Program& program_;
  std::vector<std::uint32_t> first_;  // number of the first team of each Teams
  std::vector<std::vector<Rank>> members_;
  std::vector<std::uint32_t> teams_of_;                        // of each team
  std::vector<std::vector<std::pair<Rank, Rank>>> positions_;  // of lists: (rank, member), sorted
};

/// The same program on another number of ranks: rank r does what rank r modulo the program's ranks
/// does. Refused where that has no meaning: for teams that are lists of some ranks, and for tables.
Result<Program> resized(const Program& program, Rank ranks);

}  // namespace carillon::program
