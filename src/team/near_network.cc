// SPDX-License-Identifier: Apache-2.0
#include "team/near_network.h"

#include <charconv>
#include <fstream>
#include <string>
#include <system_error>

namespace carillon {
namespace {

// Takes a number from the front.
bool take_number(std::string_view* text, std::size_t* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return true;
}

Cores cores_near(const std::filesystem::path& device) {
  std::string list;
  std::getline(std::ifstream(device / "device" / "local_cpulist"), list);
  return parse_cores(list);
}

}  // namespace

Cores parse_cores(std::string_view list) {
  Cores cores;
  while (!list.empty()) {
    std::size_t first = 0;
    if (!take_number(&list, &first)) return {};
    std::size_t last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      if (!take_number(&list, &last)) return {};
    }
    if (last < first || last >= kMaxCores) return {};
    for (std::size_t core = first; core <= last; ++core) cores.set(core);
    if (list.empty()) break;
    if (!list.starts_with(',')) return {};
    list.remove_prefix(1);
    if (list.empty()) return {};
  }
  return cores;
}

Cores cores_near_network(std::string_view network, const std::filesystem::path& classes) {
  constexpr std::string_view kVerbs = "verbs ";
  if (network.starts_with(kVerbs)) {
    return cores_near(classes / "infiniband" / network.substr(kVerbs.size()));
  }
  Cores cores;
  std::error_code error;
  std::filesystem::directory_iterator device(classes / "net", error);
  while (!error && device != std::filesystem::directory_iterator()) {
    cores |= cores_near(device->path());
    device.increment(error);
  }
  return cores;
}

}  // namespace carillon
