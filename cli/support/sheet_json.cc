// SPDX-License-Identifier: Apache-2.0
#include "support/sheet_json.h"

#include <nlohmann/json.hpp>

namespace carillon::cli {

using Json = nlohmann::ordered_json;

Json sheet_json(const machine::Sheet& sheet) {
  Json numbers = Json::array();
  for (const machine::Number& number : sheet.numbers) {
    numbers.push_back({{"name", number.field->name()},
                       {"value", number.value},
                       {"min", number.min},
                       {"max", number.max},
                       {"estimate", number.estimate},
                       {"source", number.source},
                       {"meaning", number.field->meaning}});
  }
  Json levels = Json::array();
  for (const machine::Level& level : sheet.machine.topology.levels) {
    const machine::LevelSource& from = sheet.level_sources[levels.size()];
    levels.push_back(
        {{"radix", level.radix},
         {"oversubscription", static_cast<double>(level.oversubscription_permille) / 1000},
         {"estimate", from.estimate},
         {"source", from.source}});
  }
  return {{"machine", sheet.machine.name},
          {"title", sheet.title},
          {"numbers", numbers},
          {"levels", levels}};
}

}  // namespace carillon::cli
