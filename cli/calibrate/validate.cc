// SPDX-License-Identifier: Apache-2.0
#include "calibrate/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "calibrate/measure.h"
#include "calibrate/on_cluster.h"
#include "machine/sheet.h"
#include "predict/predict.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/median.h"
#include "support/options.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

struct Row {
  Timed timed;
  double measured_us = 0, predicted_us = 0;  // medians of the rounds
  double error_percent = 0;
  std::vector<double> measured, predicted, errors;
};

machine::Machine machine_of(const machine::Measured& measured) {
  const std::string text = machine::calibrated_file(measured);
  return value_or_fail(machine::parse_sheet(text, "what was measured", "calibrated")).machine;
}

double predict_us(const ValidateOptions& options, const machine::Machine& machine,
                  const Timed& timed) {
  const auto ranks = static_cast<Rank>(options.ranks);
  const bool apart = options.nodes || options.cluster;
  Limits limits{.crowded = options.ranks > usable_cores(),
                .nodes = predict::even_nodes(ranks, apart ? 1 : ranks)};
  limits.slot_bytes = predict::slot_bytes(*limits.nodes);
  const Shared shared = predict::example_problem(timed.collective, ranks, timed.bytes);
  const std::int64_t ps =
      value_or_fail(predict::simulate_repeated(timed.times, timed.choice, shared, limits, machine));
  return static_cast<double>(ps) / 1e6 / timed.times;
}

// Measures and predicts, row by row, over all rounds.
class Comparison {
 public:
  Comparison(const ValidateOptions& options, const std::vector<pid_t>& cluster)
      : options_(options),
        seats_{.between_nodes = options.nodes || options.cluster, .nodes = cluster} {
    if (!options.machine.empty()) {
      machine_ = value_or_fail(machine::load(options.machine));
    } else {
      measured_ = measure_machine(cluster);
      measured_.where = "this machine";
      machine_ = machine_of(measured_);
    }
    // What the machine's file says nothing of cannot be predicted.
    seats_.multicast = machine_.datagram.known && machine_.multicast.known;
  }

  // A machine may change from second to second: its messages are measured right before what is
  // predicted with that.
  void add_round(Collective collective) {
    if (options_.machine.empty()) {
      if (seats_.between_nodes) {
        measure_network(seats_.nodes, &measured_);
      } else {
        measure_node(&measured_);
      }
      machine_ = machine_of(measured_);
    }
    if (seats_.between_nodes) machine_.node.nodes_per_host = options_.ranks;  // all are here
    for (const Timed& timed :
         measure_collective(collective, options_.ranks, seats_, parse_sizes(options_.sizes))) {
      Row& row = row_of(timed);
      const double predicted = predict_us(options_, machine_, timed);
      row.measured.push_back(timed.us);
      row.predicted.push_back(predicted);
      row.errors.push_back(100 * (predicted / timed.us - 1));
    }
  }

  std::vector<Row> rows() {
    for (Row& row : rows_) {
      row.measured_us = median(row.measured);
      row.predicted_us = median(row.predicted);
      row.error_percent = median(row.errors);
    }
    return rows_;
  }

 private:
  Row& row_of(const Timed& timed) {
    for (Row& row : rows_) {
      if (row.timed.collective == timed.collective && row.timed.bytes == timed.bytes) return row;
    }
    return rows_.emplace_back(Row{.timed = timed});
  }

  const ValidateOptions& options_;
  Seats seats_;
  machine::Measured measured_;
  machine::Machine machine_;
  std::vector<Row> rows_;
};

std::vector<Row> compare(const ValidateOptions& options, const std::vector<pid_t>& cluster) {
  Comparison comparison(options, cluster);
  for (int round = 0; round < options.rounds; ++round) {
    for (const Collective each :
         {Collective::kBcast, Collective::kAllreduce, Collective::kAlltoall}) {
      comparison.add_round(each);
    }
  }
  return comparison.rows();
}

// The absolute error that so many of the rows do not exceed.
double error_at(const std::vector<Row>& rows, double part) {
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const Row& row : rows) errors.push_back(std::abs(row.error_percent));
  std::sort(errors.begin(), errors.end());
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(rows.size())));
  return errors.at(std::clamp<std::size_t>(rank, 1, rows.size()) - 1);
}

void print(const ValidateOptions& options, const std::vector<Row>& rows) {
  const double half = error_at(rows, 0.5), most = error_at(rows, 0.9);
  Json list = Json::array();
  Table table({"collective", ">bytes", "algorithm", ">measured us", ">predicted us", ">error"});
  for (const Row& row : rows) {
    const std::string name(collective_name(row.timed.collective));
    const std::string algorithm = to_text(row.timed.choice);
    list.push_back({{"collective", name},
                    {"bytes", row.timed.bytes},
                    {"algorithm", algorithm},
                    {"measured_us", row.measured_us},
                    {"predicted_us", row.predicted_us},
                    {"error_percent", row.error_percent}});
    table.add({name, short_bytes(row.timed.bytes), algorithm, short_number(row.measured_us),
               short_number(row.predicted_us), fmt::format("{:+.0f} %", row.error_percent)});
  }
  if (options.json) {
    const Json json{{"machine", options.machine.empty() ? "this machine" : options.machine},
                    {"ranks", options.ranks},
                    {"between_nodes", options.nodes || options.cluster},
                    {"virtual_cluster", options.cluster},
                    {"cores", usable_cores()},
                    {"rounds", options.rounds},
                    {"rows", list},
                    {"median_error_percent", half},
                    {"p90_error_percent", most}};
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  std::printf(
      "%d ranks %s, %d cores; time per call of calls in a row, medians of %d rounds\n%s\n"
      "error: %.0f %% in the median, %.0f %% at the 90th percentile\n",
      options.ranks,
      options.cluster ? "of a virtual cluster's nodes"
      : options.nodes ? "that count as nodes"
                      : "of one node",
      usable_cores(), options.rounds, table.text().c_str(), half, most);
}

}  // namespace

int validate(const ValidateOptions& options) {
  const auto body = [&](const std::vector<pid_t>& cluster) {
    print(options, compare(options, cluster));
    return 0;
  };
  return options.cluster ? on_cluster(options.ranks, body) : body({});
}

}  // namespace carillon::cli
