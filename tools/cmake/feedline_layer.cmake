# SPDX-License-Identifier: Apache-2.0

# feedline_layer(NAME DEPS folder... LIBS target...): src/NAME/*.cpp as the static library feedline_NAME, and its
# *_test.cpp as the program feedline_NAME_tests. What links it compiles as C++23, as the public headers are.
function(feedline_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(TRANSFORM ARG_DEPS PREPEND feedline_ OUTPUT_VARIABLE deps)
  if(NOT sources)
    add_library(feedline_${name} INTERFACE)
    feedline_export(feedline_${name} ${name})
    return()
  endif()
  add_library(feedline_${name} STATIC ${sources})
  target_compile_features(feedline_${name} PUBLIC cxx_std_23)
  target_include_directories(feedline_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(feedline_${name} PUBLIC ${deps} Threads::Threads PRIVATE ${ARG_LIBS})
  feedline_export(feedline_${name} ${name})
  if(FEEDLINE_TESTS AND NOT ${name} IN_LIST FEEDLINE_TESTS_WITHOUT)
    feedline_tests(${name} src/${name} DEPS ${name} LIBS ${ARG_LIBS})
  endif()
endfunction()

# feedline_export(TARGET NAME): TARGET is installed, and is feedline::NAME to those who find it.
function(feedline_export target name)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  if(FEEDLINE_INSTALL)
    install(TARGETS ${target} EXPORT feedline_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endif()
endfunction()

# feedline_tests(NAME FOLDER DEPS folder... LIBS target...): FOLDER/*_test.cpp as one GoogleTest program.
function(feedline_tests name folder)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  list(TRANSFORM ARG_DEPS PREPEND feedline_ OUTPUT_VARIABLE deps)
  add_executable(feedline_${name}_tests ${sources})
  target_include_directories(feedline_${name}_tests PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(feedline_${name}_tests PRIVATE ${deps} ${ARG_LIBS} GTest::gtest_main)
  gtest_discover_tests(feedline_${name}_tests TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60)
endfunction()
