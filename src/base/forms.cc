// SPDX-License-Identifier: Apache-2.0
#include "base/forms.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

namespace carillon {
namespace {

struct Carrier {
  std::string_view name;
  bool takes_device;
};

// Is it one of these, alone or, where that may be, with ":DEVICE"?
bool is_one_of(std::string_view text, std::initializer_list<Carrier> carriers) {
  const std::size_t colon = text.find(':');
  return std::any_of(carriers.begin(), carriers.end(), [&](const Carrier& carrier) {
    return text.substr(0, colon) == carrier.name &&
           (colon == text.npos || (carrier.takes_device && colon + 1 < text.size()));
  });
}

}  // namespace

Status check_network(std::string_view text) {
  if (text.empty() || is_one_of(text, {{"verbs", true}, {"fabric", true}, {"off", false}})) {
    return {};
  }
  return {Code::kInvalidArgument,
          "CARILLON_NETWORK=" + std::string(text) +
              " is none of verbs, verbs:DEVICE, fabric, fabric:PROVIDER and off"};
}

Status check_multicast(std::string_view text) {
  if (is_one_of(text, {{"auto", false}, {"off", false}, {"udp", true}, {"ud", true}})) return {};
  return {Code::kInvalidArgument, "CARILLON_MULTICAST=" + std::string(text) +
                                      " is none of auto, off, udp, udp:INTERFACE, ud and "
                                      "ud:DEVICE"};
}

Result<int> part_of_rank(std::string_view setting, std::string_view sizes, int rank) {
  constexpr std::string_view kRoundRobin = "rr:";
  const bool round_robin = sizes.starts_with(kRoundRobin);
  const auto bad = [&] {
    return Status(Code::kInvalidArgument, std::string(setting) + "=" + std::string(sizes) +
                                              " is neither numbers of ranks, as in 3,1,2, nor " +
                                              "how many take turns, as in rr:2");
  };
  std::vector<int> list;
  for (std::string_view rest = sizes.substr(round_robin ? kRoundRobin.size() : 0); !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest = rest.substr(std::min(rest.size(), one.size() + 1));
    int size = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), size);
    if (error != std::errc() || end != one.data() + one.size() || size < 1) return bad();
    list.push_back(size);
  }
  if (round_robin) {
    if (list.size() != 1) return bad();
    return rank % list.front();
  }
  int node = 0;
  for (std::size_t i = 0; !list.empty() && rank >= list[i]; i = (i + 1) % list.size(), ++node) {
    rank -= list[i];
  }
  return node;
}

}  // namespace carillon
