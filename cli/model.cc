// SPDX-License-Identifier: Apache-2.0
//
// carillon model: how long a collective takes on a machine, by closed forms; the machines there
// are, and where their numbers come from.
#include "machine/model.h"

#include <cstdio>
#include <memory>

#include "algorithms/registry.h"
#include "command.h"
#include "machine/sheet.h"
#include "predict/predict.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/sheet_json.h"
#include "support/table.h"
#include "support/units.h"

namespace carillon::cli {
namespace {

struct ModelOptions {
  std::string collective, algorithm;
  std::string machine = "edr";
  Rank ranks = 16;
  std::int64_t bytes = 8;
  std::int64_t slot_bytes = 0;  // 0: the library's
  bool best_k = false, list = false, numbers = false, json = false;
};

void list_machines(bool as_json) {
  Json list = Json::array();
  Table table({"machine", "what it is"});
  for (const std::string& name : machine::machine_names()) {
    const machine::Sheet sheet = value_or_fail(machine::load_sheet(name));
    list.push_back({{"name", name}, {"title", sheet.title}});
    table.add({name, sheet.title});
  }
  std::printf("%s\n", as_json ? Json{{"machines", list}}.dump(2).c_str() : table.text().c_str());
}

void print_numbers(const machine::Sheet& sheet, bool as_json) {
  if (as_json) {
    std::printf("%s\n", sheet_json(sheet).dump(2).c_str());
    return;
  }
  Table table({"number", ">value", ">least", ">most", "where from"});
  for (const machine::Number& number : sheet.numbers) {
    table.add({number.field->name(), fmt::format("{}", number.value), fmt::format("{}", number.min),
               fmt::format("{}", number.max),
               (number.estimate ? "estimate: " : "") + number.source});
  }
  std::size_t levels = 0;
  for (const machine::Level& level : sheet.machine.topology.levels) {
    const machine::LevelSource& from = sheet.level_sources[levels];
    const std::string name = fmt::format("topology.levels {}", ++levels);
    const double over = static_cast<double>(level.oversubscription_permille) / 1000;
    const std::string where = (from.estimate ? "estimate: " : "") + from.source;
    table.add({name + ", radix", fmt::format("{}", level.radix), "", "", where});
    table.add({name + ", oversubscription", fmt::format("{}", over), "", "", where});
  }
  std::printf("%s: %s\n\n%s", sheet.machine.name.c_str(), sheet.title.c_str(),
              table.text().c_str());
}

struct Row {
  std::string algorithm, formula, why_not;  // why_not: no closed form says how long it takes
  std::int64_t time_ps = 0;
};

Row evaluate(const ModelOptions& options, const machine::Machine& machine, AlgorithmChoice choice) {
  const machine::ModelCall call = predict::model_call(
      {.choice = choice,
       .ranks = options.ranks,
       .bytes = options.bytes,
       .slot_bytes = options.slot_bytes > 0
                         ? options.slot_bytes
                         : predict::slot_bytes(*predict::even_nodes(options.ranks, 1))});
  const machine::ModelRow* const model = machine::find_model(call.algorithm);
  Row row{.formula = model == nullptr ? "" : std::string(model->formula)};
  if (options.best_k && choice.algorithm->k.max > 0) {
    Result<machine::BestK> best = machine::best_k(machine, call, choice.algorithm->k.max);
    if (best.ok()) {
      row.time_ps = best.value().time_ps;
      choice.params.k = best.value().k;
    } else {
      row.why_not = best.status().message();
    }
  } else {
    Result<std::int64_t> time = machine::model_ps(machine, call);
    if (time.ok()) {
      row.time_ps = time.value();
    } else {
      row.why_not = time.status().message();
    }
  }
  row.algorithm = to_text(choice);
  return row;
}

std::vector<Row> evaluate_all(const ModelOptions& options, const machine::Machine& machine) {
  if (!options.algorithm.empty()) {
    const AlgorithmChoice choice =
        value_or_fail(predict::algorithm_of(options.collective, options.algorithm));
    Row row = evaluate(options, machine, choice);
    if (!row.why_not.empty()) fail("{}", row.why_not);
    return {row};
  }
  Collective collective{};
  if (!collective_from_name(options.collective, &collective)) {
    fail("there is no collective \"{}\"; carillon list names them", options.collective);
  }
  std::vector<Row> rows;
  for (const machine::ModelRow& model : machine::models()) {
    const Algorithm* const algorithm = find_algorithm(model.id);
    if (collective_name(algorithm->collective) != options.collective) continue;
    rows.push_back(evaluate(options, machine, {.algorithm = algorithm, .params = {}}));
  }
  if (rows.empty()) {
    fail("no algorithm for \"{}\" has a closed form; carillon sim takes all", options.collective);
  }
  return rows;
}

void print_times(const ModelOptions& options, const std::vector<Row>& rows) {
  if (options.json) {
    Json list = Json::array();
    for (const Row& row : rows) {
      Json one{{"algorithm", row.algorithm}, {"formula", row.formula}};
      if (row.why_not.empty()) {
        one["latency_us"] = static_cast<double>(row.time_ps) / kPsPerUs;
        one["latency_ps"] = row.time_ps;
      } else {
        one["why_not"] = row.why_not;
      }
      list.push_back(std::move(one));
    }
    const Json json{{"collective", options.collective},
                    {"machine", options.machine},
                    {"ranks", options.ranks},
                    {"bytes", options.bytes},
                    {"rows", list}};
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  std::printf("%s of %lld bytes, %d ranks, one per node, on %s\n", options.collective.c_str(),
              static_cast<long long>(options.bytes), options.ranks, options.machine.c_str());
  Table table({"algorithm", ">us", "formula"});
  for (const Row& row : rows) {
    const bool known = row.why_not.empty();
    table.add({row.algorithm,
               known ? short_number(static_cast<double>(row.time_ps) / kPsPerUs) : "-",
               known ? row.formula : row.why_not});
  }
  std::printf("%s", table.text().c_str());
}

int run(const ModelOptions& options) {
  if (options.list) {
    list_machines(options.json);
    return 0;
  }
  const machine::Sheet sheet = value_or_fail(machine::load_sheet(options.machine));
  if (options.numbers) {
    print_numbers(sheet, options.json);
    return 0;
  }
  if (options.collective.empty()) {
    throw Failure("which collective?", kWrongUse);
  }
  print_times(options, evaluate_all(options, sheet.machine));
  return 0;
}

}  // namespace

Action define_model(Command command) {
  const auto options = std::make_shared<ModelOptions>();
  const Option collective =
      command.option("COLLECTIVE", options->collective, "bcast, allreduce, ...");
  command.option("--algorithm,-a", options->algorithm,
                 "one with its parameters, e.g. degree_k:k=4,transfer=sendrecv; default: all that "
                 "have a closed form");
  command.option("--ranks,-n", options->ranks, "ranks, one per node")
      .in_range(1, 1 << 20)
      .with_default();
  command.option("--bytes,-b", options->bytes, "bytes of the vector")
      .with_unit()
      .in_range(std::int64_t{0}, std::int64_t{1} << 40)
      .with_default();
  command.option("--machine,-m", options->machine, "a machine's name, or the path of its file")
      .with_default();
  command
      .option("--slot-bytes", options->slot_bytes,
              "largest piece of a message; default: what teams have")
      .in_range(std::int64_t{1}, std::int64_t{1} << 40);
  command.flag("--best-k", options->best_k, "with the k that takes the least time");
  const Option list = command.flag("--list", options->list, "list the machines");
  const Option numbers =
      command.flag("--numbers", options->numbers, "print the machine's numbers and their sources");
  list.excludes(collective).excludes(numbers).excludes("--machine");
  numbers.excludes(collective);
  command.flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
