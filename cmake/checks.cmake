# Checks on the source text that run as part of the build.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# An include that points up fails every build. The stamp makes an unchanged tree cost nothing.
function(millrace_check_layers)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       "${CMAKE_SOURCE_DIR}/src/*.h" "${CMAKE_SOURCE_DIR}/src/*.cc")
  set(stamp "${CMAKE_BINARY_DIR}/check_layers.stamp")
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND Python3::Interpreter tools/check_layers.py
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${sources} cmake/layers.txt tools/check_layers.py
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
    COMMENT "Checking that no include points up")
  add_custom_target(check_layers ALL DEPENDS "${stamp}")
endfunction()

# The target check_headers compiles each header by itself: a header that needs another one before
# it breaks the next person who includes it. It is not part of ALL, because it takes a while.
function(millrace_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/*.h")
  millrace_leave_out(headers)
  set(alone)
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${CMAKE_SOURCE_DIR}/src")
    set(source "${CMAKE_BINARY_DIR}/headers/${header}.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n")
    list(APPEND alone "${source}")
  endforeach()
  add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${alone})
  set_target_properties(check_headers PROPERTIES UNITY_BUILD OFF)
  # We want the compiler's opinion, not its code.
  target_compile_options(check_headers PRIVATE -O0 -g0 -U_FORTIFY_SOURCE)
  target_link_libraries(check_headers PRIVATE ${MILLRACE_TOP_LAYER})
  target_include_directories(check_headers PRIVATE "${CMAKE_SOURCE_DIR}/include")
endfunction()
