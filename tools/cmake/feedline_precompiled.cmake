# SPDX-License-Identifier: Apache-2.0

# Those that most sources include. Each source names what it uses all the same: builds without this are the check.
set(feedline_standard_headers
    <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem> <functional> <map>
    <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>)

# feedline_precompile(TARGET HEADER... OPTIONS option...): TARGET parses the standard headers, and HEADER..., once for all
# targets that are compiled alike: the first with this kind, headers and options keeps them for the others. About 1 s a
# source with g++ 12. TESTS: of HEADER... alone, which each of these sources includes, so that what it forgets to name is
# missed as it is without this.
function(feedline_precompile target)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  if(NOT FEEDLINE_PRECOMPILED)
    return()
  endif()
  set(headers ${feedline_standard_headers})
  if(FEEDLINE_PRECOMPILED STREQUAL "TESTS")
    set(headers "")
  endif()
  list(APPEND headers ${ARG_UNPARSED_ARGUMENTS})
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "INTERFACE_LIBRARY" OR NOT headers)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # or ccache does not see what is in them
  else()
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")  # or no two of them are the same to it
  endif()
  string(MAKE_C_IDENTIFIER "feedline_precompiled_${kind}_${ARG_UNPARSED_ARGUMENTS}_${ARG_OPTIONS}" keeper)
  get_property(first GLOBAL PROPERTY ${keeper})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${headers})
    set_property(GLOBAL PROPERTY ${keeper} ${target})
  endif()
endfunction()
