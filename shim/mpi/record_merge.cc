// SPDX-License-Identifier: Apache-2.0
#include "record_merge.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "process.h"
#include "program/text.h"

namespace carillon::shim {
namespace {

constexpr int kTag = 1;
constexpr std::int64_t kPiece = 1 << 20;
constexpr char kRefused = '!';  // instead of names: nothing will be written

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// "call ? allreduce ..." of all ranks, each with a name of its own: allreduce1 and so on.
class Names {
 public:
  explicit Names(std::string* text) : text_(*text) {}
  std::string of(const std::string& line) {
    constexpr std::size_t kWord = sizeof("call ? ") - 1;
    const auto [row, is_new] = names_.try_emplace(line);
    if (is_new) {
      const std::string collective = line.substr(kWord, line.find(' ', kWord) - kWord);
      row->second = collective + std::to_string(++counts_[collective]);
      text_ += "call " + row->second + " " + line.substr(kWord) + "\n";
    }
    return row->second;
  }

 private:
  std::string& text_;
  std::unordered_map<std::string, std::string> names_;
  std::unordered_map<std::string, int> counts_;
};

std::string rank_head(int rank) {
  const Rank one = rank;
  return program::rank_line({&one, 1}) + "\n";
}

// A file that is whole, or not there.
class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {
    if (file_ == nullptr) error_ = errno;
  }
  void write(const std::string& text) {
    if (error_ != 0 || std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return;
    error_ = errno;
  }
  [[nodiscard]] bool ok() const { return error_ == 0; }
  void close() {
    const bool opened = file_ != nullptr;
    if (opened && std::fclose(file_) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0) return;
    say("the recording %s cannot be written: %s; choose another file", path_.c_str(),
        std::strerror(error_));
    std::error_code ignored;
    if (opened && std::filesystem::is_regular_file(path_, ignored))
      std::filesystem::remove(path_, ignored);
  }

 private:
  std::string path_;
  std::FILE* file_ = std::fopen(path_.c_str(), "w");
  int error_ = 0;
};

}  // namespace

std::string Definitions::add_team(const std::vector<Rank>& ranks, int world_size) {
  constexpr std::size_t kShort = 24;
  std::vector<Rank> world(static_cast<std::size_t>(world_size));
  for (std::size_t i = 0; i < world.size(); ++i) world[i] = static_cast<Rank>(i);
  if (ranks == world) return "world";
  program::Teams team{.name = program::ranks_text(ranks), .members = ranks};
  if (team.name.size() > kShort) {
    char name[sizeof("team-0123456789abcdef")];
    std::snprintf(name, sizeof(name), "team-%016zx", std::hash<std::string>()(team.name));
    team.name = name;
  }
  const std::string line = program::teams_line(team) + "\n";
  if (teams.find(line) == std::string::npos) teams += line;
  return team.name;
}

void Definitions::add_call(const program::Call& call, const std::string& team) {
  program::Call named = call;
  named.name = "?";
  calls.push_back(program::call_line(named, team));
}

void Merge::send(const std::string& text, int to) const {
  const auto length = static_cast<std::int64_t>(text.size());
  host().Send(&length, sizeof(length), g_host.byte, to, kTag, comm_);
  for (std::int64_t at = 0; at < length; at += kPiece) {
    host().Send(text.data() + at, static_cast<int>(std::min(kPiece, length - at)), g_host.byte, to,
                kTag, comm_);
  }
}

std::string Merge::receive(int from) const {
  std::int64_t length = 0;
  host().Recv(&length, sizeof(length), g_host.byte, from, kTag, comm_, MPI_STATUS_IGNORE);
  std::string text(static_cast<std::size_t>(length), '\0');
  for (std::int64_t at = 0; at < length; at += kPiece) {
    host().Recv(text.data() + at, static_cast<int>(std::min(kPiece, length - at)), g_host.byte,
                from, kTag, comm_, MPI_STATUS_IGNORE);
  }
  return text;
}

void Merge::run(const Definitions& own, const std::string& error, std::vector<std::string>* names,
                const std::function<std::string()>& steps) const {
  if (rank_ == 0) return lead(own, error, names, steps);
  send(error, 0);
  send(own.teams, 0);
  send(joined(own.calls), 0);
  const std::string answer = receive(0);
  if (!answer.empty() && answer.front() == kRefused) return;
  *names = lines_of(answer);
  for (std::string text = steps();; text = steps()) {
    send(text, 0);
    if (text.empty()) return;
  }
}

// Rank 0: names calls and teams for all, then takes the ranks' steps one rank after another.
void Merge::lead(const Definitions& own, const std::string& error, std::vector<std::string>* names,
                 const std::function<std::string()>& steps) const {
  std::string failed = error.empty() ? "" : "rank 0: " + error;
  std::string calls;
  std::set<std::string> teams;
  Names naming(&calls);
  std::vector<std::string> answers(static_cast<std::size_t>(ranks_));
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::string problem = rank == 0 ? "" : receive(rank);
    if (failed.empty() && !problem.empty())
      failed = "rank " + std::to_string(rank) + ": " + problem;
    for (std::string& line : lines_of(rank == 0 ? own.teams : receive(rank))) {
      teams.insert(std::move(line));
    }
    for (const std::string& line : rank == 0 ? own.calls : lines_of(receive(rank))) {
      answers[static_cast<std::size_t>(rank)] += naming.of(line) + "\n";
    }
  }
  if (!failed.empty()) {
    say("the program is not recorded, because of %s", failed.c_str());
    for (int rank = 1; rank < ranks_; ++rank) send(std::string(1, kRefused), rank);
    return;
  }
  Output output(file_);
  output.write(std::string(program::kFirstLine) + "\nranks " + std::to_string(ranks_) + "\n");
  for (const std::string& line : teams) output.write(line + "\n");
  output.write(calls + rank_head(0));
  *names = lines_of(answers.front());
  for (std::string text = steps(); !text.empty(); text = steps()) output.write(text);
  for (int rank = 1; rank < ranks_; ++rank) {
    send(output.ok() ? answers[static_cast<std::size_t>(rank)] : std::string(1, kRefused), rank);
    if (!output.ok()) continue;
    output.write(rank_head(rank));
    // A disk that is full now is told to the next rank; this one is heard to the end.
    for (std::string text = receive(rank); !text.empty(); text = receive(rank)) output.write(text);
  }
  output.close();
}

}  // namespace carillon::shim
