// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap: exchanging a few bytes among processes that cannot use carillon yet, through the
// caller's non-blocking allgather.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "carillon/carillon.h"

namespace carillon {

/// One exchange of a T per member. T is plain data.
template <typename T>
class Gather {
 public:
  /// Starts the exchange.
  Status post(const crl_oob_t& oob, const T& mine) {
    oob_ = oob;
    mine_ = mine;
    all_.resize(static_cast<std::size_t>(oob.size));
    if (oob.allgather_post(oob.arg, &mine_, all_.data(), sizeof(T), &request_) != 0) {
      return {Code::kSystem, "the bootstrap allgather of the caller could not be started"};
    }
    return {};
  }
  /// Code::kInProgress until everybody's value is there, or failure()'s code.
  Code test() {
    const int answer = oob_.allgather_test(oob_.arg, request_);
    if (answer != 0) return answer == 1 ? Code::kInProgress : Code::kSystem;
    const T& own = all_[static_cast<std::size_t>(oob_.rank)];
    return std::memcmp(&own, &mine_, sizeof(T)) == 0 ? Code::kOk : Code::kInvalidArgument;
  }
  /// What went wrong, after test() has said that something did.
  [[nodiscard]] Status failure(Code code) const {
    if (code != Code::kInvalidArgument) {
      return {code, "the caller's bootstrap allgather failed"};
    }
    return {code, "the caller's bootstrap allgather gave rank " + std::to_string(oob_.rank) +
                      " of " + std::to_string(oob_.size) +
                      " other bytes for its own than it had given; before crl_oob_t says that it "
                      "is done, it gives what all members gave, in the order of their ranks"};
  }
  [[nodiscard]] std::span<const T> all() const { return all_; }

 private:
  crl_oob_t oob_ = {};
  T mine_ = {};
  std::vector<T> all_;
  void* request_ = nullptr;
};

/// Blocks until everybody's value is there, for timeout_s at most. On a timeout the object is left
/// alone for ever: the caller's exchange may still write into it.
template <typename T>
Result<std::unique_ptr<Gather<T>>> exchange(const crl_oob_t& oob, const T& mine, int timeout_s) {
  auto gather = std::make_unique<Gather<T>>();
  if (Status status = gather->post(oob, mine); !status.ok()) return status;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  for (;;) {
    // Not after the look: who is held up behind it has not seen who came meanwhile.
    const bool is_late = std::chrono::steady_clock::now() > end;
    const Code code = gather->test();
    if (code == Code::kOk) return gather;
    if (code != Code::kInProgress) {
      return Status(code, "start-up: " + std::string(gather->failure(code).message()));
    }
    if (is_late) {
      (void)gather.release();
      return Status(Code::kTimeout,
                    "start-up: not all " + std::to_string(oob.size) + " ranks came within " +
                        std::to_string(timeout_s) +
                        " s; does every rank run with carillon? (CARILLON_JOIN_TIMEOUT_S)");
    }
    sched_yield();
  }
}

}  // namespace carillon
