// SPDX-License-Identifier: Apache-2.0
//
// Makes a group, and finds out whether multicast works among its members. Each sends probes to all;
// the group is made if everybody has heard everybody within a bounded time. All members come to the
// same answer: it goes through the caller's allgather.
//
// The first allgather tells addresses, limits and random numbers, of which the group's key and its
// address on the network are made: two groups do not know each other's keys, and so drop each
// other's packets if they should meet on one address. The second tells what each has heard.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "carillon/carillon.h"
#include "transport/multicast/group.h"

namespace carillon::multicast {

struct SetupOptions {
  std::uint32_t window = 256;         ///< packets; less if the members cannot take so many at once
  std::uint32_t radix = 8;            ///< of the trees that acks climb
  std::uint32_t early_packets = 512;  ///< each member's own
  Nanoseconds patience = 2000 * kMillisecond;  ///< for probes
  Timing timing;
  std::shared_ptr<const Places> places;
};

class Setup final : public CarrierListener {
 public:
  /// The carrier, or why this member has none. `oob` is used for two allgathers of at most
  /// kExchangeBytes.
  Setup(Result<std::unique_ptr<Carrier>> carrier, const crl_oob_t& oob,
        const SetupOptions& options);
  ~Setup() override;
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;
  static constexpr std::size_t kExchangeBytes = 320;

  /// True: result() is there. To be called again and again. An error: the allgather has failed.
  Result<bool> progress(Nanoseconds now);
  /// The group, or kUnsupported and the reason: to all members the same. Once.
  Result<std::unique_ptr<Group>> result();
  /// It will not be used any more, but its memory must stay: an exchange may still write there.
  void abandon() { carrier_.reset(); }

  // What members tell each other. Plain data.
  struct Hello;
  struct Verdict;

 private:
  enum class Step : std::uint8_t { kBegin, kHello, kProbe, kVerdict, kOver };

  Status post(const void* mine, void* all, std::size_t bytes);
  Result<bool> test();
  Status begin();
  void meet(Nanoseconds now);
  Status agree();
  void probe(Nanoseconds now);
  void send_probe(std::size_t size, bool to_group);
  void judge();
  [[nodiscard]] Status objection() const;
  void conclude();
  void on_packet(std::span<const std::byte> bytes) override;
  [[nodiscard]] bool heard_all() const;
  void refuse(const Status& status);

  std::unique_ptr<Carrier> carrier_;
  Status why_not_;
  crl_oob_t oob_;
  SetupOptions options_;
  Step step_ = Step::kBegin;
  Config config_;
  std::uint64_t name_ = 0;
  void* request_ = nullptr;
  std::vector<Hello> hellos_;         // mine at the end
  std::vector<Verdict> verdicts_;     // mine at the end
  std::vector<std::size_t> sizes_;    // of probes, the largest first
  std::vector<std::uint32_t> heard_;  // by member: bit i, a multicast of sizes_[i]
  bool heard_neighbour_ = false;      // by unicast
  bool joined_ = false;
  std::vector<std::byte> memory_;
  Nanoseconds probe_due_ = 0, probe_interval_ = 0, deadline_ = 0;
  std::size_t round_ = 0;
  Result<std::unique_ptr<Group>> result_;
};

}  // namespace carillon::multicast
