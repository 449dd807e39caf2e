// SPDX-License-Identifier: Apache-2.0
#include "left_persistent.h"

#ifndef OPEN_MPI

#include <algorithm>
#include <mutex>
#include <vector>

namespace carillon::shim {
namespace {

// Never destroyed: programs free requests in their exit functions.
struct LeftPersistent {
  std::mutex mutex;
  std::vector<MPI_Request> requests;
};
LeftPersistent& left_persistent() {
  static auto* const kLeft = new LeftPersistent();
  return *kLeft;
}

}  // namespace

constinit std::atomic<int> g_left_persistent = 0;

void note_left_persistent(MPI_Request request) {
  LeftPersistent& left = left_persistent();
  const std::lock_guard lock(left.mutex);
  left.requests.push_back(request);
  // Who waits for the request has it from who made it: that orders more than this does.
  g_left_persistent.fetch_add(1, std::memory_order_relaxed);
}

void forget_left_persistent(MPI_Request request) {
  if (!any_left_persistent()) return;
  LeftPersistent& left = left_persistent();
  const std::lock_guard lock(left.mutex);
  const auto gone = std::erase(left.requests, request);
  g_left_persistent.fetch_sub(static_cast<int>(gone), std::memory_order_relaxed);
}

bool is_left_persistent(MPI_Request request) {
  LeftPersistent& left = left_persistent();
  const std::lock_guard lock(left.mutex);
  return std::find(left.requests.begin(), left.requests.end(), request) != left.requests.end();
}

}  // namespace carillon::shim

#endif
