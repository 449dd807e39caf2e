// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/text.h"

#include <arpa/inet.h>

#include <charconv>
#include <sstream>

#include "transport/aggregate/tree.h"

namespace carillon::aggregate {
namespace {

struct Meaning {
  Code code = Code::kInternal;
  const char* text = "refuses for a reason that this version does not know";
};

Meaning meaning_of(Reason reason) {
  switch (reason) {
    case Reason::kNone: break;
    case Reason::kUnknownJob:
      return {Code::kPeerDead, "does not know the job: it was started again, or the job removed"};
    case Reason::kUnknownGroup:
      return {Code::kPeerDead,
              "does not know the group: it was started again, or freed the group "
              "because nothing came for long"};
    case Reason::kMismatch:
      return {Code::kMismatch,
              "got packets of this collective from another rank that do not fit: "
              "do all ranks call it with the same count, type and operator?"};
    case Reason::kTooLarge:
      return {Code::kInvalidArgument, "got a packet longer than the group was built for"};
    case Reason::kNoRoom:
      return {Code::kNoMemory,
              "has no room for another group; carillon switchd --groups and "
              "--memory-mib make more"};
    case Reason::kQuota: return {Code::kNoMemory, "gives the job no more groups or memory"};
    case Reason::kBadTree:
      return {Code::kInvalidArgument, "cannot build a group of this shape; ask for its limits"};
    case Reason::kJobDiffers:
      return {Code::kInvalidArgument, "has a job of this number already; take another number"};
    case Reason::kGroupDiffers:
      return {Code::kInvalidArgument, "has a group of this number, but of another shape"};
  }
  return {};
}

}  // namespace

std::string text(const Endpoint& endpoint) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += std::to_string(endpoint.ip >> shift & 0xff);
    out += shift > 0 ? '.' : ':';
  }
  return out + std::to_string(endpoint.port);
}

std::optional<Endpoint> parse_endpoint(const std::string& text) {
  const std::size_t colon = text.find(':');
  in_addr ip = {};
  unsigned port = kUdpPort;
  if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &ip) != 1) return {};
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error != std::errc() || stop != end || port > 0xffff) return {};
  }
  return Endpoint{ntohl(ip.s_addr), static_cast<std::uint16_t>(port)};
}

Result<std::vector<Endpoint>> parse_path(const std::string& text) {
  const auto bad = [&](const std::string& what) {
    return Status(Code::kInvalidArgument, "CARILLON_SWITCH=" + text + " " + what);
  };
  std::vector<Endpoint> path;
  std::istringstream words(text + ",");  // so that a comma at the end is seen
  for (std::string word; std::getline(words, word, ',');) {
    const auto at = parse_endpoint(word);
    if (!at || !is_host(*at)) {
      return bad(
          "is no IPv4 address with or without :PORT, as 10.0.0.1:27182, and no list of such "
          "from this node's switch to the root of a tree, with commas");
    }
    path.push_back(*at);
  }
  if (path.size() > kMaxLevels) {
    return bad("has more levels of switches than " + std::to_string(kMaxLevels));
  }
  return path;
}

Status refusal_status(const Endpoint& from, Reason reason) {
  const Meaning meaning = meaning_of(reason);
  return {meaning.code, "aggregate: the switch at " + text(from) + " " + meaning.text};
}

}  // namespace carillon::aggregate
