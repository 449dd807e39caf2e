// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <functional>

#include "messages.h"

namespace fft3d {

namespace {

constexpr long kMaxPoints = 1L << 48;  // in the grid: 4 PiB
constexpr int kMaxProgramRanks = 1 << 20, kMaxRate = 1000000000;
constexpr int kMaxSlices = 4096, kMaxTests = 4096, kMaxIterations = 1000000;

// Numbers with an x between them, from 1; no more or fewer than there is room for.
template <class Number, size_t N>
bool read_numbers(const std::string& text, std::array<Number, N>& numbers) {
  const char *begin = text.data(), *end = begin + text.size();
  for (size_t i = 0; i < N; ++i) {
    if (i > 0) {
      if (begin == end || *begin != 'x') return false;
      ++begin;
    }
    const auto [after, error] = std::from_chars(begin, end, numbers[i]);
    if (error != std::errc() || numbers[i] < 1) return false;
    begin = after;
  }
  return begin == end;
}

std::string read_grid(const std::string& text, Shape& points) {
  std::array<long, 1> edge{};
  if (read_numbers(text, edge)) {
    points = {edge[0], edge[0], edge[0]};
  } else if (!read_numbers(text, points)) {
    return "use N or N0xN1xN2, numbers from 1";
  }
  long all = 1;
  for (const long length : points) {
    if (length > INT_MAX || all > kMaxPoints / length) return "is too large a grid";
    all *= length;
  }
  return "";
}

struct Row {
  const char* name;
  const char* argument;  // empty: it has none
  const char* help;
  std::function<std::string(const std::string& value, Options& options)> read;
};

Row flag(const char* name, const char* help, bool Options::*member) {
  return {name, "", help, [member](const std::string&, Options& options) {
            options.*member = true;
            return std::string();
          }};
}

Row number(const char* name, const char* help, int Options::*member, int least, int most) {
  return {name, "N", help, [=](const std::string& value, Options& options) {
            std::array<int, 1> read{};
            // read_numbers has no 0.
            const bool good = value == "0" || read_numbers(value, read);
            options.*member = read[0];
            if (good && least <= read[0] && read[0] <= most) return std::string();
            return "use a number from " + std::to_string(least) + " to " + std::to_string(most);
          }};
}

Row choice(const char* name, const char* words, const char* help,
           const std::vector<std::pair<std::string, std::function<void(Options&)>>>& choices) {
  return {name, words, help, [=](const std::string& value, Options& options) {
            for (const auto& [word, apply] : choices) {
              if (value != word) continue;
              apply(options);
              return std::string();
            }
            return std::string("use ") + words;
          }};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> rows = {
      choice("decomposition", "slab|pencil", "slab (default): P x 1 ranks; pencil: P0 x P1",
             {{"slab", [](Options& o) { o.pencil = false; }},
              {"pencil", [](Options& o) { o.pencil = true; }}}),
      {"process-grid", "P0xP1", "the ranks' grid of a pencil decomposition; default: the squarest",
       [](const std::string& value, Options& options) {
         return std::string(read_numbers(value, options.process_grid) ? "" : "use P0xP1");
       }},
      choice("field", "real|complex", "what is transformed; default: real",
             {{"real", [](Options& o) { o.complex_field = false; }},
              {"complex", [](Options& o) { o.complex_field = true; }}}),
      choice("precision", "single|double", "default: double",
             {{"single", [](Options& o) { o.single_precision = true; }},
              {"double", [](Options& o) { o.single_precision = false; }}}),
      choice("direction", "forward|backward|both", "of an iteration; default: both",
             {{"forward", [](Options& o) { o.forward = true, o.backward = false; }},
              {"backward", [](Options& o) { o.forward = false, o.backward = true; }},
              {"both", [](Options& o) { o.forward = o.backward = true; }}}),
      flag("overlap", "by MPI_Ialltoallv, in slices, while others are computed", &Options::overlap),
      flag("compare", "blocking and overlapped in turn, and the ratio", &Options::compare),
      number("slices", "overlapped: of each exchange; default: 4", &Options::slices, 1, kMaxSlices),
      number("window", "overlapped: slices under way at once; default: 2", &Options::window, 1,
             kMaxSlices),
      number("tests", "overlapped: calls of MPI_Test while a slice is computed; default: 0",
             &Options::tests, 0, kMaxTests),
      number("iterations", "default: 10", &Options::iterations, 1, kMaxIterations),
      number("warmups", "iterations before those; default: 1", &Options::warmups, 0,
             kMaxIterations),
      flag("alloc-mem", "arrays by MPI_Alloc_mem", &Options::alloc_mem),
      flag("estimate", "FFTW plans without measuring", &Options::estimate),
      flag("plain", "only the transforms: exchanges are not measured alone", &Options::plain),
      flag("check", "compare with FFTW on one rank, every time", &Options::check),
      flag("json", "print JSON", &Options::json),
      number("program-of", "run nothing; print the program of N ranks, for carillon sim",
             &Options::program_of, 1, kMaxProgramRanks),
      number("line-mflops", "--program-of: rate of the lines; default: 2000", &Options::line_mflops,
             1, kMaxRate),
      number("copy-mbps", "--program-of: MB/s of packing and unpacking; default: 4000",
             &Options::copy_mbps, 1, kMaxRate),
      flag("help", "print this", &Options::help),
  };
  return rows;
}

// Words that begin with -- may have their value behind = or as the next word.
std::string read_option(const std::vector<std::string>& words, size_t& next, Options& options,
                        std::vector<std::string>& seen) {
  const std::string& word = words[next++];
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto row = std::find_if(rows().begin(), rows().end(),
                                [&](const Row& r) { return name == std::string("--") + r.name; });
  if (row == rows().end()) return name + ": no such option";
  std::string value;
  if (*row->argument == 0) {
    if (equals != std::string::npos) return name + ": takes no value";
  } else if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  } else if (next < words.size()) {
    value = words[next++];
  } else {
    return name + ": its value is missing: " + row->argument;
  }
  seen.emplace_back(row->name);
  const std::string problem = row->read(value, options);
  return problem.empty() ? "" : name + " " + value + ": " + problem;
}

std::string contradiction(const Options& options, const std::vector<std::string>& seen) {
  const auto has = [&](const char* name) {
    return std::find(seen.begin(), seen.end(), name) != seen.end();
  };
  for (const char* name : {"slices", "window", "tests"}) {
    if (has(name) && !options.overlaps()) {
      return std::string("--") + name + " means nothing without --overlap or --compare";
    }
  }
  for (const char* name : {"line-mflops", "copy-mbps"}) {
    if (has(name) && options.program_of == 0) {
      return std::string("--") + name + " means nothing without --program-of";
    }
  }
  for (const char* name : {"compare", "check", "json"}) {
    if (has(name) && options.program_of > 0) {
      return std::string("--") + name + " means nothing with --program-of";
    }
  }
  if (has("process-grid") && !options.pencil) {
    return "--process-grid means nothing without --decomposition pencil";
  }
  return "";
}

}  // namespace

std::string read_options(const std::vector<std::string>& words, Options& options) {
  std::vector<std::string> seen;
  bool have_grid = false;
  for (size_t next = 0; next < words.size();) {
    if (words[next].starts_with('-')) {
      std::string problem = read_option(words, next, options, seen);
      if (!problem.empty()) return problem;
      if (options.help) return "";
      continue;
    }
    const std::string& word = words[next++];
    std::string problem = have_grid ? "there is a grid already" : read_grid(word, options.points);
    if (!problem.empty()) return problem.insert(0, "grid " + word + ": ");
    have_grid = true;
  }
  if (!have_grid) return "the grid is missing: N or N0xN1xN2";
  return contradiction(options, seen);
}

std::string fit_options(int ranks, Options& options) {
  ProcessGrid& grid = options.process_grid;
  if (!options.pencil) {
    grid = {ranks, 1};
  } else if (grid[0] == 0) {
    grid = squarest_grid(ranks);
  } else if (static_cast<long>(grid[0]) * grid[1] != ranks) {
    return "--process-grid " + std::to_string(grid[0]) + "x" + std::to_string(grid[1]) +
           ": is not of " + std::to_string(ranks) + " ranks";
  }
  const Decomposition decomposition(options.points, options.complex_field, grid);
  const bool blocking = options.compare || !options.overlap;
  if (largest_slice(decomposition, blocking ? 1 : options.slices) <= INT_MAX) return "";
  return "a rank would send more points at once than MPI can count; use more ranks" +
         std::string(blocking ? ", or --overlap" : " or more --slices");
}

std::string help_text() {
  std::string text =
      "usage: fft3d GRID [options]\n\n"
      "Transforms a field of GRID points (N or N0xN1xN2) in three dimensions, on all ranks.\n\n";
  for (const Row& row : rows()) {
    std::string line = std::string("  --") + row.name + " " + row.argument;
    line.resize(std::max<size_t>(line.size() + 1, 38), ' ');
    text += line + row.help + "\n";
  }
  return text + "\nexample: mpirun -n 4 fft3d 128 --decomposition pencil --compare --check\n";
}

}  // namespace fft3d
