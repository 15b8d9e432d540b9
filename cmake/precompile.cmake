# Precompiled headers. Parsing the standard library and fmt is most of the work of a small file, so
# this halves a cold build. Every file still includes what it uses: the clang and fuzz presets
# build without them and would say so.
option(MILLRACE_PRECOMPILE "Precompile the headers that nearly every file includes" ON)

set(MILLRACE_PRECOMPILED
  <algorithm> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <deque> <expected>
  <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
  <unordered_map> <utility> <vector> <fmt/format.h>)

# millrace_precompile(<target> <headers>): for what the target's files include beside those above.
function(millrace_precompile target)
  if(NOT MILLRACE_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${MILLRACE_PRECOMPILED} ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache asks for it.
  endif()
endfunction()
