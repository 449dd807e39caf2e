// SPDX-License-Identifier: Apache-2.0
#include "stats.h"

#include <strings.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "communicator.h"
#include "observe.h"
#include "process.h"
#include "tally.h"
#include "world.h"

namespace carillon::shim {

constinit std::atomic<std::uint64_t> g_left[kCalls][kReasons];

namespace {

// How they are told; several threads may start carillon at once.
struct Destination {
  std::mutex mutex;
  std::string path;
};
Destination& destination() {
  static Destination& one = *new Destination();
  return one;
}

// By algorithm and reason; of teams that are gone.
struct Decisions {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::uint64_t> calls;
  crl_traffic_t left{};  // of contexts that are no more
};
Decisions& decisions() {
  static Decisions& all = *new Decisions();
  return all;
}

std::uint64_t left(std::size_t collective, std::size_t reason) {
  return g_left[collective][reason].load(std::memory_order_relaxed);
}

std::string decisions_text() {
  std::string text;
  const std::lock_guard lock(decisions().mutex);
  for (const auto& [why, calls] : decisions().calls) {
    if (text.empty()) text = "  how each alltoallv was done, and why:\n";
    char line[256];
    std::snprintf(line, sizeof(line), "%12llu  %-26s%s\n", static_cast<unsigned long long>(calls),
                  why.first.c_str(), why.second.c_str());
    text += line;
  }
  return text;
}

std::string decisions_json(const char* separator) {
  std::string text;
  const std::lock_guard lock(decisions().mutex);
  for (const auto& [why, calls] : decisions().calls) {
    if (!text.empty()) text += separator;
    text += R"({"algorithm":")" + why.first + R"(","reason":")" + why.second + R"(","calls":)" +
            std::to_string(calls) + "}";
  }
  return text;
}

std::string collectives_json(const char* separator) {
  std::string text;
  for (std::size_t i = 0; i < kCalls; ++i) {
    const std::uint64_t taken = taken_calls(i);
    if (taken + left_calls(i) == 0) continue;
    if (!text.empty()) text += separator;
    text += R"({"collective":")" + call_name(i) + R"(","taken":)" + std::to_string(taken) +
            R"(,"left":{)";
    const char* inner_comma = "";
    for (std::size_t reason = 0; reason < kReasons; ++reason) {
      if (left(i, reason) == 0) continue;
      text += std::string(inner_comma) + '"' + text_of(static_cast<Reason>(reason)) +
              "\":" + std::to_string(left(i, reason));
      inner_comma = ",";
    }
    text += "}}";
  }
  return text;
}

void add(crl_traffic_t& sum, const crl_traffic_t& traffic) {
  sum.in_place_bytes += traffic.in_place_bytes;
  sum.lent_bytes += traffic.lent_bytes;
  sum.copied_bytes += traffic.copied_bytes;
  sum.sent_in_place_bytes += traffic.sent_in_place_bytes;
  sum.sent_copied_bytes += traffic.sent_copied_bytes;
  sum.uncached_bytes += traffic.uncached_bytes;
  sum.handed_bytes += traffic.handed_bytes;
}

crl_traffic_t traffic_of(crl_context_h context) {
  crl_traffic_t traffic{};
  crl_context_traffic(context, &traffic);
  return traffic;
}

// Of the worlds that this process is in, and of those that it has left.
crl_traffic_t all_traffic() {
  const WorldsStay stay;
  crl_traffic_t sum{};
  for (const World* one = g_worlds.load(std::memory_order_acquire); one != nullptr;
       one = one->earlier.load(std::memory_order_acquire)) {
    add(sum, traffic_of(one->context));
  }
  const std::lock_guard lock(decisions().mutex);
  add(sum, decisions().left);
  return sum;
}

std::string traffic_text() {
  const crl_traffic_t all = all_traffic();
  std::string text;
  if (all.in_place_bytes + all.lent_bytes + all.copied_bytes > 0) {
    text = "  to others of the node, bytes: " + std::to_string(all.in_place_bytes) +
           " read where they stood, " + std::to_string(all.lent_bytes) + " copied once, " +
           std::to_string(all.copied_bytes) + " through shared memory";
    if (all.uncached_bytes + all.handed_bytes > 0) {
      text += " (" + std::to_string(all.uncached_bytes) + " of them past the caches, " +
              std::to_string(all.handed_bytes) + " in memory that was handed over)";
    }
    text += '\n';
  }
  if (all.sent_in_place_bytes + all.sent_copied_bytes > 0) {
    text += "  to other nodes, bytes: " + std::to_string(all.sent_in_place_bytes) +
            " read where they stood, " + std::to_string(all.sent_copied_bytes) +
            " copied to be sent\n";
  }
  return text;
}

std::string traffic_json() {
  const crl_traffic_t all = all_traffic();
  return R"("node_bytes":{"in_place":)" + std::to_string(all.in_place_bytes) + R"(,"lent":)" +
         std::to_string(all.lent_bytes) + R"(,"copied":)" + std::to_string(all.copied_bytes) +
         R"(,"uncached":)" + std::to_string(all.uncached_bytes) + R"(,"handed":)" +
         std::to_string(all.handed_bytes) + R"(},"network_bytes":{"in_place":)" +
         std::to_string(all.sent_in_place_bytes) + R"(,"copied":)" +
         std::to_string(all.sent_copied_bytes) + "}";
}

// `line`: what begins each row.
std::string json(const std::string& line) {
  const std::string separator = "," + line;
  return R"({"rank":)" + std::to_string(process().world_rank) + R"(,"ranks":)" +
         std::to_string(process().world_size) + R"(,"collectives":[)" + line +
         collectives_json(separator.c_str()) + R"(],"calls":[)" + line +
         tally_json(separator.c_str()) + R"(],"alltoallv":[)" + line +
         decisions_json(separator.c_str()) + "]," + traffic_json() + "}\n";
}

void say_json() {
  const std::string text = json("");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_table() {
  std::string text =
      "carillon: collectives of rank 0 of " + std::to_string(process().world_size) + "\n";
  char line[256];
  std::snprintf(line, sizeof(line), "  %-22s%12s%12s\n", "collective", "taken", "left");
  text += line;
  for (std::size_t i = 0; i < kCalls; ++i) {
    const std::uint64_t taken = taken_calls(i);
    const std::uint64_t all_left = left_calls(i);
    if (taken + all_left == 0) continue;
    std::snprintf(line, sizeof(line), "  %-22s%12llu%12llu", call_name(i).c_str(),
                  static_cast<unsigned long long>(taken),
                  static_cast<unsigned long long>(all_left));
    text += line;
    const char* separator = "  ";
    for (std::size_t reason = 0; reason < kReasons; ++reason) {
      if (left(i, reason) == 0) continue;
      text += separator;
      text += std::to_string(left(i, reason)) + " " + text_of(static_cast<Reason>(reason));
      separator = ", ";
    }
    text += '\n';
  }
  text += tally_text();
  text += decisions_text();
  text += traffic_text();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void write_file(const std::string& prefix) {
  const std::string path = prefix + "." + std::to_string(process().world_rank) + ".json";
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    say("CARILLON_STATS: cannot write %s: %s", path.c_str(), std::strerror(errno));
    return;
  }
  const std::string text = json("\n");
  const bool taken = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = taken ? 0 : errno;
  if (std::fclose(file) != 0 && error == 0) error = errno;
  if (error != 0) say("CARILLON_STATS: cannot write %s: %s", path.c_str(), std::strerror(error));
}

}  // namespace

const char* text_of(Reason reason) {
  switch (reason) {
    case Reason::kNone: return "";
    case Reason::kOff: return "carillon is off";
    case Reason::kNotInitialised: return "outside MPI_Init ... MPI_Finalize";
    case Reason::kIntercommunicator: return "intercommunicator";
    case Reason::kOtherWorld: return "processes of another MPI_COMM_WORLD";
    case Reason::kNotServed: return "communicator not served";
    case Reason::kReduction: return "operator and datatype only the MPI knows";
    case Reason::kOwnOrder: return "the MPI's own order of the blocks of a grid";
    case Reason::kNested: return "called by the MPI itself";
    case Reason::kSuspect: return "wrong arguments";
    case Reason::kObserved: return "recorded or checked";
  }
  return "";
}

std::string call_name(std::size_t index) {
  std::string name = kRules[index % kCollectives].name;
  const auto form = static_cast<Form>(index / kCollectives);
  if (form == Form::kPersistent) name += "_init";
  if (form == Form::kStarted) {
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    name.insert(0, 1, 'I');
  }
  return name;
}

std::uint64_t left_calls(std::size_t call) {
  std::uint64_t sum = 0;
  for (std::size_t reason = 0; reason < kReasons; ++reason) {
    sum += left(call, reason);
  }
  return sum;
}

void count_decisions(crl_team_h team) {
  std::vector<crl_decision_t> all(static_cast<std::size_t>(crl_team_decisions(team, nullptr, 0)));
  const int count = crl_team_decisions(team, all.data(), static_cast<int>(all.size()));
  const std::lock_guard lock(decisions().mutex);
  for (int i = 0; i < count && static_cast<std::size_t>(i) < all.size(); ++i) {
    const crl_decision_t& each = all[static_cast<std::size_t>(i)];
    decisions().calls[{each.algorithm, each.reason}] += each.calls;
  }
}

void count_traffic(crl_context_h context) {
  const std::lock_guard lock(decisions().mutex);
  add(decisions().left, traffic_of(context));
}

void set_stats(const std::string& where) {
  const std::lock_guard lock(destination().mutex);
  destination().path = where;
  if (!where.empty()) observe(kCounting);
}

void print_stats() {
  const std::lock_guard lock(destination().mutex);
  const std::string& where = destination().path;
  if (where.empty()) return;
  observe_no_more(kCounting);
  if (where != "1" && where != "json") {
    write_file(where);
  } else if (process().world_rank == 0) {
    where == "1" ? print_table() : say_json();
  }
}

}  // namespace carillon::shim
