// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap: exchanging a few bytes among processes that cannot use carillon yet, through the
// caller's non-blocking allgather.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
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
  /// Code::kInProgress until everybody's value is there.
  Code test() {
    const int answer = oob_.allgather_test(oob_.arg, request_);
    if (answer == 0) return Code::kOk;
    return answer == 1 ? Code::kInProgress : Code::kSystem;
  }
  [[nodiscard]] std::span<const T> all() const { return all_; }

 private:
  crl_oob_t oob_ = {};
  T mine_ = {};
  std::vector<T> all_;
  void* request_ = nullptr;
};

}  // namespace carillon
