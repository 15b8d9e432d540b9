# One static library per layer of src/, linked as cmake/layers.txt allows.

# The layers that <layer> may use, by cmake/layers.txt.
function(millrace_layers_below layer result)
  file(STRINGS "${CMAKE_SOURCE_DIR}/cmake/layers.txt" line REGEX "^${layer}:")
  if(NOT line)
    message(FATAL_ERROR "Layer ${layer} is not in cmake/layers.txt")
  endif()
  string(REGEX REPLACE "^[^:]*:" "" below "${line}")
  separate_arguments(below)
  set(${result} "${below}" PARENT_SCOPE)
endfunction()
set_property(DIRECTORY APPEND PROPERTY
             CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/layers.txt")

# millrace_layer(<name> LINKS <libraries>): the library millrace_<name> from
# src/<name>/**.cc.
# Calls go lowest layer first. A layer that has no source yet is skipped.
function(millrace_layer name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.cc")
  millrace_leave_out(sources)
  if(NOT sources)
    return()
  endif()
  add_library(millrace_${name} STATIC ${sources})
  target_include_directories(millrace_${name} PUBLIC "${CMAKE_SOURCE_DIR}/src")
  target_compile_options(millrace_${name} PRIVATE -Wconversion -Wno-sign-conversion)
  target_link_libraries(millrace_${name} PUBLIC millrace_flags millrace_version ${ARG_LINKS})
  millrace_use_precompiled(millrace_${name} layers)
  millrace_layers_below(${name} below)
  foreach(layer IN LISTS below)
    if(TARGET millrace_${layer})
      target_link_libraries(millrace_${name} PUBLIC millrace_${layer})
    endif()
  endforeach()
  # Calls come in order, so the last one is the top of the house so far.
  set(MILLRACE_TOP_LAYER millrace_${name} PARENT_SCOPE)
endfunction()

# millrace_abi(LINKS <libraries>): the layer src/abi, and with it all below as one shared library,
# <binary dir>/libmillrace.so, that shows what include/millrace.h declares and nothing else.
macro(millrace_abi)
  set(top_below "${MILLRACE_TOP_LAYER}")
  millrace_layer(abi ${ARGN})
  # The program does not stand on it.
  set(MILLRACE_TOP_LAYER "${top_below}")
  target_include_directories(millrace_abi PUBLIC "${CMAKE_SOURCE_DIR}/include")
  file(WRITE "${CMAKE_BINARY_DIR}/generated/exports.map" "{ global: mr_*; local: *; };\n")
  add_library(millrace_shared SHARED $<TARGET_OBJECTS:millrace_abi>)
  set_target_properties(millrace_shared PROPERTIES OUTPUT_NAME millrace LINKER_LANGUAGE CXX)
  target_link_libraries(millrace_shared PRIVATE millrace_abi)
  target_link_options(millrace_shared PRIVATE
    "-Wl,--version-script=${CMAKE_BINARY_DIR}/generated/exports.map")
endmacro()

# The program itself: src/main.cc, at <binary dir>/millrace.
function(millrace_program)
  file(GLOB main CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/main.cc")
  if(main)
    add_executable(millrace ${main})
    target_link_libraries(millrace PRIVATE ${MILLRACE_TOP_LAYER})
  endif()
endfunction()
