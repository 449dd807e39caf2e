// SPDX-License-Identifier: Apache-2.0
//
// The file that holds the key of a switch's administrator.
#pragma once

#include <string>

#include "base/siphash.h"
#include "base/status.h"

namespace carillon::aggregate {

/// Of 32 hexadecimal digits, and nobody else's to read. `setting` is what names the file, for
/// people.
Result<SipKey> read_key_file(const std::string& file, const std::string& setting);

}  // namespace carillon::aggregate
