// SPDX-License-Identifier: Apache-2.0
//
// carillon reproduce: the figures that a paper published, next to ours.
#include "predict/reproduce.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "support/failure.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

using Json = nlohmann::ordered_json;
using predict::Figure;
using predict::Fitted;
using predict::Paper;
using predict::Reproduced;
using predict::Reproduction;

struct Options {
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

// From the nearer end of what was published.
double deviation(const Figure& figure, const Reproduced& row) {
  return row.ours - std::clamp(row.ours, figure.published_min, figure.published_max);
}

double rounded(double value) { return std::round(value * 100) / 100; }

Json row_json(const Figure& figure, const Reproduced& row, const std::string& assumed) {
  Json json{{"what", figure.what}, {"published", figure.published}};
  if (figure.published_min < figure.published_max) {
    json["published_min"] = figure.published_min;
    json["published_max"] = figure.published_max;
  }
  json["published_by"] = figure.measured ? "measurement" : "model";
  json["ours"] = rounded(row.ours);
  json["ours_min"] = rounded(row.ours_min);
  json["ours_max"] = rounded(row.ours_max);
  json["unit"] = predict::unit_of(figure.quantity);
  json["model"] = row.model ? Json(rounded(*row.model)) : Json();
  json["deviation"] = rounded(deviation(figure, row));
  json["k"] = row.k > 0 ? Json(row.k) : Json();
  json["assumed"] = assumed;
  json["source"] = figure.source;
  return json;
}

void print_json(const Paper& paper, const Reproduction& reproduction) {
  std::string assumed;
  for (const std::string& each : assumptions(paper, reproduction)) {
    assumed += (assumed.empty() ? "" : "; ") + each;
  }
  Json rows = Json::array();
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    rows.push_back(row_json(paper.figures[i], reproduction.figures[i], assumed));
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

void print_text(const Paper& paper, const Reproduction& reproduction) {
  Table table(
      {"figure", ">published", ">ours", ">least", ">most", "unit", ">model", ">k", ">deviation"});
  const auto number = [](double value) { return fmt::format("{:.1f}", value); };
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    const Figure& figure = paper.figures[i];
    const Reproduced& row = reproduction.figures[i];
    const bool range = figure.published_min < figure.published_max;
    table.add({figure.what + (figure.measured ? "" : " (modelled)"),
               range ? fmt::format("{:g} to {:g}", figure.published_min, figure.published_max)
                     : fmt::format("{:g}", figure.published),
               number(row.ours), number(row.ours_min), number(row.ours_max),
               std::string(predict::unit_of(figure.quantity)), row.model ? number(*row.model) : "-",
               row.k > 0 ? fmt::format("{}", row.k) : "-",
               fmt::format("{:+.1f}", deviation(figure, row))});
  }
  std::printf("%s\n\n%s\nassumed:\n", paper.title.c_str(), table.text().c_str());
  for (const std::string& each : assumptions(paper, reproduction)) {
    std::printf("  %s\n", each.c_str());
  }
  std::printf(
      "least and most: over the ranges of all the machine's numbers, fitted ones included "
      "(carillon model --machine %s --numbers)\n",
      paper.machine.c_str());
}

int run(const Options& options) {
  if (options.paper.empty()) {
    list_papers(options.json);
    return 0;
  }
  const Paper paper = value_or_fail(predict::load_paper(options.paper));
  const Reproduction reproduction = value_or_fail(predict::reproduce(paper));
  if (options.json) {
    print_json(paper, reproduction);
  } else {
    print_text(paper, reproduction);
  }
  return 0;
}

}  // namespace

Action define_reproduce(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("PAPER", options->paper,
                 "one of them, or the path of a file like theirs; default: list them");
  app.add_flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
