// SPDX-License-Identifier: Apache-2.0
#include "tally.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <vector>

#include "call_bytes.h"
#include "process.h"
#include "stats.h"

namespace carillon::shim {
namespace {

// Programs may make communicators without end: those that come later are counted together.
constexpr std::size_t kMostNames = 256;

struct Named {
  std::string name;
  int ranks = 0;
  bool anonymous = false;  // carillon has named it
};

// By communicator, call, why it was left, and algorithm.
using TallyKey = std::tuple<int, std::size_t, Reason, std::string>;

struct Sum {
  std::uint64_t calls = 0;
  CallBytes bytes;
  TallyTime time{};
};

struct Tallies {
  std::mutex mutex;
  std::vector<Named> communicators;  // in the order of their first calls
  int anonymous = 0;                 // of them
  std::map<TallyKey, Sum> sums;
};

Tallies& tallies() {
  static Tallies& all = *new Tallies();  // never destroyed: threads may be in a call at the end
  return all;
}

// How many bytes the first character of a text in UTF-8 has; 0 if it is none.
std::size_t bytes_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool too_large = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return too_long || too_large ? 0 : bytes;
}

// Names may be in another encoding, or cut within a character; JSON is UTF-8.
void make_utf8(std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = bytes_of_character(std::string_view(text).substr(at));
    if (bytes == 0) text[at] = '?';
    at += std::max<std::size_t>(bytes, 1);
  }
}

// As the program calls it now, on one line.
Named ask_name(MPI_Comm comm, const Communicator& communicator) {
  Named named{.ranks = communicator.size};
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  host().Comm_get_name(comm, name, &length);
  if (named.ranks == 0) host().Comm_size(comm, &named.ranks);
  named.name = name;
  std::replace_if(
      named.name.begin(), named.name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; },
      ' ');
  make_utf8(named.name);
  named.anonymous = named.name.empty();
  return named;
}

// With the lock held. Adds it, if there is room for its name.
int place_of_name(Tallies& all, const Named& named) {
  const auto place = [&](const std::string& name) {
    const auto found = std::find_if(
        all.communicators.begin(), all.communicators.end(),
        [&](const Named& one) { return one.name == name && one.ranks == named.ranks; });
    return static_cast<std::size_t>(found - all.communicators.begin());
  };
  std::size_t at = place(named.name);
  if (at == all.communicators.size() && at >= kMostNames) at = place("others");
  if (at == all.communicators.size()) {
    all.communicators.push_back(named);
    if (at >= kMostNames) all.communicators.back().name = "others";
  }
  return static_cast<int>(at);
}

// Communicators of one name and size are one. Those without a name have numbers, if carillon knows
// them apart.
int find_place(MPI_Comm comm, Communicator& communicator) {
  const bool known = communicator.size > 0;
  Named named = ask_name(comm, communicator);
  Tallies& all = tallies();
  const std::lock_guard lock(all.mutex);
  if (known && communicator.tallied_as >= 0) {
    const Named& last = all.communicators[static_cast<std::size_t>(communicator.tallied_as)];
    if (named.anonymous ? last.anonymous : last.name == named.name) return communicator.tallied_as;
  }
  if (named.anonymous)
    named.name = known ? "unnamed " + std::to_string(++all.anonymous) : "unnamed";
  const int place = place_of_name(all, named);
  if (known) communicator.tallied_as = place;
  return place;
}

void add(const TallyKey& key, const CallBytes& bytes, TallyTime time) {
  Tallies& all = tallies();
  const std::lock_guard lock(all.mutex);
  Sum& sum = all.sums[key];
  ++sum.calls;
  sum.bytes.in += bytes.in;
  sum.bytes.out += bytes.out;
  sum.time += time;
}

// Where nobody has anything, carillon does nothing.
bool is_empty(Collective collective, const CallBytes& bytes) {
  const Kind kind = rule_of(collective).kind;
  const bool by_bytes =
      kind == Kind::kData || kind == Kind::kReduction || kind == Kind::kReduceScatter;
  return by_bytes && bytes.in == 0 && bytes.out == 0;
}

std::string how_of(const TallyKey& key) {
  const auto& [communicator, call, left, algorithm] = key;
  if (left != Reason::kNone) return std::string("left: ") + text_of(left);
  return algorithm.empty() ? "nothing to move" : algorithm;
}

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

std::int64_t ns_of(TallyTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

void tally_call(std::size_t called, const Call& call, Communicator& communicator, Reason left,
                TallyTime time) {
  const auto collective = static_cast<Collective>(called % kCollectives);
  const CallBytes bytes = bytes_of(collective, call, communicator, left == Reason::kNone);
  const bool names_algorithm = left == Reason::kNone && !is_empty(collective, bytes);
  const char* const algorithm = names_algorithm ? crl_team_last_algorithm(communicator.team) : "";
  add({find_place(call.comm, communicator), called, left, algorithm}, bytes, time);
}

void tally_known(const Call& call, Communicator& communicator, Flight* flight) {
  const auto collective = static_cast<Collective>(flight->counted % kCollectives);
  const CallBytes bytes = bytes_of(collective, call, communicator, true);
  flight->tally = {
      .place = find_place(call.comm, communicator), .in_bytes = bytes.in, .out_bytes = bytes.out};
}

void tally_start(Flight* flight, TallyTime time) {
  flight->tally.time = time;
  flight->tally.algorithm = "";
  if (flight->request == nullptr) return;
  flight->tally.algorithm = crl_request_algorithm(flight->request);
  if (flight->tally.algorithm == nullptr) flight->held = Flight::kUnnamed;
}

void tally_end(const Flight& flight, Reason left, TallyTime time) {
  const Flight::Tally& tally = flight.tally;
  const bool named = left == Reason::kNone && tally.algorithm != nullptr;
  add({tally.place, flight.counted, left, named ? tally.algorithm : ""},
      {tally.in_bytes, tally.out_bytes}, tally.time + time);
}

std::string tally_text() {
  Tallies& all = tallies();
  const std::lock_guard lock(all.mutex);
  if (all.sums.empty()) return {};
  char line[512];
  std::snprintf(line, sizeof(line), "\n  %-30s%10s%14s%14s%12s  %s\n", "on each communicator",
                "calls", "bytes in", "bytes out", "time ms", "how");
  std::string text = line;
  int last = -1;
  for (const auto& [key, sum] : all.sums) {
    const int place = std::get<0>(key);
    if (place != last) {
      const Named& on = all.communicators[static_cast<std::size_t>(place)];
      text += "  " + on.name + ", " + std::to_string(on.ranks) +
              (on.ranks == 1 ? " rank\n" : " ranks\n");
      last = place;
    }
    constexpr double kNsPerMs = 1e6;
    std::snprintf(line, sizeof(line), "    %-28s%10llu%14lld%14lld%12.3f  %s\n",
                  call_name(std::get<1>(key)).c_str(), static_cast<unsigned long long>(sum.calls),
                  static_cast<long long>(sum.bytes.in), static_cast<long long>(sum.bytes.out),
                  static_cast<double>(ns_of(sum.time)) / kNsPerMs, how_of(key).c_str());
    text += line;
  }
  return text;
}

std::string tally_json(const char* separator) {
  Tallies& all = tallies();
  const std::lock_guard lock(all.mutex);
  std::string text;
  for (const auto& [key, sum] : all.sums) {
    const auto& [place, call, left, algorithm] = key;
    const Named& on = all.communicators[static_cast<std::size_t>(place)];
    if (!text.empty()) text += separator;
    text += R"({"communicator":)" + quoted(on.name) + R"(,"ranks":)" + std::to_string(on.ranks) +
            R"(,"collective":")" + call_name(call) + R"(","calls":)" + std::to_string(sum.calls) +
            R"(,"bytes_in":)" + std::to_string(sum.bytes.in) + R"(,"bytes_out":)" +
            std::to_string(sum.bytes.out) + R"(,"time_ns":)" + std::to_string(ns_of(sum.time)) +
            R"(,"algorithm":)" + (algorithm.empty() ? "null" : quoted(algorithm)) + R"(,"left":)" +
            (left == Reason::kNone ? "null" : quoted(text_of(left))) + "}";
  }
  return text;
}

}  // namespace carillon::shim
