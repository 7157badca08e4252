# SPDX-License-Identifier: Apache-2.0

# `cmake --install BUILD --component development` installs for find_package(feedline) the static libraries (in
# feedline_layer), the public headers and the package files. A wheel does not include them.
include(CMakePackageConfigHelpers)
set(feedline_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/feedline)

feedline_export(feedline feedline)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/feedline DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT feedline_targets NAMESPACE feedline:: DESTINATION ${feedline_cmake_folder} COMPONENT development)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/feedlineConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/feedlineConfig.cmake INSTALL_DESTINATION ${feedline_cmake_folder})
# Before 1.0, a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/feedlineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/feedlineConfig.cmake ${PROJECT_BINARY_DIR}/feedlineConfigVersion.cmake
        DESTINATION ${feedline_cmake_folder} COMPONENT development)
