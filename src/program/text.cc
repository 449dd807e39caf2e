// SPDX-License-Identifier: Apache-2.0
#include "program/text.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace carillon::program {
namespace {

// "8x3,0,16": values, and how often each comes.
std::string values_text(std::span<const std::int64_t> values) {
  std::string text;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i + 1;
    while (end < values.size() && values[end] == values[i]) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(values[i]);
    if (end > i + 1) text += "x" + std::to_string(end - i);
    i = end;
  }
  return text;
}

std::string step_text(const Program& program, const Body& body, const Step& step) {
  const auto call = [&] { return std::string_view(program.calls[step.call].name); };
  const auto slot = [&] { return body.slots[step.slot]; };
  switch (step.kind) {
    case StepKind::kCompute: return compute_line(step.value);
    case StepKind::kDo: return do_line(call());
    case StepKind::kStart: return "start " + std::string(call()) + " as " + slot();
    case StepKind::kWait: return "wait " + slot();
    case StepKind::kOther: return other_line(program.others[step.call], step.value);
    case StepKind::kRepeat: return "repeat " + std::to_string(step.value);
    case StepKind::kEnd: return "end";
  }
  return {};
}

}  // namespace

std::string ranks_text(std::span<const Rank> ranks) {
  constexpr std::size_t kRun = 3;  // shorter ones are as long either way
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    const Rank step = end < ranks.size() ? ranks[end] - ranks[i] : 0;
    while (step > 0 && end < ranks.size() && ranks[end] - ranks[end - 1] == step) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (end - i < kRun) {
      ++i;
      continue;
    }
    text += "-" + std::to_string(ranks[end - 1]);
    if (step > 1) text += ":" + std::to_string(step);
    i = end;
  }
  return text;
}

std::string teams_line(const Teams& teams) {
  switch (teams.kind) {
    case Teams::Kind::kBlocks: return "teams " + teams.name + " blocks " + std::to_string(teams.n);
    case Teams::Kind::kStride: return "teams " + teams.name + " stride " + std::to_string(teams.n);
    case Teams::Kind::kList: break;
  }
  return "team " + teams.name + " " + ranks_text(teams.members);
}

std::string call_line(const Call& call, std::string_view teams_name) {
  std::string line = "call " + call.name + " " + std::string(collective_name(call.collective));
  if (teams_name != "world") line += " team=" + std::string(teams_name);
  if (call.root != 0) line += " root=" + std::to_string(call.root);
  if (call.count != 0) line += " count=" + std::to_string(call.count);
  if (call.element_bytes != 1) line += " element=" + std::to_string(call.element_bytes);
  if (!call.commutative) line += " ordered";
  if (call.in_place) line += " in_place";
  if (has_tables(call.collective)) {
    line += " send=" + values_text(call.send_bytes) + " recv=" + values_text(call.recv_bytes);
  }
  return line;
}

std::string rank_line(std::span<const Rank> ranks) { return "rank " + ranks_text(ranks); }
std::string compute_line(std::int64_t ns) { return "compute " + std::to_string(ns); }
std::string do_line(std::string_view call) { return "do " + std::string(call); }
std::string start_line(std::string_view call, std::string_view id) {
  return "start " + std::string(call) + " as " + std::string(id);
}
std::string wait_line(std::string_view id) { return "wait " + std::string(id); }
std::string other_line(std::string_view name, std::int64_t ns) {
  return "other " + std::string(name) + " " + std::to_string(ns);
}

std::string to_text(const Program& program) {
  std::string text(kFirstLine);
  text += "\nranks " + std::to_string(program.ranks) + "\n";
  for (std::size_t i = 1; i < program.teams.size(); ++i)
    text += teams_line(program.teams[i]) + "\n";
  for (const Call& call : program.calls) {
    text += call_line(call, program.teams[call.teams].name) + "\n";
  }
  for (std::size_t b = 0; b < program.bodies.size(); ++b) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      if (program.body_of[static_cast<std::size_t>(rank)] == b) ranks.push_back(rank);
    }
    if (ranks.empty()) continue;  // of a program on fewer ranks
    text += rank_line(ranks) + "\n";
    for (const Step& step : program.bodies[b].steps) {
      text += step_text(program, program.bodies[b], step) + "\n";
    }
  }
  return text;
}

}  // namespace carillon::program
