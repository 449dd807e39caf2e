// SPDX-License-Identifier: Apache-2.0
//
// Published figures (papers/*.toml): what a paper reports, as calls that can be simulated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predict/predict.h"
#include "sim/replay.h"

namespace carillon::predict {

/// What a figure says of the two algorithms of a pair.
enum class Quantity : std::uint8_t {
  kTimeSaved,  ///< percent of the base's time that ours does not take
  kSpeedup,    ///< base's time by ours
  kLatency,    ///< ours, in microseconds
  kCopySaved,  ///< percent of the time that the base's ranks spend copying that ours do not
  kGrowth,     ///< ours with all ranks less that with from_ranks, in microseconds
  kOverlap,    ///< percent of an all-to-all's time that a computation as long as that hides
};

/// An algorithm, and the one that the paper compares it with.
struct Pair {
  std::string name;
  AlgorithmChoice base, ours;
  std::int32_t most_k = 0;  ///< ours with the best k up to this; 0: as it is
  /// Of each level of the machine's topology, in thousandths; 0: as the machine has it.
  std::int64_t oversubscription_permille = 0;
};

/// One of several pairs that the paper's could be: it does not say enough to tell.
struct Candidate {
  std::string algorithm;  ///< "bruck_inplace"
  std::string way;        ///< how memory is handled in the base and in ours
  AlgorithmChoice base, ours;
  Rank ppn = 1;
  std::int32_t gather_entries = 1;
};

/// A way to run a paper's programs.
struct Way {
  std::string name;
  AlgorithmChoice alltoallv;
  bool overlap = false;  ///< fft3d's exchanges are non-blocking, in slices
  sim::Progress progress = sim::Progress::kCaller;
  Rank ppn = 1;
  std::int32_t gather_entries = 1;
};

/// fft3d (docs/fft3d.md) as a paper's program: a forward transform of real numbers in double
/// precision, pencils, the squarest grid of ranks.
struct Fft3d {
  int slices = 4, window = 2;
  double line_mflops = 0, line_mflops_min = 0, line_mflops_max = 0;
};

struct Figure {
  std::string what;
  std::size_t pair = 0;  ///< unused if the paper has candidates
  Rank ranks = 0;
  Rank from_ranks = 1;                ///< of a growth
  Rank ppn = 1;                       ///< ranks on a node; of candidates and ways: theirs
  std::int32_t domains = 1;           ///< NUMA domains of a node
  std::int64_t late_ps = 0;           ///< Question::late_ps
  std::size_t base_way = 0, way = 0;  ///< of a paper of programs
  std::vector<std::int64_t>
      lengths;  ///< bytes, or edges of grids; of several, what the paper says is the most
  Quantity quantity = Quantity::kTimeSaved;
  double published = 0;  ///< the middle, where the paper gives a range
  double published_min = 0, published_max = 0;
  bool measured = false;     ///< else the paper's own model,
  bool unpublished = false;  ///< or nothing, and ours is there for comparison
  std::string source;
};

struct Paper {
  std::string name, title, machine;
  std::vector<std::string> assumed;  ///< what the paper does not say
  std::vector<Pair> pairs;
  std::vector<Candidate> candidates;  ///< if not empty, all figures are of each of them
  std::vector<std::string> fitted;    ///< numbers of the machine, fitted to the measured figures
  /// Numbers of the machine that least and most vary, of candidates and of programs; of pairs all.
  std::vector<std::string> varied;
  std::optional<Fft3d> fft3d;  ///< all figures are of programs, in these ways
  std::vector<Way> ways;
  std::vector<Figure> figures;
};

std::string_view unit_of(Quantity quantity);

/// Reads the text of a file of papers/; errors begin with `file` and the line.
Result<Paper> parse_paper(std::string_view text, const std::string& file, const std::string& name);
/// One of papers/ by its name, or any such file by its path (with a slash or .toml in it).
Result<Paper> load_paper(const std::string& name_or_path);
std::vector<std::string> paper_names();

}  // namespace carillon::predict
