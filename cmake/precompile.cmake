# Precompiled headers. Parsing the standard library and fmt is most of the work of a small file, so
# this halves a cold build. Every file still includes what it uses: the clang preset builds without
# them and would say so. Unity builds need none, since they parse each header once anyway.
option(MILLRACE_PRECOMPILE "Precompile the headers that nearly every file includes" ON)

set(MILLRACE_PRECOMPILED
  <algorithm> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <deque> <expected>
  <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
  <unordered_map> <utility> <vector> <fmt/format.h>)

# millrace_precompiled(<set> LINKS <libraries> OPTIONS <flags> [HEADERS <headers>]): one set of
# precompiled headers. All its users must compile with the same options and definitions.
function(millrace_precompiled set)
  if(NOT MILLRACE_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINKS;OPTIONS;HEADERS" ${ARGN})
  set(source "${CMAKE_BINARY_DIR}/precompiled/${set}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(precompiled_${set} OBJECT "${source}")
  target_link_libraries(precompiled_${set} PRIVATE millrace_flags ${ARG_LINKS})
  target_compile_options(precompiled_${set} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(precompiled_${set} PRIVATE ${MILLRACE_PRECOMPILED} ${ARG_HEADERS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(precompiled_${set} PRIVATE -fpch-preprocess)  # ccache asks for it.
  endif()
endfunction()

# millrace_use_precompiled(<target> <set>)
function(millrace_use_precompiled target set)
  if(NOT MILLRACE_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM precompiled_${set})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A set that does not fit its user is a mistake in our CMake files, and would cost minutes.
    target_compile_options(${target} PRIVATE -fpch-preprocess -Winvalid-pch)
  endif()
endfunction()
