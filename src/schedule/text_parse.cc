// SPDX-License-Identifier: Apache-2.0
//
// The parser of the text form. Grammatical errors name the line; everything else about a schedule
// is check_schedule's and verify's to judge.
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "schedule/text.h"

namespace carillon {
namespace {

constexpr std::string_view kBlank = " \t\r";

// Takes one line apart. The first error sticks; after it everything reads as empty or 0.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) { skip(); }

  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] bool done() const { return text_.empty() || !error_.empty(); }

  void fail(const std::string& reason) {
    if (error_.empty()) error_ = reason;
    text_ = {};
  }
  // "at the end of the line" or "before `rest`".
  void expected(const std::string& what) {
    fail("expected " + what +
         (text_.empty() ? std::string(" at the end of the line")
                        : " before '" + std::string(text_.substr(0, 24)) + "'"));
  }

  // Consumes the token if it is next: a symbol, or a whole word.
  bool accept(std::string_view token) {
    if (!text_.starts_with(token)) return false;
    const bool is_word = std::isalpha(static_cast<unsigned char>(token.front())) != 0;
    if (is_word && text_.size() > token.size() && is_word_char(text_[token.size()])) return false;
    text_.remove_prefix(token.size());
    skip();
    return true;
  }
  [[nodiscard]] bool at(std::string_view token) const { return text_.starts_with(token); }
  void expect(std::string_view token) {
    if (!accept(token)) expected("'" + std::string(token) + "'");
  }

  std::string_view word() {
    std::size_t length = 0;
    while (length < text_.size() && is_word_char(text_[length])) ++length;
    const std::string_view word = text_.substr(0, length);
    text_.remove_prefix(length);
    skip();
    return word;
  }
  // Everything up to the next blank.
  std::string_view label() {
    const std::string_view word = text_.substr(0, text_.find_first_of(kBlank));
    text_.remove_prefix(word.size());
    skip();
    return word;
  }

  template <typename Int>
  Int number() {
    Int value = 0;
    const auto [end, code] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (code == std::errc::result_out_of_range) {
      fail("a number that is too large");
    } else if (code != std::errc()) {
      expected("a number");
    } else {
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      skip();
    }
    return value;
  }

 private:
  static bool is_word_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }
  void skip() {
    const std::size_t next = text_.find_first_not_of(kBlank);
    text_.remove_prefix(next == std::string_view::npos ? text_.size() : next);
  }

  std::string_view text_;
  std::string error_;
};

// "#3", "#3 by 1"
void parse_index(Line& line, Message* message) {
  line.expect("#");
  message->index = line.number<std::int32_t>();
  if (line.accept("by")) message->index_stride = line.number<std::int32_t>();
}

// Of multicast and receive.
Channel parse_group(Line& line) {
  for (const Channel group : {Channel::kTeam, Channel::kLeaders, Channel::kNodes}) {
    if (line.accept(readers_name(group))) return group;
  }
  line.expected("'team', 'leaders' or 'nodes'");
  return Channel::kTeam;
}

// Of put, signal and wait: to several ranks of a node.
bool accept_shared(Line& line, Channel* channel) {
  for (const Channel shared : {Channel::kAll, Channel::kDomain}) {
    if (!line.accept(readers_name(shared))) continue;
    *channel = shared;
    return true;
  }
  return false;
}

// "1 #3", "1 all #3", "1 team #3"; outgoing to several: "all #3", "domain #3", "team #3".
Message parse_message(Line& line, OpKind kind) {
  const bool outgoing = is_outgoing(kind);
  if (kind == OpKind::kMulticast || kind == OpKind::kReceive) {
    Message message;
    message.peer = outgoing ? -1 : line.number<Rank>();
    message.channel = parse_group(line);
    parse_index(line, &message);
    return message;
  }
  const bool queue = kind == OpKind::kSend || kind == OpKind::kRecv;
  Message message{.channel = queue ? Channel::kQueue : Channel::kPair};
  if (!queue && outgoing && accept_shared(line, &message.channel)) {
    message.peer = -1;
  } else {
    message.peer = line.number<Rank>();
    if (!queue && !outgoing) accept_shared(line, &message.channel);
  }
  parse_index(line, &message);
  return message;
}

Range parse_range(Line& line) {
  Range range;
  line.expect("[");
  range.offset = line.number<std::int64_t>();
  line.expect("+");
  range.length = line.number<std::int64_t>();
  if (line.accept("by")) range.stride = line.number<std::int64_t>();
  line.expect("]");
  return range;
}

Buffer parse_buffer(Line& line) {
  Buffer buffer;
  const bool input = line.accept("input");
  if (input || line.accept("output")) {
    buffer.space = input ? Space::kInput : Space::kOutput;
    if (line.accept("(")) {
      buffer.table = input ? Table::kSend : Table::kRecv;
      buffer.entry = line.number<std::int32_t>();
      line.expect(")");
      return buffer;
    }
  } else if (line.accept("scratch")) {
    buffer.space = Space::kScratch;
  } else if (line.accept("slot")) {
    buffer.space = Space::kSlot;
    line.expect("(");
    buffer.message = parse_message(line, OpKind::kWait);
    line.expect(")");
  } else if (line.accept("counts")) {
    buffer.space = Space::kCounts;
  } else {
    line.expected("a buffer (input, output, scratch, slot or counts)");
  }
  buffer.range = parse_range(line);
  return buffer;
}

class Parser {
 public:
  // Takes the line; an empty string, or what is wrong with it.
  std::string take(std::string_view text) {
    Line line(text);
    if (line.done() || line.at("//")) return {};
    const std::string_view verb = line.accept("}") ? "}" : line.word();
    if (verb == "schedule") {
      begin_schedule(line);
    } else if (schedules_.empty()) {
      line.fail("a schedule begins with 'schedule ranks N rank N scratch N'");
    } else if (current().learned.length != 0) {
      line.fail("nothing can follow 'learn'");
    } else if (!parse_structure(verb, line)) {
      parse_op(verb, line);
    }
    if (line.error().empty() && !line.done()) line.expected("the end of the line");
    return line.error();
  }

  std::string finish() {
    if (!schedules_.empty() && open_loop_ >= 0) return "a loop is not closed";
    return {};
  }
  std::vector<Schedule>& schedules() { return schedules_; }

 private:
  Schedule& current() { return schedules_.back(); }

  void begin_schedule(Line& line) {
    if (open_loop_ >= 0) return line.fail("a loop is not closed");
    Schedule schedule;
    line.expect("ranks");
    schedule.ranks = line.number<Rank>();
    line.expect("rank");
    schedule.rank = line.number<Rank>();
    line.expect("scratch");
    schedule.scratch_bytes = line.number<std::int64_t>();
    schedule.strands.push_back({});
    schedules_.push_back(std::move(schedule));
  }

  // What is not an op; false if the verb is none of these.
  bool parse_structure(std::string_view verb, Line& line) {
    const auto next_op = static_cast<std::uint32_t>(current().ops.size());
    if (verb == "strand") {
      if (open_loop_ >= 0) line.fail("a strand starts inside a loop");
      current().strands.push_back({.first_op = next_op});
    } else if (verb == "phase") {
      current().phases.push_back({next_op, std::string(line.label())});
      if (current().phases.back().name.empty()) line.expected("a name");
    } else if (verb == "learn") {
      if (open_loop_ >= 0) line.fail("a loop is not closed");
      line.expect("scratch");
      current().learned = parse_range(line);
      if (current().learned.length == 0) line.fail("a stage learns at least one value");
    } else if (verb == "}") {
      end_loop(line);
    } else {
      return false;
    }
    return true;
  }

  void end_loop(Line& line) {
    if (open_loop_ < 0) return line.fail("'}' without a loop");
    const auto loop = static_cast<std::size_t>(open_loop_);
    current().ops[loop].body = static_cast<std::uint32_t>(current().ops.size() - loop - 1);
    open_loop_ = -1;
  }

  void parse_op(std::string_view verb, Line& line) {
    int kind = 0;
    while (kind < kOpKinds && op_name(static_cast<OpKind>(kind)) != verb) ++kind;
    if (kind == kOpKinds) return line.fail("'" + std::string(verb) + "' is no op");
    Op op{.kind = static_cast<OpKind>(kind)};
    op.first_buffer = static_cast<std::uint32_t>(current().buffers.size());
    switch (op.kind) {
      case OpKind::kCopy:
      case OpKind::kReduce:
        op.dst_count = parse_list(line);
        line.expect("=");
        op.src_count = parse_list(line);
        break;
      case OpKind::kWait:
      case OpKind::kRecv:
      case OpKind::kReceive:
        op.message = parse_message(line, op.kind);
        op.dst_count = parse_list(line);
        break;
      case OpKind::kAggregate:
        op.message = {.channel = Channel::kLeaders, .peer = -1};
        parse_index(line, &op.message);
        op.dst_count = parse_list(line);
        line.expect("=");
        op.src_count = parse_list(line);
        break;
      case OpKind::kRepeat: begin_loop(line, &op); break;
      default:
        op.message = parse_message(line, op.kind);
        op.src_count = parse_list(line);
        break;
    }
    current().ops.push_back(op);
    ++current().strands.back().op_count;
  }

  void begin_loop(Line& line, Op* op) {
    if (open_loop_ >= 0) line.fail("a loop inside a loop");
    op->count = line.number<std::int64_t>();
    line.expect("{");
    open_loop_ = static_cast<std::int64_t>(current().ops.size());
  }

  std::uint32_t parse_list(Line& line) {
    std::uint32_t count = 0;
    while (!line.done() && !line.at("=")) {
      current().buffers.push_back(parse_buffer(line));
      ++count;
    }
    return count;
  }

  std::vector<Schedule> schedules_;
  std::int64_t open_loop_ = -1;
};

}  // namespace

Result<std::vector<Schedule>> parse_schedules(std::string_view text) {
  Parser parser;
  int number = 0;
  const auto wrong = [&](const std::string& reason) {
    return Status(Code::kInvalidArgument, "line " + std::to_string(number) + ": " + reason);
  };
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const std::string reason = parser.take(line);
    if (!reason.empty()) return wrong(reason);
  }
  const std::string reason = parser.finish();
  if (!reason.empty()) return wrong(reason);
  return std::move(parser.schedules());
}

Result<Schedule> parse_schedule(std::string_view text) {
  Result<std::vector<Schedule>> all = parse_schedules(text);
  if (!all.ok()) return all.status();
  if (all.value().size() != 1) {
    return Status(Code::kInvalidArgument,
                  std::to_string(all.value().size()) + " schedules where one is expected");
  }
  return std::move(all.value().front());
}

}  // namespace carillon
