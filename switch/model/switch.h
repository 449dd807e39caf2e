// SPDX-License-Identifier: Apache-2.0
//
// The reference of one switch: a datagram in, datagrams out. It has no clock, no thread and no
// socket; what it does depends on what it was given before, and on nothing else. Everything that
// is a switch is compared with it; carillon switchd is it, behind a socket.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "switch/model/counters.h"
#include "switch/model/group.h"
#include "switch/protocol/packet.h"

namespace carillon::aggregate {

struct SwitchConfig {
  SipKey administrator;
  std::uint16_t number = 0;  ///< at most kMaxNumber; distinct among the switches of a tree
  std::uint32_t jobs = 64;
  std::uint32_t groups = 1024;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  ///< of all groups' slots
  std::uint16_t children = kMaxChildren;
  std::uint16_t window = kMaxWindow;
  std::uint16_t operand_bytes = kMaxOperandBytes;
  std::uint32_t first = 0;  ///< sequence of each group; hosts begin with 0
};

/// Hears of jobs and groups as they come and go: what the tables of a switch in hardware hold.
class SwitchObserver {
 public:
  SwitchObserver() = default;
  SwitchObserver(const SwitchObserver&) = delete;
  SwitchObserver& operator=(const SwitchObserver&) = delete;
  virtual ~SwitchObserver() = default;
  virtual void on_job(std::uint32_t job, const SipKey& key) = 0;
  virtual void on_job_gone(std::uint32_t job) = 0;
  virtual void on_group(std::uint32_t job, std::uint32_t group, const Shape& shape) = 0;
  virtual void on_group_gone(std::uint32_t job, std::uint32_t group) = 0;
};

class Switch {
 public:
  /// The observer, if there is one, is the caller's, and lives as long.
  explicit Switch(const SwitchConfig& config, SwitchObserver* observer = nullptr)
      : config_(config), observer_(observer) {}

  void receive(const Endpoint& from, std::span<const std::byte> datagram, Output& output);

  /// One more of the caller's units of time has passed: groups of which nothing has come in the
  /// last `most` of them are freed, and jobs without groups forgotten.
  void pass_time(std::uint64_t most);

  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::size_t jobs() const { return jobs_.size(); }
  [[nodiscard]] std::size_t groups() const { return groups_.size(); }
  [[nodiscard]] std::uint64_t memory_bytes() const { return used_bytes_; }

 private:
  struct Member {
    std::unique_ptr<Group> group;
    Endpoint asker;  // who asked for an id with this request, and may ask again
    std::uint32_t request = 0;
    bool allotted = false;
    std::uint64_t touched = 0;
  };
  struct InstalledJob {
    SipKey key;
    Job quota;
    std::uint32_t groups = 0;
    std::uint64_t memory_bytes = 0;
    std::uint32_t allotted = 0;  // ids
    std::uint64_t touched = 0;
  };
  struct Arrival {
    const Endpoint& from;
    const Packet& packet;
    std::span<const std::byte> datagram;
    const SipKey& key;  // what its tag is made with
  };
  using Jobs = std::map<std::uint32_t, InstalledJob>;

  static std::uint64_t name_of_group(const Header& header) {
    return std::uint64_t{header.job} << 32 | header.group;
  }
  Member* find_group(const Header& header);
  void dispatch(const Arrival& arrival, InstalledJob* job, Output& output);
  void contribute(const Arrival& arrival, Output& output);
  void from_parent(const Arrival& arrival, Output& output);
  void refuse_unknown_job(const Endpoint& from, const Header& header, Output& output);
  void refuse(const Arrival& arrival, Reason reason, Output& output);

  // Control (control.cc). The reason why a request is refused, or kNone.
  void control(const Arrival& arrival, InstalledJob* job, Output& output);
  void answer(const Arrival& arrival, Kind kind, Output& output, std::uint32_t group = 0,
              std::span<const std::byte> payload = {});
  void tell_limits(const Arrival& arrival, Output& output);
  Reason install_job(const Header& header, const Job& wanted);
  Reason remove_job(const Header& header, const Job& wanted);
  Reason build_group(const Arrival& arrival, InstalledJob& job, std::uint32_t* group);
  [[nodiscard]] bool can_be(const Shape& shape) const;
  Reason allot(const Header& header, InstalledJob& job, std::uint32_t* group) const;
  using Groups = std::map<std::uint64_t, Member>;
  Groups::iterator free_group(Groups::iterator group);

  SwitchConfig config_;
  SwitchObserver* observer_;
  Jobs jobs_;
  Groups groups_;  // by job and id
  std::uint64_t used_bytes_ = 0;
  std::uint64_t time_ = 0;
  Counters counters_;
};

}  // namespace carillon::aggregate
