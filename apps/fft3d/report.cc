// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <cstdarg>
#include <cstdio>

namespace fft3d {

namespace {

struct FigureRow {
  Figure figure;
  const char* name;
  const char* title;
};

constexpr FigureRow kRows[] = {
    {kTotal, "total", "total"},
    {kForward, "forward", "  forward"},
    {kBackward, "backward", "  backward"},
    {kTransform, "transform", "transform"},
    {kPack, "pack", "pack"},
    {kExchange, "exchange", "exchange, wait"},
    {kUnpack, "unpack", "unpack"},
    {kAlone, "exchange_alone", "exchange alone"},
};

[[gnu::format(printf, 1, 2)]] std::string format(const char* how, ...) {
  char line[256];
  va_list values;
  va_start(values, how);
  std::vsnprintf(line, sizeof line, how, values);
  va_end(values);
  return line;
}

// Rows that this run has nothing to say about.
bool is_shown(const Options& options, const MethodResult& row, Figure figure) {
  if (figure == kForward) return options.forward;
  if (figure == kBackward) return options.backward;
  return figure != kAlone || row.overlap.has_value();
}

const char* direction_of(const Options& options) {
  if (!options.backward) return "forward";
  return options.forward ? "both" : "backward";
}

const char* field_of(const Options& options) { return options.complex_field ? "complex" : "real"; }
const char* precision_of(const Options& options) {
  return options.single_precision ? "single" : "double";
}
const char* method_name(const Method& method) {
  return method.overlapped ? "overlapped" : "blocking";
}

std::string title(const Options& options) {
  const Shape& n = options.points;
  const ProcessGrid& grid = options.process_grid;
  const char* direction =
      options.forward && options.backward ? "forward and backward" : direction_of(options);
  return format("fft3d %ldx%ldx%ld, %s, %s precision, %s of %dx%d ranks, %s, %d iterations\n", n[0],
                n[1], n[2], field_of(options), precision_of(options),
                options.pencil ? "pencils" : "slabs", grid[0], grid[1], direction,
                options.iterations);
}

std::string seconds_of(const Figures& figures, const MethodResult& method, const Options& options) {
  std::string text;
  for (const FigureRow& row : kRows) {
    if (!is_shown(options, method, row.figure)) continue;
    text +=
        format("%s\"%s_us\": %.3f", text.empty() ? "" : ", ", row.name, figures[row.figure] * 1e6);
  }
  return text;
}

}  // namespace

std::string text_report(const Options& options, const Result& result) {
  std::string text = title(options) + format("%-16s", "");
  for (const MethodResult& row : result.methods) text += format("%28s", method_name(row.method));
  text += format("\n%-16s", "milliseconds");
  for (size_t i = 0; i < result.methods.size(); ++i) text += format("%14s%14s", "slowest", "mean");
  text += '\n';
  for (const FigureRow& figure : kRows) {
    std::string line = format("%-16s", figure.title);
    bool shown = false;
    for (const MethodResult& row : result.methods) {
      const bool here = is_shown(options, row, figure.figure);
      shown = shown || here;
      line += here ? format("%14.3f%14.3f", row.slowest_s[figure.figure] * 1e3,
                            row.mean_s[figure.figure] * 1e3)
                   : format("%28s", "");
    }
    if (shown) text += line + "\n";
  }
  for (const MethodResult& row : result.methods) {
    if (!row.method.overlapped) continue;
    text += format("overlapped: %d slices, %d under way, %d tests", row.method.slices,
                   row.method.window, row.method.tests);
    if (row.overlap) {
      text += format("; of the exchange %.1f %% is hidden, %.1f %% could be", *row.overlap * 100,
                     *row.overlap_limit * 100);
    }
    text += '\n';
  }
  if (result.ratio)
    text += format("blocking takes %.3f times as long as overlapped\n", *result.ratio);
  if (result.verdict) {
    const Verdict& verdict = *result.verdict;
    text += format("check: %s; largest errors forward %.2g, backward %.2g, allowed %.2g\n",
                   verdict.passed() ? "right" : "WRONG", verdict.forward_error,
                   verdict.backward_error, verdict.bound);
  }
  return text;
}

std::string json_report(const Options& options, const Result& result) {
  const Shape& n = options.points;
  const ProcessGrid& grid = options.process_grid;
  std::string text =
      format("{\"grid\": [%ld, %ld, %ld], \"ranks\": %d, ", n[0], n[1], n[2], grid[0] * grid[1]);
  text += format("\"decomposition\": \"%s\", \"process_grid\": [%d, %d], ",
                 options.pencil ? "pencil" : "slab", grid[0], grid[1]);
  text += format("\"field\": \"%s\", \"precision\": \"%s\", \"direction\": \"%s\", ",
                 field_of(options), precision_of(options), direction_of(options));
  text += format("\"alloc_mem\": %s, \"iterations\": %d, \"methods\": {",
                 options.alloc_mem ? "true" : "false", options.iterations);
  for (const MethodResult& row : result.methods) {
    if (&row != &result.methods.front()) text += ", ";
    text += format("\"%s\": {", method_name(row.method));
    if (row.method.overlapped) {
      text += format("\"slices\": %d, \"window\": %d, \"tests\": %d, ", row.method.slices,
                     row.method.window, row.method.tests);
      text += row.overlap ? format("\"overlap\": %.6f, \"overlap_limit\": %.6f, ", *row.overlap,
                                   *row.overlap_limit)
                          : "\"overlap\": null, \"overlap_limit\": null, ";
    }
    text += "\"slowest\": {" + seconds_of(row.slowest_s, row, options) + "}, ";
    text += "\"mean\": {" + seconds_of(row.mean_s, row, options) + "}}";
  }
  text += '}';
  if (result.ratio) text += format(", \"blocking_to_overlapped\": %.6f", *result.ratio);
  if (result.verdict) {
    const Verdict& verdict = *result.verdict;
    // JSON has no infinity; an error that is no number is as large as one can be.
    const auto number = [](double value) { return value < 1e300 ? value : 1e300; };
    text += format(", \"check\": {\"passed\": %s, ", verdict.passed() ? "true" : "false");
    text += format("\"forward_error\": %.6g, \"backward_error\": %.6g, \"bound\": %.6g}",
                   number(verdict.forward_error), number(verdict.backward_error), verdict.bound);
  }
  return text + "}\n";
}

}  // namespace fft3d
