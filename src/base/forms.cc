// SPDX-License-Identifier: Apache-2.0
#include "base/forms.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

namespace carillon {

Status check_network(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  if (name.empty() || name == "verbs" || name == "fabric" || name == "off") return {};
  return {Code::kInvalidArgument,
          "CARILLON_NETWORK=" + std::string(text) +
              " is none of verbs, verbs:DEVICE, fabric, fabric:PROVIDER and off"};
}

Result<int> part_of_rank(std::string_view setting, std::string_view sizes, int rank) {
  constexpr std::string_view kRoundRobin = "rr:";
  const bool round_robin = sizes.starts_with(kRoundRobin);
  std::vector<int> list;
  for (std::string_view rest = sizes.substr(round_robin ? kRoundRobin.size() : 0); !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest = rest.substr(std::min(rest.size(), one.size() + 1));
    int size = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), size);
    if (error != std::errc() || end != one.data() + one.size() || size < 1) {
      return Status(Code::kInvalidArgument, std::string(setting) + "=" + std::string(sizes) +
                                                " is neither numbers of ranks, as in 3,1,2, nor " +
                                                "how many take turns, as in rr:2");
    }
    list.push_back(size);
  }
  if (round_robin && list.size() == 1) return rank % list.front();
  int node = 0;
  for (std::size_t i = 0; !list.empty() && rank >= list[i]; i = (i + 1) % list.size(), ++node) {
    rank -= list[i];
  }
  return node;
}

}  // namespace carillon
