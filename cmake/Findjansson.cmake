# Finds jansson, the JSON library. Defines the imported target jansson::jansson, whether or not
# the installed jansson came with a CMake package of its own.
find_path(jansson_INCLUDE_DIR NAMES jansson.h)
find_library(jansson_LIBRARY NAMES jansson)
mark_as_advanced(jansson_INCLUDE_DIR jansson_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(jansson
  REQUIRED_VARS jansson_LIBRARY jansson_INCLUDE_DIR)

if(jansson_FOUND AND NOT TARGET jansson::jansson)
  add_library(jansson::jansson UNKNOWN IMPORTED)
  set_target_properties(jansson::jansson PROPERTIES
    IMPORTED_LOCATION "${jansson_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${jansson_INCLUDE_DIR}")
endif()
