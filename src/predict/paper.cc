// SPDX-License-Identifier: Apache-2.0
#include "predict/paper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/embedded.h"
#include "machine/sheet.h"
#include "machine/toml_reader.h"

namespace carillon::predict {
namespace {

using machine::TomlReader;

struct QuantityRow {
  std::string_view name, unit;
};
constexpr std::array<QuantityRow, 6> kQuantities = {{{"time_saved", "%"},
                                                     {"speedup", "times"},
                                                     {"latency", "us"},
                                                     {"copy_saved", "%"},
                                                     {"growth", "us"},
                                                     {"overlap", "%"}}};

constexpr double kMostNumber = 1e12;

class PaperReader {
 public:
  PaperReader(std::string_view text, const std::string& file) : toml_(text, file) {}

  Result<Paper> read(const std::string& name) {
    paper_.name = name;
    if (toml_.status().ok()) read_all();
    if (!toml_.status().ok()) return toml_.status();
    return std::move(paper_);
  }

 private:
  void read_all() {
    const toml::table& root = toml_.root();
    toml_.require_known(root, "the file",
                        {"title", "machine", "assumed", "sources", "fit", "pairs", "combinations",
                         "fft3d", "ways", "figures"});
    paper_.title = toml_.text(root, "title", "the file");
    paper_.machine = toml_.text(root, "machine", "the file");
    paper_.assumed = texts(root, "assumed");
    if (const toml::table* const fit = toml_.section("fit"); fit != nullptr) {
      toml_.require_known(*fit, "section [fit]", {"numbers"});
      paper_.fitted = texts(*fit, "numbers");
      if (paper_.fitted.size() > 2) {
        toml_.fail(TomlReader::line_of(*fit), "at most two numbers can be fitted");
      }
    }
    if (const toml::table* const pairs = toml_.section("pairs"); pairs != nullptr) {
      for (const auto& [key, node] : *pairs) read_pair(std::string(key.str()), node);
    }
    if (const toml::table* const all = toml_.section("combinations"); all != nullptr) {
      read_combinations(*all);
      if (!paper_.pairs.empty() || !paper_.fitted.empty()) {
        toml_.fail(TomlReader::line_of(*all), "a paper of combinations has no pairs and no fit");
      }
    }
    const toml::table* const ways = toml_.section("ways");
    if (const toml::table* const fft3d = toml_.section("fft3d"); fft3d != nullptr) {
      read_fft3d(*fft3d);
      for (const auto& [key, node] : ways != nullptr ? *ways : toml::table()) {
        read_way(std::string(key.str()), node);
      }
      if (!paper_.pairs.empty() || !paper_.fitted.empty() || !paper_.candidates.empty()) {
        toml_.fail(TomlReader::line_of(*fft3d),
                   "a paper of programs has no pairs, no combinations and no fit");
      }
    } else if (ways != nullptr) {
      toml_.fail(TomlReader::line_of(*ways), "ways need [fft3d]");
    }
    const toml::array* const figures = root["figures"].as_array();
    if (figures == nullptr || !figures->is_homogeneous<toml::table>()) {
      toml_.fail(1, "there are no sections [[figures]]");
      return;
    }
    for (const toml::node& figure : *figures) read_figure(*figure.as_table());
  }

  std::vector<std::string> texts(const toml::table& table, std::string_view key) {
    std::vector<std::string> list;
    const toml::node* const node = table.get(key);
    if (node == nullptr) return list;
    if (!node->is_array()) {
      toml_.fail(TomlReader::line_of(*node), "{} must be a list of texts", key);
      return list;
    }
    for (const toml::node& one : *node->as_array()) {
      if (const auto text = one.value<std::string>()) {
        list.push_back(*text);
      } else {
        toml_.fail(TomlReader::line_of(one), "{} must be a list of texts", key);
      }
    }
    return list;
  }

  void read_pair(const std::string& name, const toml::node& node) {
    if (!node.is_table()) {
      toml_.fail(TomlReader::line_of(node), "a pair must be a section: [pairs.{}]", name);
      return;
    }
    const toml::table& table = *node.as_table();
    const std::string where = "pair " + name;
    toml_.require_known(table, where, {"collective", "base", "ours", "most_k", "oversubscription"});
    const std::string collective = toml_.text(table, "collective", where);
    Pair pair{.name = name, .base = {}, .ours = {}};
    for (const auto& [key, choice] : {std::pair("base", &pair.base), {"ours", &pair.ours}}) {
      Result<AlgorithmChoice> parsed = algorithm_of(collective, toml_.text(table, key, where));
      if (parsed.ok()) {
        *choice = parsed.value();
      } else {
        toml_.fail(TomlReader::line_of(table), "{}: {}", where, parsed.status().message());
      }
    }
    if (table.contains("most_k")) {
      pair.most_k = static_cast<std::int32_t>(toml_.whole(table, "most_k", where, 1, 1024));
    }
    if (table.contains("oversubscription")) read_oversubscription(table, where, &pair);
    if (pair.most_k > 0 && pair.ours.algorithm != nullptr && pair.ours.algorithm->k.max == 0) {
      toml_.fail(TomlReader::line_of(table), "{}: {} has no parameter k", where,
                 pair.ours.algorithm->id);
    } else if (pair.most_k > 0 && pair.ours.algorithm != nullptr &&
               pair.most_k < pair.ours.algorithm->k.min) {
      toml_.fail(TomlReader::line_of(table), "{}: {} has no k below {}, and most_k is {}", where,
                 pair.ours.algorithm->id, pair.ours.algorithm->k.min, pair.most_k);
    }
    paper_.pairs.push_back(std::move(pair));
  }

  // Of all levels of the machine.
  void read_oversubscription(const toml::table& table, const std::string& where, Pair* pair) {
    const unsigned line = TomlReader::line_of(*table.get("oversubscription"));
    pair->oversubscription_permille =
        std::llround(toml_.number(table, "oversubscription", where, 1, 1000) * 1000);
    Result<machine::Sheet> sheet = machine::load_sheet(paper_.machine);
    if (!sheet.ok()) return;
    std::vector<machine::Level>& levels = sheet.value().machine.topology.levels;
    if (levels.empty()) {
      toml_.fail(line,
                 "{}: oversubscription is that of [[topology.levels]], and machine {} has none",
                 where, paper_.machine);
    }
    for (machine::Level& level : levels) {
      level.oversubscription_permille = pair->oversubscription_permille;
    }
    if (const double top = sheet.value().top_ns_per_byte();
        top > machine::Sheet::most_ns_per_byte()) {
      toml_.fail(line,
                 "{}: with that oversubscription of {} levels a byte takes {:g} ns above them",
                 where, levels.size(), top);
    }
  }

  // Each algorithm, each way to handle memory, each number of ranks on a node.
  void read_combinations(const toml::table& table) {
    const std::string where = "section [combinations]";
    toml_.require_known(table, where,
                        {"collective", "algorithms", "ranks_per_node", "varied", "ways"});
    paper_.varied = texts(table, "varied");
    const std::string collective = toml_.text(table, "collective", where);
    const toml::array* const ways = table["ways"].as_array();
    const toml::array* const ppns = table["ranks_per_node"].as_array();
    if (ways == nullptr || !ways->is_homogeneous<toml::table>() || ppns == nullptr) {
      toml_.fail(TomlReader::line_of(table),
                 "{} needs ranks_per_node, a list of numbers, and [[combinations.ways]]", where);
      return;
    }
    for (const std::string& name : texts(table, "algorithms")) {
      std::string algorithm = collective;
      algorithm.append(".").append(name);
      for (const toml::node& way : *ways) {
        for (const toml::node& ppn : *ppns) {
          read_candidate(algorithm, *way.as_table(), ppn.value<std::int64_t>().value_or(0));
        }
      }
    }
  }

  void read_candidate(const std::string& id, const toml::table& way, std::int64_t ppn) {
    Candidate candidate{.algorithm = id.substr(id.find('.') + 1),
                        .way = toml_.text(way, "name", "a way"),
                        .base = {},
                        .ours = {}};
    const std::string where = "way \"" + candidate.way + "\"";
    toml_.require_known(way, where, {"name", "base", "ours", "gather_entries"});
    for (const auto& [key, choice] :
         {std::pair("base", &candidate.base), {"ours", &candidate.ours}}) {
      Result<AlgorithmChoice> parsed = parse_choice(id + ":" + toml_.text(way, key, where));
      if (parsed.ok()) {
        *choice = parsed.value();
      } else {
        toml_.fail(TomlReader::line_of(way), "{}: {}", where, parsed.status().message());
      }
    }
    candidate.gather_entries =
        static_cast<std::int32_t>(toml_.whole(way, "gather_entries", where, 1, 1 << 20));
    if (ppn < 1 || ppn > 1 << 20) {
      toml_.fail(TomlReader::line_of(way), "{}: ranks_per_node has numbers from 1 on", where);
    }
    candidate.ppn = static_cast<Rank>(std::clamp<std::int64_t>(ppn, 1, 1 << 20));
    paper_.candidates.push_back(std::move(candidate));
  }

  void read_fft3d(const toml::table& table) {
    const std::string where = "section [fft3d]";
    toml_.require_known(table, where, {"slices", "window", "line_mflops", "varied"});
    Fft3d fft3d;
    constexpr std::int64_t kMostSlices = 4096;
    constexpr double kMostRate = 1e9;
    fft3d.slices = static_cast<int>(toml_.whole(table, "slices", where, 1, kMostSlices));
    fft3d.window = static_cast<int>(toml_.whole(table, "window", where, 1, kMostSlices));
    paper_.varied = texts(table, "varied");
    const toml::table* const rate = table["line_mflops"].as_table();
    if (rate == nullptr) {
      toml_.fail(TomlReader::line_of(table), "{} needs line_mflops = {{value, min, max, estimate}}",
                 where);
      return;
    }
    toml_.require_known(*rate, "line_mflops", {"value", "min", "max", "estimate"});
    fft3d.line_mflops_min = toml_.number(*rate, "min", "line_mflops", 1, kMostRate);
    fft3d.line_mflops_max =
        toml_.number(*rate, "max", "line_mflops", fft3d.line_mflops_min, kMostRate);
    fft3d.line_mflops =
        toml_.number(*rate, "value", "line_mflops", fft3d.line_mflops_min, fft3d.line_mflops_max);
    paper_.fft3d = fft3d;
    paper_.assumed.push_back(fmt::format(
        "lines at {:g} Mflop/s a core ({:g} to {:g}): {}", fft3d.line_mflops, fft3d.line_mflops_min,
        fft3d.line_mflops_max, toml_.text(*rate, "estimate", "line_mflops")));
  }

  void read_way(const std::string& name, const toml::node& node) {
    if (!node.is_table()) {
      toml_.fail(TomlReader::line_of(node), "a way must be a section: [ways.{}]", name);
      return;
    }
    const toml::table& table = *node.as_table();
    const std::string where = "way " + name;
    toml_.require_known(table, where,
                        {"alltoallv", "overlap", "progress", "ranks_per_node", "gather_entries"});
    Way way{.name = name, .alltoallv = {}, .overlap = flag(table, "overlap", where)};
    const Result<AlgorithmChoice> choice =
        algorithm_of("alltoallv", toml_.text(table, "alltoallv", where));
    if (choice.ok()) {
      way.alltoallv = choice.value();
    } else {
      toml_.fail(TomlReader::line_of(table), "{}: {}", where, choice.status().message());
    }
    const std::string progress = toml_.text(table, "progress", where);
    if (progress == "servlet") {
      way.progress = sim::Progress::kServlet;
    } else if (progress == "thread") {
      way.progress = sim::Progress::kThread;
    } else if (progress != "caller") {
      toml_.fail(TomlReader::line_of(table),
                 "{}: progress must be caller, thread or servlet, not \"{}\"", where, progress);
    }
    way.ppn = static_cast<Rank>(toml_.whole(table, "ranks_per_node", where, 1, 1 << 20));
    way.gather_entries =
        static_cast<std::int32_t>(toml_.whole(table, "gather_entries", where, 1, 1 << 20));
    paper_.ways.push_back(std::move(way));
  }

  std::size_t way_of(const toml::table& table, std::string_view key, const std::string& where) {
    const std::string name = toml_.text(table, key, where);
    const auto found = std::find_if(paper_.ways.begin(), paper_.ways.end(),
                                    [&](const Way& each) { return each.name == name; });
    if (found == paper_.ways.end()) {
      toml_.fail(TomlReader::line_of(table), "{}: there is no section [ways.{}]", where, name);
    }
    return static_cast<std::size_t>(found - paper_.ways.begin());
  }

  void read_ways(const toml::table& table, const std::string& where, Figure* figure) {
    refuse_beside(table, where, "a figure of programs",
                  {"pair", "ranks_per_node", "domains_per_node", "from_ranks", "late_us"});
    const bool overlaps = table["quantity"].value_or(std::string()) == "overlap";
    const bool alone = overlaps || table["quantity"].value_or(std::string()) == "latency";
    refuse_beside(table, where, "such a quantity", {overlaps ? "grids" : "bytes"});
    if (alone) refuse_beside(table, where, "such a quantity", {"base"});
    figure->way = way_of(table, "ours", where);
    figure->base_way = alone ? figure->way : way_of(table, "base", where);
  }

  void read_figure(const toml::table& table) {
    toml_.require_known(table, "a figure",
                        {"what", "pair", "base", "ours", "ranks", "from_ranks", "ranks_per_node",
                         "domains_per_node", "late_us", "bytes", "grids", "quantity", "published",
                         "published_min", "published_max", "unpublished", "measured", "source"});
    Figure figure;
    figure.what = toml_.text(table, "what", "a figure");
    const std::string where = "figure \"" + figure.what + "\"";
    if (paper_.fft3d) {
      read_ways(table, where, &figure);
    } else if (table.contains("base") || table.contains("ours") || table.contains("grids")) {
      toml_.fail(TomlReader::line_of(table), "{}: base, ours and grids need [fft3d]", where);
    } else if (paper_.candidates.empty()) {
      figure.pair = pair_of(table, where);
    } else if (table.contains("pair") || table.contains("ranks_per_node") ||
               table.contains("domains_per_node")) {
      toml_.fail(TomlReader::line_of(table),
                 "{}: a figure of combinations has no pair, no ranks_per_node and no "
                 "domains_per_node",
                 where);
    }
    figure.ranks = static_cast<Rank>(toml_.whole(table, "ranks", where, 1, 1 << 20));
    if (table.contains("ranks_per_node")) {
      figure.ppn = static_cast<Rank>(toml_.whole(table, "ranks_per_node", where, 1, 1 << 20));
    }
    if (table.contains("domains_per_node")) {
      figure.domains =
          static_cast<std::int32_t>(toml_.whole(table, "domains_per_node", where, 1, figure.ppn));
    }
    if (table.contains("late_us")) read_lateness(table, where, &figure);
    read_lengths(table, where, &figure);
    read_quantity(table, where, &figure);
    figure.measured = flag(table, "measured", where);
    const std::string source = toml_.text(table, "source", where);
    figure.source = toml_.root()["sources"][source].value_or(std::string());
    if (figure.source.empty()) {
      toml_.fail(TomlReader::line_of(table), "{}: there is no source \"{}\" in [sources]", where,
                 source);
    }
    paper_.figures.push_back(std::move(figure));
  }

  void read_lateness(const toml::table& table, const std::string& where, Figure* figure) {
    constexpr double kMostUs = 1e9;
    figure->late_ps = std::llround(toml_.number(table, "late_us", where, 1e-3, kMostUs) * 1e6);
    if (!paper_.candidates.empty() || figure->ranks <= figure->ppn) {
      toml_.fail(TomlReader::line_of(table),
                 "{}: late_us is of a rank of the second node, and not of combinations", where);
    }
  }

  // A number, or a list of them.
  void read_lengths(const toml::table& table, const std::string& where, Figure* figure) {
    constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
    constexpr std::int64_t kMostEdge = 1 << 16;  // of a grid
    const std::string_view key = table.contains("grids") ? "grids" : "bytes";
    const std::int64_t least = key == "grids" ? 1 : 0;
    const std::int64_t most = key == "grids" ? kMostEdge : kMostBytes;
    const toml::array* const list = table[key].as_array();
    if (list == nullptr) {
      figure->lengths.push_back(toml_.whole(table, key, where, least, most));
      return;
    }
    for (const toml::node& one : *list) {
      const std::int64_t bytes = one.value<std::int64_t>().value_or(-1);
      if (bytes < least || bytes > most) break;
      figure->lengths.push_back(bytes);
    }
    if (list->empty() || figure->lengths.size() != list->size()) {
      toml_.fail(TomlReader::line_of(*list), "{}: {} must be a number or a list of them", where,
                 key);
    } else if (list->size() > 1 && !paper_.candidates.empty()) {
      toml_.fail(TomlReader::line_of(*list), "{}: a figure of combinations has one length", where);
    }
  }

  std::size_t pair_of(const toml::table& table, const std::string& where) {
    const std::string pair = toml_.text(table, "pair", where);
    const auto found = std::find_if(paper_.pairs.begin(), paper_.pairs.end(),
                                    [&](const Pair& each) { return each.name == pair; });
    if (found == paper_.pairs.end()) {
      toml_.fail(TomlReader::line_of(table), "{}: there is no section [pairs.{}]", where, pair);
    }
    return static_cast<std::size_t>(found - paper_.pairs.begin());
  }

  void read_quantity(const toml::table& table, const std::string& where, Figure* figure) {
    const std::string name = toml_.text(table, "quantity", where);
    const auto* const found =
        std::find_if(kQuantities.begin(), kQuantities.end(),
                     [&](const QuantityRow& row) { return row.name == name; });
    if (found == kQuantities.end()) {
      toml_.fail(
          TomlReader::line_of(table),
          "{}: quantity must be time_saved, speedup, latency, copy_saved, growth or overlap, not "
          "\"{}\"",
          where, name);
      return;
    }
    figure->quantity = static_cast<Quantity>(found - kQuantities.begin());
    if (figure->quantity == Quantity::kOverlap && !paper_.fft3d) {
      toml_.fail(TomlReader::line_of(table), "{}: overlap needs [fft3d]", where);
    }
    if (figure->quantity == Quantity::kCopySaved && paper_.candidates.empty()) {
      toml_.fail(TomlReader::line_of(table), "{}: copy_saved needs [combinations]", where);
    }
    if (figure->quantity == Quantity::kGrowth) {
      if (!paper_.candidates.empty() || paper_.fft3d) {
        toml_.fail(TomlReader::line_of(table), "{}: growth needs a pair", where);
      }
      figure->from_ranks =
          static_cast<Rank>(toml_.whole(table, "from_ranks", where, 1, figure->ranks));
    } else {
      refuse_beside(table, where, "a quantity that is no growth", {"from_ranks"});
    }
    figure->unpublished = flag(table, "unpublished", where);
    if (!figure->unpublished) return read_published(table, where, figure);
    refuse_beside(table, where, "unpublished",
                  {"measured", "published", "published_min", "published_max"});
    if (!paper_.candidates.empty()) {
      toml_.fail(TomlReader::line_of(table), "{}: combinations are compared with what is published",
                 where);
    }
  }

  void read_published(const toml::table& table, const std::string& where, Figure* figure) {
    const auto number = [&](std::string_view key, double least) {
      return toml_.number(table, key, where, least, kMostNumber);
    };
    if (table.contains("published_min") || table.contains("published_max")) {
      refuse_beside(table, where, "a range", {"published"});
      figure->published_min = number("published_min", -kMostNumber);
      figure->published_max = number("published_max", figure->published_min);
      figure->published = (figure->published_min + figure->published_max) / 2;
    } else {
      figure->published = number("published", -kMostNumber);
      figure->published_min = figure->published_max = figure->published;
    }
  }

  // False where there is none.
  bool flag(const toml::table& table, std::string_view key, const std::string& where) {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean()) {
      toml_.fail(TomlReader::line_of(*node), "{}: {} must be true or false", where, key);
    }
    return node->value_or(false);
  }

  // What would be read by nobody.
  void refuse_beside(const toml::table& table, const std::string& where, std::string_view what,
                     std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      const toml::node* const node = table.get(key);
      if (node != nullptr) {
        toml_.fail(TomlReader::line_of(*node), "{}: {} has no {}", where, what, key);
      }
    }
  }

  TomlReader toml_;
  Paper paper_;
};

}  // namespace

std::string_view unit_of(Quantity quantity) {
  return kQuantities.at(static_cast<std::size_t>(quantity)).unit;
}

Result<Paper> parse_paper(std::string_view text, const std::string& file, const std::string& name) {
  return PaperReader(text, file).read(name);
}

Result<Paper> load_paper(const std::string& name_or_path) {
  Result<machine::DataFile> file =
      machine::find_file(name_or_path, paper_files(), "papers", "paper");
  if (!file.ok()) return file.status();
  return parse_paper(file.value().text, file.value().path, file.value().name);
}

std::vector<std::string> paper_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : paper_files()) names.emplace_back(file.name);
  return names;
}

}  // namespace carillon::predict
