# Tests mirror src/: tests/<layer>/**_test.cc become <layer>_tests (ctest label "unit", or "program"
# for those that run the whole program, which take longer), and **_torture_test.cc become
# <layer>_torture (label "torture"), which scale with MILLRACE_SCALE. The targets unit_tests and
# program_tests build all of a label.
# tests/servers_test has a label of its own, "servers": sanitizers skip the tests of our test servers.
# So has tests/nfs_guest, "guest": an emulated machine that mounts us over NFS takes minutes.
# Other .cc files of the folder, as contract suites, are linked into both. tests/tools holds Python
# tests of tools/.
millrace_require(GTest "libgtest-dev libgmock-dev")
millrace_require_module(libnfs libnfs-dev)

# In a release build the code under test is optimised, the tests themselves are not: they compile in
# half the time, and none of them is where time is spent. -fPIC, as in libraries, because programs
# (-fPIE) could not share precompiled headers with the suites that are linked into several.
set(MILLRACE_TEST_OPTIONS -O0 -U_FORTIFY_SOURCE -fPIC)
millrace_precompiled(tests LINKS fmt::fmt spdlog::spdlog GTest::gtest
                     OPTIONS ${MILLRACE_TEST_OPTIONS} HEADERS <gtest/gtest.h>)

# millrace_test(<executable> <label> <libraries and sources>)
function(millrace_test name label libraries)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ${libraries} GTest::gtest_main)
  millrace_use_precompiled(${name} tests)
  target_compile_options(${name} PRIVATE ${MILLRACE_TEST_OPTIONS})
  add_test(NAME ${name} COMMAND ${name})
  set(environment "MILLRACE_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
  if(TARGET millrace)
    list(APPEND environment "MILLRACE_BIN=$<TARGET_FILE:millrace>")  # For tests of the program.
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label} ENVIRONMENT "${environment}")
  if(name MATCHES "^(objectstore|servers_test)_")
    # Each starts Ceph: two clusters and a sanitizer at once starve on two cores.
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK ceph)
  endif()
  if(DEFINED ENV{CI})
    # There everything is installed, and it runs as root: nobody would see what is skipped.
    set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
  if(label STREQUAL "torture")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)  # They want the machine to themselves.
  endif()
endfunction()

# millrace_test_folder(<folder>): the programs of one folder of tests/.
function(millrace_test_folder folder)
  cmake_path(GET folder FILENAME layer)
  file(GLOB_RECURSE shared CONFIGURE_DEPENDS "${folder}/*.cc")
  millrace_leave_out(shared)
  set(torture ${shared})
  set(unit ${shared})
  list(FILTER torture INCLUDE REGEX "_torture_test\\.cc$")
  list(FILTER unit INCLUDE REGEX "_test\\.cc$")
  list(REMOVE_ITEM unit ${torture})
  list(REMOVE_ITEM shared ${unit} ${torture})

  # A folder that is no layer, as tests of the whole program, gets all layers.
  set(libraries ${MILLRACE_TOP_LAYER})
  if(TARGET millrace_${layer})
    set(libraries millrace_${layer})
  endif()
  list(APPEND libraries test_servers GTest::gmock)
  if(layer STREQUAL "frontends")
    list(APPEND libraries PkgConfig::libnfs)
  endif()

  if(shared)
    # Objects and not an archive: the linker would drop suites that only register themselves.
    add_library(${layer}_shared_tests OBJECT ${shared})
    target_link_libraries(${layer}_shared_tests PUBLIC ${libraries})
    millrace_use_precompiled(${layer}_shared_tests tests)
    target_compile_options(${layer}_shared_tests PRIVATE ${MILLRACE_TEST_OPTIONS})
    list(APPEND libraries ${layer}_shared_tests)
  endif()
  if(unit)
    set(label unit)
    if(layer STREQUAL "servers_test")
      set(label servers)
    elseif(layer STREQUAL "nfs_guest")
      set(label guest)
    elseif(layer MATCHES "^(abi|cli)$")
      set(label program)
    endif()
    millrace_test(${layer}_tests ${label} "${libraries}" ${unit})
    if(TARGET ${label}_tests)
      add_dependencies(${label}_tests ${layer}_tests)
    endif()
  endif()
  if(torture)
    millrace_test(${layer}_torture torture "${libraries}" ${torture})
  endif()
endfunction()

add_custom_target(unit_tests)
add_custom_target(program_tests)
if(TARGET millrace)
  # Some of the first run it too.
  add_dependencies(unit_tests millrace)
  add_dependencies(program_tests millrace)
endif()
file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true "${CMAKE_SOURCE_DIR}/tests/*")
foreach(folder IN LISTS folders)
  if(IS_DIRECTORY "${folder}" AND NOT folder MATCHES "/(servers|tools)$")
    millrace_test_folder("${folder}")
  endif()
endforeach()

file(GLOB python_tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/tools/*_test.py")
foreach(test IN LISTS python_tests)
  cmake_path(GET test STEM name)
  add_test(NAME tools_${name} COMMAND Python3::Interpreter "${test}")
  set_tests_properties(tools_${name} PROPERTIES LABELS unit)
endforeach()

# The Python package, over the library as it is built; skipped where PyPI's libraries are not.
if(TARGET millrace_shared)
  foreach(what types tests torch)
    add_test(NAME python_${what} COMMAND "${CMAKE_SOURCE_DIR}/tools/python_tests" ${what})
    set_tests_properties(python_${what} PROPERTIES LABELS python SKIP_RETURN_CODE 77 ENVIRONMENT
      "MILLRACE_LIBRARY=$<TARGET_FILE:millrace_shared>;MILLRACE_BIN=$<TARGET_FILE:millrace>")
  endforeach()
  # With everything installed no test of it may be skipped: nobody would see that.
  set_tests_properties(python_torch PROPERTIES FAIL_REGULAR_EXPRESSION "[0-9]+ skipped")
endif()
