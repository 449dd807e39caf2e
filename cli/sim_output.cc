// SPDX-License-Identifier: Apache-2.0
#include "sim_output.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "support/failure.h"
#include "support/table.h"
#include "support/units.h"

namespace carillon::cli {
namespace {

constexpr std::size_t kPathShown = 60;

double per_rank_us(const SimRow& row, sim::SumPs sum_ps) {
  return static_cast<double>(sum_ps) / kPsPerUs / row.ranks;
}

double messages_per_s(const SimRow& row) {
  return row.wall_s > 0 ? static_cast<double>(row.report.messages) / row.wall_s : 0;
}

double megabytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1024 * 1024); }

Json phases(const SimRow& row) {
  Json json;
  for (int i = 0; i < sim::kActivities; ++i) {
    const auto activity = static_cast<sim::Activity>(i);
    json[std::string(sim::activity_name(activity)) + "_us"] =
        per_rank_us(row, row.report.activity_ps.at(static_cast<std::size_t>(i)));
  }
  return json;
}

Json json_of(const SimRow& row) {
  Json one{{"algorithm", row.algorithm},
           {"ranks", row.ranks},
           {"nodes", row.nodes},
           {"bytes", row.bytes},
           {"latency_us", us(row.report.latency_ps)},
           {"latency_ps", row.report.latency_ps},
           {"rank_mean_us", per_rank_us(row, row.report.rank_sum_ps)},
           {"rank_max_us", us(row.report.rank_max_ps)},
           {"messages", row.report.messages},
           {"message_bytes", row.report.bytes},
           {"messages_per_s", messages_per_s(row)},
           {"wall_s", row.wall_s},
           {"cpu_s", row.cpu_s},
           {"peak_rss_mb", megabytes(row.peak_rss_bytes)},
           {"phases", phases(row)}};
  if (!row.report.critical_path.empty()) one["critical_path"] = path_json(row.report.critical_path);
  return one;
}

}  // namespace

Json path_json(const std::vector<sim::PathStep>& path) {
  Json list = Json::array();
  for (const sim::PathStep& step : path) {
    list.push_back({{"from", step.from},
                    {"rank", step.rank},
                    {"begin_us", us(step.begin_ps)},
                    {"end_us", us(step.end_ps)}});
    if (!step.what.empty()) list.back()["what"] = step.what;
  }
  return list;
}

void print_path(const std::vector<sim::PathStep>& path) {
  std::printf("\ncritical path:\n");
  Table table({">from us", ">to us", ">takes", "what"});
  for (std::size_t i = 0; i < path.size() && i < kPathShown; ++i) {
    const sim::PathStep& step = path[i];
    table.add({fmt::format("{:.3f}", us(step.begin_ps)), fmt::format("{:.3f}", us(step.end_ps)),
               fmt::format("{:.3f}", us(step.end_ps - step.begin_ps)),
               (step.from == step.rank ? fmt::format("rank {}", step.rank)
                                       : fmt::format("{} -> {}", step.from, step.rank)) +
                   (step.what.empty() ? "" : fmt::format(": {}", step.what))});
  }
  std::printf("%s", table.text().c_str());
  if (path.size() > kPathShown) {
    std::printf("... %zu more; --json prints all\n", path.size() - kPathShown);
  }
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

Failure failed_row(const std::string& row, const Failure& why, std::size_t done, std::size_t rows) {
  return Failure(fmt::format("{}: {}; {} of {} rows are done", row, why.what(), done, rows),
                 why.exit_status);
}

SimOutput::SimOutput(Form form, SimCommon common) : form_(form), common_(std::move(common)) {}

// Not before a row can be: where none can, nothing is printed.
void SimOutput::print_csv_head() {
  std::printf(
      "collective,machine,algorithm,ranks,nodes,bytes,latency_us,messages,message_bytes,"
      "send_us,wait_us,copy_us,reduce_us,messages_per_s,wall_s,cpu_s,peak_rss_mb\n");
}

void SimOutput::add(const SimRow& row) {
  if (form_ == Form::kCsv && rows_.empty()) print_csv_head();
  rows_.push_back(row);
  if (form_ != Form::kCsv) return;
  const sim::Report& report = row.report;
  const auto activity = [&](std::size_t i) { return per_rank_us(row, report.activity_ps.at(i)); };
  std::printf("%s\n",
              fmt::format("{},{},\"{}\",{},{},{},{},{},{},{},{},{},{},{:.0f},{:.3f},{:.3f},{:.1f}",
                          common_.collective, common_.machine, row.algorithm, row.ranks, row.nodes,
                          row.bytes, us(report.latency_ps), report.messages, report.bytes,
                          activity(0), activity(1), activity(2), activity(3), messages_per_s(row),
                          row.wall_s, row.cpu_s, megabytes(row.peak_rss_bytes))
                  .c_str());
  std::fflush(stdout);
}

void SimOutput::end() {
  if (form_ == Form::kCsv && rows_.empty()) print_csv_head();
  if (form_ == Form::kJson) print_json();
  if (form_ == Form::kText) print_text();
}

// One call is an object, a sweep one with rows.
void SimOutput::print_json() const {
  Json json{{"collective", common_.collective},
            {"machine", common_.machine},
            {"skew_us", common_.skew_us},
            {"seed", common_.seed}};
  if (!common_.sweep && rows_.size() == 1) {
    json.update(json_of(rows_.front()));
  } else {
    json["rows"] = Json::array();
    for (const SimRow& row : rows_) json["rows"].push_back(json_of(row));
  }
  std::printf("%s\n", json.dump(2).c_str());
}

void SimOutput::print_text() const {
  std::printf("%s on machine %s\n", common_.collective.c_str(), common_.machine.c_str());
  Table table({">ranks", ">nodes", ">bytes", "algorithm", ">latency us", ">messages",
               ">message bytes", ">send us", ">wait us", ">copy us", ">reduce us", ">wall s"});
  for (const SimRow& row : rows_) {
    const auto activity = [&](std::size_t i) {
      return short_number(per_rank_us(row, row.report.activity_ps.at(i)));
    };
    table.add({std::to_string(row.ranks), std::to_string(row.nodes), short_bytes(row.bytes),
               row.algorithm, fmt::format("{:.3f}", us(row.report.latency_ps)),
               std::to_string(row.report.messages), std::to_string(row.report.bytes), activity(0),
               activity(1), activity(2), activity(3), fmt::format("{:.3f}", row.wall_s)});
  }
  std::printf("%s", table.text().c_str());
  if (rows_.size() == 1 && !rows_.front().report.critical_path.empty()) {
    print_path(rows_.front().report.critical_path);
  }
}

Timeline::Timeline(const std::string& path) : path_(path), file_(path) {
  if (!file_) fail("cannot write {}: {}; choose another file", path, std::strerror(errno));
  file_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
}

void Timeline::add(const sim::Span& span) {
  const std::string peer = span.peer < 0 ? "" : fmt::format(",\"peer\":{}", span.peer);
  add(
      fmt::format("{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
                  "\"args\":{{\"bytes\":{}{}}}}}",
                  op_name(span.op), span.rank, span.strand, us(span.begin_ps),
                  us(span.end_ps - span.begin_ps), span.bytes, peer));
}

void Timeline::add(const sim::StepSpan& span) {
  add(fmt::format(
      "{{\"name\":{},\"ph\":\"X\",\"pid\":{},\"tid\":\"program\",\"ts\":{},\"dur\":{}}}",
      Json(span.what).dump(), span.rank, us(span.begin_ps), us(span.end_ps - span.begin_ps)));
}

void Timeline::add(const std::string& event) {
  file_ << (first_ ? "\n" : ",\n") << event;
  first_ = false;
}

void Timeline::end() {
  file_ << "\n]}\n";
  file_.close();
  if (!file_) fail("writing {} failed; is the disk full?", path_);
}

}  // namespace carillon::cli
