// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/whole_file.h"
#include "program/text.h"

namespace carillon::program {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr std::uint32_t kNobody = UINT32_MAX;

using Words = std::vector<std::string_view>;

// Up to a "#".
Words words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  Words words;
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

bool parse_number(std::string_view text, std::int64_t max, std::int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 0 && *value <= max;
}

std::string quoted(std::string_view word) { return "\"" + std::string(word) + "\""; }

// Calls body(item) for each part of "a,b,c" until it says false.
template <typename Body>
bool for_each_item(std::string_view list, Body body) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (!body(list.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

// "4-14:2", ranks below `ranks`.
bool parse_range(std::string_view text, Rank ranks, std::vector<Rank>* out) {
  std::int64_t first = 0, last = 0, step = 1;
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    if (!parse_number(text.substr(colon + 1), ranks, &step) || step < 1) return false;
    text = text.substr(0, colon);
  }
  const std::size_t dash = text.find('-');
  if (!parse_number(text.substr(0, dash), ranks - 1, &first)) return false;
  last = first;
  if (dash != std::string_view::npos && !parse_number(text.substr(dash + 1), ranks - 1, &last)) {
    return false;
  }
  if (last < first) return false;
  for (std::int64_t rank = first; rank <= last; rank += step) {
    out->push_back(static_cast<Rank>(rank));
  }
  return true;
}

bool parse_ranks(std::string_view text, Rank ranks, std::vector<Rank>* out) {
  if (text == "all") text = std::string_view();
  if (text.empty()) {
    out->resize(static_cast<std::size_t>(ranks));
    std::iota(out->begin(), out->end(), 0);
    return true;
  }
  if (!for_each_item(text, [&](std::string_view item) {
        return out->size() <= static_cast<std::size_t>(ranks) && parse_range(item, ranks, out);
      })) {
    return false;
  }
  std::vector<Rank> sorted = *out;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

// "8x3,0,16", at most `most` values.
bool parse_values(std::string_view text, Rank most, std::vector<std::int64_t>* out) {
  std::int64_t sum = 0;
  return for_each_item(text, [&](std::string_view item) {
    std::int64_t value = 0, times = 1;
    const std::size_t x = item.find('x');
    if (!parse_number(item.substr(0, x), kMaxBytes, &value)) return false;
    if (x != std::string_view::npos && !parse_number(item.substr(x + 1), most, &times)) {
      return false;
    }
    if (out->size() + static_cast<std::size_t>(times) > static_cast<std::size_t>(most)) {
      return false;
    }
    if (times > 0 && value > (kMaxBytes - sum) / times) return false;
    sum += value * times;
    out->insert(out->end(), static_cast<std::size_t>(times), value);
    return true;
  });
}

std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& bytes) {
  std::vector<std::int64_t> offsets(bytes.size());
  std::exclusive_scan(bytes.begin(), bytes.end(), offsets.begin(), std::int64_t{0});
  return offsets;
}

class Parser {
 public:
  explicit Parser(std::string source) { program_.source = std::move(source); }

  Result<Program> parse(std::string_view text) {
    for (std::size_t at = 0; at < text.size() && status_.ok();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      ++line_;
      if (const Words words = words_of(text.substr(at, end - at)); !words.empty()) take(words);
      at = end + 1;
    }
    if (status_.ok()) end_body();
    if (status_.ok()) check_ranks();
    if (!status_.ok()) return status_;
    return std::move(program_);
  }

 private:
  using Handler = void (Parser::*)(const Words& words);
  struct Row {
    std::size_t min_words, max_words;
    Handler handler;
    bool is_step;
    const char* form;
  };

  void fail(const std::string& what) { fail_at(line_, what); }
  void fail_at(std::int32_t line, const std::string& what) {
    if (status_.ok()) status_ = program_.error(line, what);
  }
  bool number(std::string_view text, std::int64_t min, std::int64_t max, std::string_view what,
              std::int64_t* value) {
    if (parse_number(text, max, value) && *value >= min) return true;
    fail(std::string(what) + " " + quoted(text) + ": from " + std::to_string(min) + " to " +
         std::to_string(max));
    return false;
  }

  void take(const Words& words) {
    if (!has_first_line_) {
      if (words.size() != 2 || std::string(words[0]) + " " + std::string(words[1]) != kFirstLine) {
        return fail("not a program: the first line is " + quoted(kFirstLine));
      }
      has_first_line_ = true;
      return;
    }
    static const std::unordered_map<std::string_view, Row> kRows{
        {"ranks", {2, 2, &Parser::take_ranks, false, "ranks N"}},
        {"team", {3, 3, &Parser::take_team, false, "team NAME 0-3,8"}},
        {"teams", {4, 4, &Parser::take_teams, false, "teams NAME blocks|stride N"}},
        {"call", {3, 99, &Parser::take_call, false, "call NAME COLLECTIVE count=N ..."}},
        {"rank", {2, 2, &Parser::take_rank, false, "rank 0-3, or rank all"}},
        {"compute", {2, 2, &Parser::take_compute, true, "compute NS"}},
        {"do", {2, 2, &Parser::take_do, true, "do CALL"}},
        {"start", {2, 4, &Parser::take_start, true, "start CALL [as ID]"}},
        {"wait", {2, 2, &Parser::take_wait, true, "wait ID"}},
        {"other", {3, 3, &Parser::take_other, true, "other NAME NS"}},
        {"repeat", {2, 2, &Parser::take_repeat, true, "repeat N"}},
        {"end", {1, 1, &Parser::take_end, true, "end"}},
    };
    const auto row = kRows.find(words[0]);
    if (row == kRows.end()) {
      return fail("there is no " + quoted(words[0]) +
                  "; a line begins with ranks, team, teams, call, rank, compute, do, start, wait, "
                  "other, repeat or end");
    }
    const Row& rule = row->second;
    if (words.size() < rule.min_words || words.size() > rule.max_words) {
      return fail("the line is " + quoted(rule.form));
    }
    if (program_.ranks == 0 && words[0] != "ranks") return fail("\"ranks N\" comes first");
    if (rule.is_step && !in_body_) return fail("a step before the first \"rank\"");
    (this->*rule.handler)(words);
  }

  void take_ranks(const Words& words) {
    std::int64_t ranks = 0;
    if (program_.ranks != 0) return fail("the ranks again");
    if (!number(words[1], 1, kMaxRanks, "ranks", &ranks)) return;
    program_.ranks = static_cast<Rank>(ranks);
    Teams world{.name = "world"};
    parse_ranks("all", program_.ranks, &world.members);
    add_teams(std::move(world));
    program_.body_of.assign(static_cast<std::size_t>(ranks), kNobody);
  }

  void add_teams(Teams teams) {
    const auto index = static_cast<std::uint32_t>(program_.teams.size());
    if (!teams_.try_emplace(teams.name, index).second) {
      return fail("team " + quoted(teams.name) + " again");
    }
    program_.teams.push_back(std::move(teams));
  }
  void take_team(const Words& words) {
    Teams teams{.name = std::string(words[1])};
    if (!parse_ranks(words[2], program_.ranks, &teams.members)) return bad_ranks(words[2]);
    add_teams(std::move(teams));
  }
  void bad_ranks(std::string_view text) {
    fail(quoted(text) + " is no list of ranks, each once, from 0 to " +
         std::to_string(program_.ranks - 1) + ", as in 0-3,8,10-14:2");
  }
  void take_teams(const Words& words) {
    Teams teams{.name = std::string(words[1])};
    std::int64_t n = 0;
    if (words[2] != "blocks" && words[2] != "stride") {
      return fail(quoted(words[2]) + ": teams are blocks or stride");
    }
    teams.kind = words[2] == "blocks" ? Teams::Kind::kBlocks : Teams::Kind::kStride;
    if (!number(words[3], 1, program_.ranks, words[2], &n)) return;
    teams.n = static_cast<Rank>(n);
    add_teams(std::move(teams));
  }

  void take_call(const Words& words) {
    Call call{.name = std::string(words[1]), .line = line_};
    if (!collective_from_name(words[2], &call.collective)) {
      return fail("there is no collective " + quoted(words[2]) + "; carillon list names them");
    }
    for (std::size_t i = 3; i < words.size() && status_.ok(); ++i) take_attribute(words[i], &call);
    if (!status_.ok()) return;
    if (call.count > kMaxBytes / call.element_bytes) {
      return fail("a block of more than " + std::to_string(kMaxBytes) + " bytes");
    }
    const bool tables = !call.send_bytes.empty() && !call.recv_bytes.empty();
    if (tables != has_tables(call.collective)) {
      return fail(std::string(words[2]) +
                  (tables ? " has no send= and recv=" : " has send= and recv="));
    }
    if (sends_by_tables(call.collective) && (call.count != 0 || call.element_bytes != 1)) {
      return fail("tables are in bytes: no count and no element");
    }
    if (call.root != 0 && !has_root(call.collective)) {
      return fail(std::string(words[2]) + " has no root");
    }
    call.send_offsets = offsets_of(call.send_bytes);
    call.recv_offsets = offsets_of(call.recv_bytes);
    const auto index = static_cast<std::uint32_t>(program_.calls.size());
    if (!calls_.try_emplace(call.name, index).second) {
      return fail("call " + quoted(call.name) + " again");
    }
    program_.calls.push_back(std::move(call));
  }

  void take_attribute(std::string_view word, Call* call) {
    const std::size_t sign = word.find('=');
    const std::string_view name = word.substr(0, sign);
    const std::string_view value = sign == std::string_view::npos ? "" : word.substr(sign + 1);
    std::int64_t n = 0;
    if (name == "team") {
      const auto row = teams_.find(std::string(value));
      if (row == teams_.end()) return fail("there is no team " + quoted(value));
      call->teams = row->second;
    } else if (name == "root") {
      if (number(value, 0, program_.ranks - 1, name, &n)) call->root = static_cast<Rank>(n);
    } else if (name == "count") {
      if (number(value, 0, kMaxBytes, name, &n)) call->count = n;
    } else if (name == "element") {
      if (number(value, 1, kMaxElementBytes, name, &n))
        call->element_bytes = static_cast<std::int32_t>(n);
    } else if (name == "send" || name == "recv") {
      auto& bytes = name == "send" ? call->send_bytes : call->recv_bytes;
      if (!bytes.empty() || !parse_values(value, program_.ranks, &bytes)) {
        fail(quoted(word) + " is no table of bytes, one for each member, as in 8x3,0,16");
      }
    } else if (word == "ordered") {
      call->commutative = false;
    } else if (word == "in_place") {
      call->in_place = true;
    } else {
      fail("a call has no " + quoted(word) +
           "; it may have team=, root=, count=, element=, send=, recv=, ordered and in_place");
    }
  }

  void take_rank(const Words& words) {
    end_body();
    std::vector<Rank> ranks;
    if (!parse_ranks(words[1], program_.ranks, &ranks)) return bad_ranks(words[1]);
    for (const Rank rank : ranks) {
      std::uint32_t& body = program_.body_of[static_cast<std::size_t>(rank)];
      if (body != kNobody) return fail("rank " + std::to_string(rank) + " again");
      body = static_cast<std::uint32_t>(program_.bodies.size());
    }
    program_.bodies.emplace_back();
    in_body_ = true;
    slots_.clear();
  }

  void add(Step step) {
    step.line = line_;
    program_.bodies.back().steps.push_back(step);
  }
  // Something begins to be in flight, or ends to be.
  void change(std::uint32_t slot) {
    if (loops_.empty()) return;
    std::set<std::uint32_t>& changed = loops_.back().changed;
    if (!changed.insert(slot).second) changed.erase(slot);
  }

  bool find_call(std::string_view name, std::uint32_t* call) {
    const auto row = calls_.find(std::string(name));
    if (row == calls_.end()) {
      fail("there is no call " + quoted(name));
      return false;
    }
    *call = row->second;
    return true;
  }
  void take_compute(const Words& words) {
    Step step{.kind = StepKind::kCompute};
    if (number(words[1], 0, kMaxNs, "ns", &step.value)) add(step);
  }
  void take_do(const Words& words) {
    Step step{.kind = StepKind::kDo};
    if (find_call(words[1], &step.call)) add(step);
  }
  void take_start(const Words& words) {
    Step step{.kind = StepKind::kStart};
    if (words.size() == 3 || (words.size() == 4 && words[2] != "as")) {
      return fail("the line is \"start CALL [as ID]\"");
    }
    if (!find_call(words[1], &step.call)) return;
    const std::string id(words.back());
    std::vector<std::string>& names = program_.bodies.back().slots;
    const auto [row, is_new] = slots_.try_emplace(id, static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(id);
    step.slot = row->second;
    const auto [other, fits] = flying_.try_emplace(step.slot, line_);
    if (!fits) {
      return fail(quoted(id) + " is in flight since line " + std::to_string(other->second));
    }
    change(step.slot);
    add(step);
  }
  void take_wait(const Words& words) {
    const auto row = slots_.find(std::string(words[1]));
    if (row == slots_.end() || flying_.erase(row->second) == 0) {
      return fail("a wait for " + quoted(words[1]) + ", which has not been started");
    }
    change(row->second);
    add({.kind = StepKind::kWait, .slot = row->second});
  }
  void take_other(const Words& words) {
    Step step{.kind = StepKind::kOther};
    if (!number(words[2], 0, kMaxNs, "ns", &step.value)) return;
    const auto [row, is_new] = others_.try_emplace(
        std::string(words[1]), static_cast<std::uint32_t>(program_.others.size()));
    if (is_new) program_.others.emplace_back(words[1]);
    step.call = row->second;
    add(step);
  }
  void take_repeat(const Words& words) {
    Step step{.kind = StepKind::kRepeat};
    if (!number(words[1], 0, kMaxNs, "repeat", &step.value)) return;
    loops_.push_back({.begin = program_.bodies.back().steps.size(), .changed = {}});
    add(step);
  }
  void take_end(const Words&) {
    if (loops_.empty()) return fail("an end without a repeat");
    const auto [begin, changed] = std::move(loops_.back());
    loops_.pop_back();
    std::vector<Step>& steps = program_.bodies.back().steps;
    if (!changed.empty()) {
      return fail("the repeat of line " + std::to_string(steps[begin].line) +
                  " must wait for as much as it starts");
    }
    steps[begin].end = steps.size();
    add({.kind = StepKind::kEnd, .end = begin});
  }

  void end_body() {
    if (!in_body_) return;
    if (!loops_.empty()) {
      return fail_at(program_.bodies.back().steps[loops_.back().begin].line,
                     "a repeat without an end");
    }
    if (!flying_.empty()) {
      fail_at(
          flying_.begin()->second,
          quoted(program_.bodies.back().slots[flying_.begin()->first]) + " is never waited for");
    }
  }

  // That every rank has a body, and that its calls are possible for it.
  void check_ranks() {
    if (!has_first_line_) return fail_at(1, "an empty file");
    if (program_.ranks == 0) return fail("\"ranks N\" is missing");
    const auto missing = std::find(program_.body_of.begin(), program_.body_of.end(), kNobody);
    if (missing != program_.body_of.end()) {
      return fail("rank " + std::to_string(missing - program_.body_of.begin()) + " is missing");
    }
    const TeamTable teams(program_);
    std::vector<std::map<std::uint32_t, std::int32_t>> used;  // calls of each body, and a line
    for (const Body& body : program_.bodies) {
      used.emplace_back();
      for (const Step& step : body.steps) {
        if (step.kind == StepKind::kDo || step.kind == StepKind::kStart) {
          used.back().try_emplace(step.call, step.line);
        }
      }
    }
    for (Rank rank = 0; rank < program_.ranks && status_.ok(); ++rank) {
      for (const auto& [call, line] : used[program_.body_of[static_cast<std::size_t>(rank)]]) {
        check_call(teams, rank, program_.calls[call], line);
      }
    }
  }

  void check_call(const TeamTable& teams, Rank rank, const Call& call, std::int32_t line) {
    const TeamTable::Place place = teams.find(call.teams, rank);
    const std::string who = "rank " + std::to_string(rank);
    if (place.member < 0) return fail_at(line, who + " is not in team " + teams.name(place.team));
    const std::size_t size = teams.members(place.team).size();
    const std::string team = "team " + teams.name(place.team) + " of " + std::to_string(size);
    if (static_cast<std::size_t>(call.root) >= size) {
      return fail_at(call.line, "root " + std::to_string(call.root) + " is not in " + team);
    }
    if (has_tables(call.collective) &&
        (call.send_bytes.size() != size || call.recv_bytes.size() != size)) {
      return fail_at(call.line, "tables of " + std::to_string(call.send_bytes.size()) + " and " +
                                    std::to_string(call.recv_bytes.size()) + " members, for " +
                                    team);
    }
    const Shared shared{.collective = call.collective,
                        .ranks = static_cast<Rank>(size),
                        .root = call.root,
                        .count = call.count,
                        .element_bytes = call.element_bytes};
    if (call.in_place && !in_place_allowed(shared, place.member)) {
      fail_at(line, who + " cannot do call " + call.name + " in place");
    }
  }

  struct Loop {
    std::size_t begin = 0;
    std::set<std::uint32_t> changed;  // slots in flight now, or at its begin, and not both
  };
  Program program_;
  Status status_;
  std::int32_t line_ = 0;
  bool has_first_line_ = false, in_body_ = false;
  std::unordered_map<std::string, std::uint32_t> teams_, calls_, others_;
  std::unordered_map<std::string, std::uint32_t> slots_;  // of the body
  std::map<std::uint32_t, std::int32_t> flying_;          // slot to the line of its start
  std::vector<Loop> loops_;
};

}  // namespace

Result<Program> parse(std::string_view text, const std::string& source) {
  return Parser(source).parse(text);
}

Result<Program> load(const std::string& path) {
  const Result<std::string> text = read_whole_file(path);
  if (!text.ok()) return text.status();
  return parse(text.value(), path);
}

}  // namespace carillon::program
