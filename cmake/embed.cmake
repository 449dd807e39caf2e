# SPDX-License-Identifier: Apache-2.0
#
# carillon_embed(TARGET FOLDER FUNCTION): the .toml files of a folder of the checkout become part of
# the target: `std::span<const EmbeddedFile> carillon::FUNCTION()` (base/embedded.h). So a command
# finds its data wherever it is installed.
include_guard()

function(carillon_embed target folder function)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(rows)
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND rows "    {\"${name}\", R\"toml(${text})toml\"},\n")
  endforeach()
  set(generated ${PROJECT_BINARY_DIR}/embedded/${function}.cc)
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
#include "base/embedded.h"

namespace carillon {

std::span<const EmbeddedFile> @function@() {
  static constexpr EmbeddedFile kFiles[] = {
@rows@  };
  return kFiles;
}

}  // namespace carillon
]])
  target_sources(${target} PRIVATE ${generated})
endfunction()
