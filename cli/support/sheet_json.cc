// SPDX-License-Identifier: Apache-2.0
#include "support/sheet_json.h"

namespace carillon::cli {

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
  for (std::size_t i = 0; i < sheet.machine.topology.levels.size(); ++i) {
    const machine::Level& level = sheet.machine.topology.levels[i];
    const machine::LevelSource& from = sheet.level_sources[i];
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
