// SPDX-License-Identifier: Apache-2.0
//
// carillon reproduce: the figures that a paper published, next to ours.
#include "predict/reproduce.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "command.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

using predict::Figure;
using predict::Fitted;
using predict::Paper;
using predict::Reproduced;
using predict::Reproduction;

struct ReproduceOptions {
  std::string paper;
  bool json = false;
};

void list_papers(bool as_json) {
  Json list = Json::array();
  Table table({"paper", "what it is"});
  for (const std::string& name : predict::paper_names()) {
    const Paper paper = value_or_fail(predict::load_paper(name));
    list.push_back({{"name", name}, {"title", paper.title}});
    table.add({name, paper.title});
  }
  std::printf("%s\n", as_json ? Json{{"papers", list}}.dump(2).c_str() : table.text().c_str());
}

std::string text_of(const Fitted& fitted) {
  return fmt::format("fitted to the measured figures: {} = {:.4g} (its range is {:g} to {:g})",
                     fitted.number.field->name(), fitted.value, fitted.number.min,
                     fitted.number.max);
}

std::vector<std::string> assumptions(const Paper& paper, const Reproduction& reproduction) {
  std::vector<std::string> list{"machine " + paper.machine};
  list.insert(list.end(), paper.assumed.begin(), paper.assumed.end());
  for (const Fitted& fitted : reproduction.fitted) list.push_back(text_of(fitted));
  return list;
}

std::string assumed_text(const Paper& paper, const Reproduction& reproduction) {
  return fmt::format("{}", fmt::join(assumptions(paper, reproduction), "; "));
}

double rounded(double value) { return std::round(value * 100) / 100; }

Json row_json(const Figure& figure, const Reproduced& row, bool has_grid,
              const std::string& assumed) {
  Json json{
      {"what", figure.what}, {has_grid ? "grid" : "bytes", row.bytes}, {"published", nullptr}};
  if (!figure.unpublished) json["published"] = figure.published;
  if (figure.published_min < figure.published_max) {
    json["published_min"] = figure.published_min;
    json["published_max"] = figure.published_max;
  }
  json["published_by"] = figure.unpublished ? "nobody" : figure.measured ? "measurement" : "model";
  json["ours"] = rounded(row.ours);
  json["ours_min"] = rounded(row.ours_min);
  json["ours_max"] = rounded(row.ours_max);
  json["unit"] = predict::unit_of(figure.quantity);
  json["model"] = row.model ? Json(rounded(*row.model)) : Json();
  json["deviation"] =
      figure.unpublished ? Json() : Json(rounded(predict::deviation(figure, row.ours)));
  json["k"] = row.k > 0 ? Json(row.k) : Json();
  json["assumed"] = assumed;
  json["source"] = figure.source;
  return json;
}

// Its lengths are edges of grids.
bool has_grid(const Paper& paper, const Figure& figure) {
  return paper.fft3d && figure.quantity != predict::Quantity::kOverlap;
}

void print_json(const Paper& paper, const Reproduction& reproduction) {
  const std::string assumed = assumed_text(paper, reproduction);
  Json rows = Json::array();
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    rows.push_back(row_json(paper.figures[i], reproduction.figures[i],
                            has_grid(paper, paper.figures[i]), assumed));
  }
  Json fitted = Json::array();
  for (const Fitted& each : reproduction.fitted) {
    fitted.push_back({{"number", each.number.field->name()},
                      {"value", each.value},
                      {"min", each.number.min},
                      {"max", each.number.max}});
  }
  const Json json{{"paper", paper.name},
                  {"title", paper.title},
                  {"machine", paper.machine},
                  {"fitted", fitted},
                  {"rows", rows}};
  std::printf("%s\n", json.dump(2).c_str());
}

std::string published_text(const Figure& figure) {
  if (figure.unpublished) return "-";
  return figure.published_min < figure.published_max
             ? fmt::format("{:g} to {:g}", figure.published_min, figure.published_max)
             : fmt::format("{:g}", figure.published);
}

void print_text(const Paper& paper, const Reproduction& reproduction) {
  Table table({"figure", ">bytes", ">published", ">ours", ">least", ">most", "unit", ">model", ">k",
               ">deviation"});
  const auto number = [](double value) { return fmt::format("{:.1f}", value); };
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    const Figure& figure = paper.figures[i];
    const Reproduced& row = reproduction.figures[i];
    const bool known = !figure.unpublished;
    table.add({figure.what + (known && !figure.measured ? " (modelled)" : ""),
               fmt::format("{}{}", row.bytes, has_grid(paper, figure) ? "^3" : ""),
               published_text(figure), number(row.ours), known ? number(row.ours_min) : "-",
               known ? number(row.ours_max) : "-", std::string(predict::unit_of(figure.quantity)),
               row.model ? number(*row.model) : "-", row.k > 0 ? fmt::format("{}", row.k) : "-",
               known ? fmt::format("{:+.1f}", predict::deviation(figure, row.ours)) : "-"});
  }
  std::printf("%s\n\n%s\nassumed:\n", paper.title.c_str(), table.text().c_str());
  for (const std::string& each : assumptions(paper, reproduction)) {
    std::printf("  %s\n", each.c_str());
  }
  if (paper.fft3d) {
    std::string varied;
    for (const std::string& name : paper.varied) varied += ", " + name;
    std::printf("least and most: over the ranges of line_mflops%s\n", varied.c_str());
    return;
  }
  std::printf(
      "least and most: over the ranges of all the machine's numbers, fitted ones included "
      "(carillon model --machine %s --numbers)\n",
      paper.machine.c_str());
}

// A figure as the closest of the candidates has it, and the least and the most of all of them.
Json candidates_row(const Paper& paper, const Reproduction& reproduction, std::size_t figure_at,
                    const std::string& assumed) {
  const Figure& figure = paper.figures[figure_at];
  const Reproduced& row = reproduction.figures[figure_at];
  std::vector<double> ours;
  ours.reserve(reproduction.tried.size());
  for (const predict::Tried& tried : reproduction.tried) ours.push_back(tried.ours[figure_at]);
  const auto [least, most] = std::minmax_element(ours.begin(), ours.end());
  const predict::Candidate& closest = paper.candidates[reproduction.closest];
  return {
      {"what", figure.what},
      {"published", figure.published},
      {"published_by", figure.measured ? "measurement" : "model"},
      {"ours", rounded(row.ours)},
      {"ours_min", rounded(row.ours_min)},
      {"ours_max", rounded(row.ours_max)},
      {"combinations_min", rounded(*least)},
      {"combinations_max", rounded(*most)},
      {"unit", predict::unit_of(figure.quantity)},
      {"model", nullptr},
      {"deviation", rounded(predict::deviation(figure, row.ours))},
      {"assumed", fmt::format("{}; of {} combinations the closest: {}, {}, {} ranks on a node",
                              assumed, ours.size(), closest.algorithm, closest.way, closest.ppn)},
      {"source", figure.source}};
}

Json varied_json(const Reproduction& reproduction) {
  Json list = Json::array();
  for (const machine::Number& each : reproduction.varied) {
    list.push_back({{"number", each.field->name()},
                    {"value", each.value},
                    {"min", each.min},
                    {"max", each.max},
                    {"estimate", each.estimate},
                    {"source", each.source}});
  }
  return list;
}

// Of a paper that does not say enough: by each of its candidates, and which comes closest.
void print_candidates_json(const Paper& paper, const Reproduction& reproduction) {
  const std::string assumed = assumed_text(paper, reproduction);
  Json rows = Json::array();
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    rows.push_back(candidates_row(paper, reproduction, i, assumed));
  }
  Json combinations = Json::array();
  for (std::size_t i = 0; i < paper.candidates.size(); ++i) {
    const predict::Candidate& candidate = paper.candidates[i];
    const predict::Tried& tried = reproduction.tried[i];
    Json one{{"algorithm", candidate.algorithm},
             {"way", candidate.way},
             {"base", to_text(candidate.base)},
             {"ours", to_text(candidate.ours)},
             {"ranks_per_node", candidate.ppn},
             {"gather_entries", candidate.gather_entries},
             {"deviation", rounded(tried.deviation)},
             {"closest", i == reproduction.closest},
             {"figures", Json::array()}};
    for (std::size_t j = 0; j < paper.figures.size(); ++j) {
      const Figure& figure = paper.figures[j];
      one["figures"].push_back({{"what", figure.what},
                                {"published", figure.published},
                                {"ours", rounded(tried.ours[j])},
                                {"unit", predict::unit_of(figure.quantity)},
                                {"source", figure.source}});
    }
    combinations.push_back(std::move(one));
  }
  const Json json{
      {"paper", paper.name},         {"title", paper.title}, {"machine", paper.machine},
      {"assumed", paper.assumed},    {"rows", rows},         {"varied", varied_json(reproduction)},
      {"combinations", combinations}};
  std::printf("%s\n", json.dump(2).c_str());
}

// The closest candidate's figures, and what they come to over the ranges of what is varied.
void print_closest(const Paper& paper, const Reproduction& reproduction) {
  const predict::Candidate& closest = paper.candidates[reproduction.closest];
  std::printf("closest: %s, %s, %d ranks on a node: %s against %s\n", closest.algorithm.c_str(),
              closest.way.c_str(), closest.ppn, to_text(closest.ours).c_str(),
              to_text(closest.base).c_str());
  if (reproduction.varied.empty()) return;
  Table table({"figure", ">published", ">ours", ">least", ">most", "unit", ">deviation"});
  const auto number = [](double value) { return fmt::format("{:.1f}", value); };
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    const Figure& figure = paper.figures[i];
    const Reproduced& row = reproduction.figures[i];
    table.add({figure.what, published_text(figure), number(row.ours), number(row.ours_min),
               number(row.ours_max), std::string(predict::unit_of(figure.quantity)),
               fmt::format("{:+.1f}", predict::deviation(figure, row.ours))});
  }
  std::vector<std::string> ranges;
  ranges.reserve(reproduction.varied.size());
  for (const machine::Number& each : reproduction.varied) {
    ranges.push_back(fmt::format("{} ({:g} to {:g})", each.field->name(), each.min, each.max));
  }
  std::printf("\n%s\nleast and most: over the ranges of %s\n", table.text().c_str(),
              fmt::format("{}", fmt::join(ranges, ", ")).c_str());
}

void print_candidates(const Paper& paper, const Reproduction& reproduction) {
  std::vector<std::string> head{"algorithm", "way", ">ranks a node"};
  std::vector<std::string> published{"published", "", ""};
  for (const Figure& figure : paper.figures) {
    head.push_back(">" + figure.what);
    published.push_back(published_text(figure));
  }
  head.emplace_back(">apart");
  published.emplace_back();
  Table table(head);
  table.add(published);
  const auto add = [&](std::size_t i) {
    const predict::Candidate& candidate = paper.candidates[i];
    std::vector<std::string> row{candidate.algorithm, candidate.way,
                                 fmt::format("{}", candidate.ppn)};
    for (const double ours : reproduction.tried[i].ours) row.push_back(fmt::format("{:.1f}", ours));
    row.push_back(fmt::format("{:.1f}", reproduction.tried[i].deviation));
    table.add(row);
  };
  for (std::size_t i = 0; i < paper.candidates.size(); ++i) add(i);
  std::printf("%s\n\n%s\nin %%; apart: the root of the mean square of the deviations\n",
              paper.title.c_str(), table.text().c_str());
  print_closest(paper, reproduction);
  std::printf("\nassumed:\n");
  for (const std::string& each : assumptions(paper, reproduction)) {
    std::printf("  %s\n", each.c_str());
  }
}

void show_done(std::size_t done, std::size_t of) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K");
  if (of == 0) std::fprintf(stderr, "%zu programs", done);
  if (done < of) std::fprintf(stderr, "%zu of %zu combinations and variants", done, of);
}

int run(const ReproduceOptions& options) {
  if (options.paper.empty()) {
    list_papers(options.json);
    return 0;
  }
  const Paper paper = value_or_fail(predict::load_paper(options.paper));
  const Reproduction reproduction = value_or_fail(predict::reproduce(paper, show_done));
  show_done(1, 1);  // clears the line
  if (!paper.candidates.empty()) {
    (options.json ? print_candidates_json : print_candidates)(paper, reproduction);
  } else if (options.json) {
    print_json(paper, reproduction);
  } else {
    print_text(paper, reproduction);
  }
  return 0;
}

}  // namespace

Action define_reproduce(Command command) {
  const auto options = std::make_shared<ReproduceOptions>();
  command.option("PAPER", options->paper,
                 "one of them, or the path of a file like theirs; default: list them");
  command.flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
