# Installation: both libraries, headers, a CMake package (attn::attn), a pkg-config file, and
# Debian packages through CPack. Components: runtime, development, tools.

include(CMakePackageConfigHelpers)

set_target_properties(attn_shared PROPERTIES EXPORT_NAME shared)
set_target_properties(attn_static PROPERTIES EXPORT_NAME static)
install(TARGETS attn_shared EXPORT attn-shared
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS attn_static EXPORT attn-static
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/attn" TYPE INCLUDE
  COMPONENT development FILES_MATCHING PATTERN "*.h")

# The command finds the library in whatever prefix both are installed.
if(TARGET attn_tool)
  file(RELATIVE_PATH attn_bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(attn_tool PROPERTIES INSTALL_RPATH "$ORIGIN/${attn_bin_to_lib}")
endif()

# ---- CMake package ------------------------------------------------------------------------------

set(attn_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/attn")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/attn-config.cmake.in"
  "${PROJECT_BINARY_DIR}/attn-config.cmake"
  INSTALL_DESTINATION "${attn_package_dir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attn-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/attn-config.cmake"
  "${PROJECT_BINARY_DIR}/attn-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Findjansson.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Findpthreadpool.cmake"
  DESTINATION "${attn_package_dir}" COMPONENT development)
foreach(kind IN ITEMS shared static)
  install(EXPORT attn-${kind} NAMESPACE attn:: FILE attn-${kind}.cmake
    DESTINATION "${attn_package_dir}" COMPONENT development)
endforeach()

# ---- pkg-config ---------------------------------------------------------------------------------

# GNUInstallDirs allows absolute folders. Where the library's folder is below the prefix, the prefix
# is written relative to the .pc file, so that the installed tree can be moved.
set(attn_pc_dir "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  string(REPLACE " " "\\ " attn_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  string(REPLACE " " "\\ " attn_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  file(RELATIVE_PATH attn_pc_up "${attn_pc_dir}" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" attn_pc_up "${attn_pc_up}")
  set(attn_pc_prefix "\${pcfiledir}/${attn_pc_up}")
  set(attn_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  string(REPLACE " " "\\ " attn_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(attn_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(attn_pc_private "-lm -pthread")
if(ATTN_WITH_IO)
  string(PREPEND attn_pc_private "-ljansson -lz ")
endif()
if(ATTN_HAVE_PTHREADPOOL)
  string(PREPEND attn_pc_private "-lpthreadpool ")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/attn.pc.in" "${PROJECT_BINARY_DIR}/attn.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/attn.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

# ---- Debian packages: cpack -G DEB --------------------------------------------------------------

set(CPACK_PACKAGE_NAME attn)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "attention in C, forward and backward")
set(CPACK_PACKAGE_VENDOR "The attn authors")
set(CPACK_PACKAGE_CONTACT "The attn authors <attn@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
if(ATTN_BUILD_TOOLS AND TARGET attn_tool)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
find_program(ATTN_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(ATTN_SHLIBDEPS)
if(ATTN_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  # The tools link with the library that this same build makes.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/src")
endif()

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libattn${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Attention in C: the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libattn-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libattn${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}), libpthreadpool-dev, libjansson-dev, zlib1g-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "Attention in C: headers, the static library, CMake and pkg-config files.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME attn-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS
  "libattn${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Attention in C: the attn command.")
include(CPack)
