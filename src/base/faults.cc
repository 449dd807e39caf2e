// SPDX-License-Identifier: Apache-2.0
#include "base/faults.h"

#include <array>
#include <charconv>
#include <string>

namespace carillon {
namespace {

// With more, next to nothing would ever be sent.
constexpr double kMostShare = 0.9;
constexpr std::uint64_t kMostCount = UINT64_C(1) << 40;

struct Share {
  std::string_view name;
  double Faults::*value;
};
constexpr std::array kShares = {
    Share{"refuse", &Faults::refuse},   Share{"delay", &Faults::delay},
    Share{"reorder", &Faults::reorder}, Share{"duplicate", &Faults::duplicate},
    Share{"lose", &Faults::lose},       Share{"corrupt", &Faults::corrupt},
};

struct Count {
  std::string_view name;
  std::uint64_t Faults::*value;
};
constexpr std::array kCounts = {Count{"break", &Faults::break_post}, Count{"seed", &Faults::seed}};

template <typename Number>
bool number_of(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

Status wrong(std::string_view text, std::string_view part, const std::string& why) {
  return {Code::kInvalidArgument, "CARILLON_FAULT=" + std::string(text) + ": \"" +
                                      std::string(part) + "\" " + why +
                                      "; write it as refuse=0.1,delay=0.2,seed=7"};
}

// One NAME=VALUE of `text`.
Status parse_part(std::string_view text, std::string_view part, Faults* faults) {
  const std::size_t equals = part.find('=');
  const std::string_view name = part.substr(0, equals);
  const std::string_view value = equals == part.npos ? "" : part.substr(equals + 1);
  for (const Share& share : kShares) {
    if (name != share.name) continue;
    double& number = faults->*share.value;
    if (number_of(value, &number) && number >= 0 && number <= kMostShare) return {};
    return wrong(text, part, "is no share from 0 to 0.9");
  }
  for (const Count& count : kCounts) {
    if (name != count.name) continue;
    std::uint64_t& number = faults->*count.value;
    if (number_of(value, &number) && number >= 1 && number <= kMostCount) return {};
    return wrong(text, part, "is no number from 1 on");
  }
  return wrong(text, part,
               "is none of refuse, delay, reorder, duplicate, lose, corrupt, break, seed");
}

}  // namespace

Result<Faults> parse_faults(std::string_view text) {
  Faults faults;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (Status status = parse_part(text, rest.substr(0, comma), &faults); !status.ok()) {
      return status;
    }
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) return wrong(text, "", "stands behind the last comma");
  }
  return faults;
}

}  // namespace carillon
