# SPDX-License-Identifier: Apache-2.0

# Those that most sources include. Each source names what it uses all the same: builds without this are the check.
set(feedline_standard_headers
    <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem> <functional> <map>
    <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>)

# feedline_precompile(TARGET HEADER... OPTIONS option...): TARGET parses the standard headers, and HEADER..., once for all
# targets that are compiled alike: the first with this kind, headers and options keeps them for the others. About 1.2 s a
# source with g++ 12. ccache knows nothing of what is in them, so this is for machines without it.
function(feedline_precompile target)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  if(NOT FEEDLINE_PRECOMPILED)
    return()
  endif()
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "INTERFACE_LIBRARY")
    return()
  endif()
  string(MAKE_C_IDENTIFIER "feedline_precompiled_${kind}_${ARG_UNPARSED_ARGUMENTS}_${ARG_OPTIONS}" keeper)
  get_property(first GLOBAL PROPERTY ${keeper})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${feedline_standard_headers} ${ARG_UNPARSED_ARGUMENTS})
    set_property(GLOBAL PROPERTY ${keeper} ${target})
  endif()
endfunction()
