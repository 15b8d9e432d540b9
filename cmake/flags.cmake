# Compiler and linker flags for everything that we compile. Targets take them by linking
# millrace_flags, so that nothing leaks into an outside project that adds us as a subdirectory.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)  # Without this CMake compiles with -fPIE but links without -pie.

# CMake's own values carry -DNDEBUG. Our assertions stay on in every build, because a data layer
# that goes on after a broken invariant serves wrong bytes. -g1 is enough for a stack trace.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_FLAGS_MINSIZEREL "-Os -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets it cache files that use a precompiled header; the base lets two checkouts
  # share what they compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 "${CCACHE}")
endif()

add_library(millrace_flags INTERFACE)
target_compile_features(millrace_flags INTERFACE cxx_std_23)
# Paths in messages and debug information start at the repository, wherever it was built.
target_compile_options(millrace_flags INTERFACE "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")

# ---- Warnings
# -Wconversion is not here but in millrace_layer(): a silently cut size is a bug in src/, while in
# tests it is mostly noise.
target_compile_options(millrace_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wextra-semi -Wcast-qual -Wformat=2 -Wvla)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(millrace_flags INTERFACE -Wthread-safety -Wthread-safety-beta)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports overlapping copies inside std::string that cannot happen (GCC bug 105651).
  target_compile_options(millrace_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC takes a .cc file that is included for a header, and warns of anonymous namespaces in it.
  target_compile_options(millrace_flags INTERFACE -Wno-subobject-linkage)
endif()
if(MILLRACE_WERROR)
  target_compile_options(millrace_flags INTERFACE -Werror)
endif()

# ---- Hardening
target_compile_definitions(millrace_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_compile_options(millrace_flags INTERFACE -fstack-protector-strong)
target_link_options(millrace_flags INTERFACE -Wl,-z,relro,-z,now -Wl,--as-needed)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i.86)$")
  target_compile_options(millrace_flags INTERFACE -fcf-protection=full)
endif()

# ---- Sanitizers
if(MILLRACE_SANITIZE)
  # Every finding ends the program: a report that scrolls past in a green test run is no report.
  # -g1 is enough for its stack traces, and saves an eighth of the time.
  target_compile_options(millrace_flags INTERFACE
    -fsanitize=${MILLRACE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(millrace_flags INTERFACE -fsanitize=${MILLRACE_SANITIZE})
  target_compile_definitions(millrace_flags INTERFACE MILLRACE_SANITIZED=1)  # Long tests do less.
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  # Fortified libc calls need optimisation, and hide their arguments from the sanitizers. Some
  # distributions predefine a lower level, hence the -U.
  target_compile_options(millrace_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()

find_package(Threads REQUIRED)
target_link_libraries(millrace_flags INTERFACE Threads::Threads)
