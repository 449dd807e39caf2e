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
  return std::all_of(puts_.begin(), puts_.end(), [](GatheredPut& put) { return put.ended(); });
}

void Gathers::abandon() {
  for (GatheredPut& put : puts_) {
    for (Buffer* const buffer : put.under_way) buffer->held = false;
    put.under_way.clear();
  }
}

}  // namespace carillon::net
