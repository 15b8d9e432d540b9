# Looking for libraries, with a sentence that says what to do when one is absent.

# millrace_require(<CMake package> <Debian package>): a library that Millrace cannot do without.
macro(millrace_require package debian)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "Millrace needs ${package}. Run 'make setup', or install ${debian} "
                        "(Debian, Ubuntu) or your distribution's package of the same library.")
  endif()
endmacro()

# millrace_require_module(<pkg-config module> <Debian package>): the same for a library that has no
# CMake package; the target to link is PkgConfig::<module>.
macro(millrace_require_module module debian)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(${module} QUIET IMPORTED_TARGET ${module})
  if(NOT ${module}_FOUND)
    message(FATAL_ERROR "Millrace needs ${module}. Run 'make setup', or install ${debian} "
                        "(Debian, Ubuntu) or your distribution's package of the same library.")
  endif()
endmacro()

# millrace_option(<NAME> <what it gives> PKG <pkg-config module> DEBIAN <package> FILES <globs>):
# a part that needs a library which may be absent elsewhere. It is on by default, and turning it
# off is the builder's decision: a silently smaller binary is a bad surprise.
#   -DMILLRACE_WITH_<NAME>=OFF   leaves out the sources that match FILES
#   MILLRACE_WITH_<NAME>         is defined as 1 or 0 for all code
#   MILLRACE_<NAME>_LIBRARY      is the target to link, empty when off
function(millrace_option name what)
  cmake_parse_arguments(ARG "" "PKG;DEBIAN" "FILES" ${ARGN})
  option(MILLRACE_WITH_${name} "${what}" ON)
  if(MILLRACE_WITH_${name})
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET ${ARG_PKG})
    if(NOT ${name}_FOUND)
      message(FATAL_ERROR "The ${what} needs ${ARG_PKG}. Run 'make setup', install ${ARG_DEBIAN}, "
                          "or build without it: -DMILLRACE_WITH_${name}=OFF")
    endif()
    set(MILLRACE_${name}_LIBRARY PkgConfig::${name} PARENT_SCOPE)
    target_compile_definitions(millrace_flags INTERFACE MILLRACE_WITH_${name}=1)
  else()
    set(MILLRACE_${name}_LIBRARY "" PARENT_SCOPE)
    target_compile_definitions(millrace_flags INTERFACE MILLRACE_WITH_${name}=0)
    set_property(GLOBAL APPEND PROPERTY MILLRACE_LEFT_OUT ${ARG_FILES})
  endif()
endfunction()

# millrace_leave_out(<list variable>): removes the files of the options that are off.
function(millrace_leave_out list_name)
  set(files ${${list_name}})
  get_property(globs GLOBAL PROPERTY MILLRACE_LEFT_OUT)
  foreach(glob IN LISTS globs)
    file(GLOB_RECURSE left_out CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${glob}")
    list(REMOVE_ITEM files ${left_out})
  endforeach()
  set(${list_name} "${files}" PARENT_SCOPE)
endfunction()
