// SPDX-License-Identifier: Apache-2.0
#include "transport/wire.h"

#include <algorithm>

namespace carillon::wire {

Status check_list(const Capabilities& capabilities, std::span<const Piece> pieces,
                  std::size_t max_bytes, std::size_t max_pieces) {
  max_pieces = std::min(max_pieces, capabilities.max_pieces);
  // Some providers take a longer list and drop what is too much.
  if (pieces.size() > max_pieces) {
    return {Code::kInvalidArgument, capabilities.name + " takes lists of " +
                                        std::to_string(max_pieces) + " pieces at most, not of " +
                                        std::to_string(pieces.size())};
  }
  if (const std::size_t bytes = total_bytes(pieces); bytes > max_bytes) {
    return {Code::kInvalidArgument, capabilities.name + " takes " + std::to_string(max_bytes) +
                                        " bytes at most, not " + std::to_string(bytes)};
  }
  const auto lacks_registration = [](const Piece& piece) {
    return piece.bytes > 0 && piece.registration == nullptr;
  };
  if (capabilities.registers_local &&
      std::any_of(pieces.begin(), pieces.end(), lacks_registration)) {
    return {Code::kInvalidArgument, capabilities.name + " reaches registered memory only"};
  }
  return {};
}

}  // namespace carillon::wire
