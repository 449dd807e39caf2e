// SPDX-License-Identifier: Apache-2.0
#include "switch/verilated/tables.h"

#include <algorithm>

namespace carillon::rtl {
namespace {

// The place of what is there, or, of 0, a free one.
template <typename Name, std::size_t Places>
std::size_t place_of(const std::array<Name, Places>& names, Name name, std::size_t first = 0) {
  return static_cast<std::size_t>(std::find(names.begin() + first, names.end(), name) -
                                  names.begin());
}

std::uint64_t name_of(std::uint32_t job, std::uint32_t group) {
  return std::uint64_t{job} << 32 | group;
}

Status without_room(const char* what) {
  return {Code::kInternal, std::string("switchd: the hardware has no room for a ") + what +
                               " that the reference has taken"};
}

}  // namespace

Address address_of(const Endpoint& endpoint) {
  constexpr std::uint64_t kLocal = 0x020000000000;
  return {.port = static_cast<std::uint8_t>((endpoint.ip + endpoint.port) % kHostPorts),
          .mac = kLocal | endpoint.ip,
          .endpoint = endpoint};
}

HardwareTables::HardwareTables(Hardware& hardware, const SipKey& administrator, std::uint32_t first)
    : hardware_(hardware), first_(first) {
  write(Table::kJobs, 0,
        Record().add(1, 1).add(0, 32).add(administrator.high, 64).add(administrator.low, 64));
}

void HardwareTables::write(Table table, std::size_t index, const Record& record) {
  if (status_.ok()) status_ = hardware_.write(table, index, record);
}

void HardwareTables::on_job(std::uint32_t job, const SipKey& key) {
  const std::size_t place = place_of(jobs_, 0U, 1);
  if (place == jobs_.size()) {
    status_ = without_room("job");
    return;
  }
  jobs_[place] = job;
  write(Table::kJobs, place, Record().add(1, 1).add(job, 32).add(key.high, 64).add(key.low, 64));
}

void HardwareTables::on_job_gone(std::uint32_t job) {
  const std::size_t place = place_of(jobs_, job, 1);
  if (place == jobs_.size()) return;
  jobs_[place] = 0;
  write(Table::kJobs, place, Record());
}

void HardwareTables::on_group(std::uint32_t job, std::uint32_t group,
                              const aggregate::Shape& shape) {
  const std::size_t place = place_of(groups_, std::uint64_t{0});
  if (place == groups_.size()) {
    status_ = without_room("group");
    return;
  }
  groups_[place] = name_of(job, group);
  std::uint64_t there = 0;
  for (std::size_t i = 0; i < shape.children.size(); ++i) {
    if (shape.children[i] == Endpoint{}) continue;
    there |= std::uint64_t{1} << i;
    write(Table::kChildren, place * kChildren + i, Record().add(address_of(shape.children[i])));
  }
  Record record;
  record.add(1, 1).add(job, 32).add(group, 32).add(shape.is_root() ? 1 : 0, 1);
  record.add(shape.is_root() ? Address{} : address_of(shape.parent)).add(shape.parent_child, 16);
  record.add(shape.window, 16).add(shape.operand_bytes, 16).add(first_, 32).add(there, 64);
  write(Table::kGroups, place, record);
}

void HardwareTables::on_group_gone(std::uint32_t job, std::uint32_t group) {
  const std::size_t place = place_of(groups_, name_of(job, group));
  if (place == groups_.size()) return;
  groups_[place] = 0;
  write(Table::kGroups, place, Record());
}

}  // namespace carillon::rtl
