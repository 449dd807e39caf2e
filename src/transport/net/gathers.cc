// SPDX-License-Identifier: Apache-2.0
#include "transport/net/gathers.h"

#include <algorithm>

namespace carillon::net {

bool GatheredPut::ended() {
  while (!under_way.empty() && under_way.back()->operation.done()) {
    under_way.back()->held = false;
    under_way.pop_back();
  }
  return under_way.empty();
}

bool Gathers::all_ended() {
  return copied_.ended() &&
         std::all_of(puts_.begin(), puts_.end(), [](GatheredPut& put) { return put.ended(); });
}

void Gathers::abandon() {
  const auto abandon_one = [](GatheredPut& put) {
    for (Buffer* const buffer : put.under_way) buffer->held = false;
    put.under_way.clear();
  };
  std::for_each(puts_.begin(), puts_.end(), abandon_one);
  abandon_one(copied_);
}

}  // namespace carillon::net
