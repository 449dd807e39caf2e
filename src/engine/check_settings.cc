// SPDX-License-Identifier: Apache-2.0
#include "engine/check_settings.h"

#include "engine/aggregation.h"
#include "engine/join_network.h"
#include "engine/node.h"

namespace carillon {

Status check_settings(const Config& settings) {
  if (Status status = check_network(settings); !status.ok()) return status;
  if (auto wish = switch_wish(settings); !wish.ok()) return wish.status();
  return check_parts(settings);
}

}  // namespace carillon
