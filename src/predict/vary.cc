// SPDX-License-Identifier: Apache-2.0
#include "predict/vary.h"

namespace carillon::predict {

Result<std::vector<machine::Number>> varied_numbers(const std::vector<std::string>& names,
                                                    const machine::Sheet& sheet) {
  std::vector<machine::Number> numbers;
  for (const std::string& name : names) {
    const machine::Number* const number = sheet.find(name);
    if (number == nullptr || !number->has_range()) {
      return Status(
          Code::kInvalidArgument,
          "the paper varies " + name + ", which has no range in machine " + sheet.machine.name);
    }
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace carillon::predict
