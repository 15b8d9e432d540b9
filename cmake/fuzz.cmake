# fuzz/<name>_fuzz.cc are libFuzzer programs; tools/fuzz runs them. All of src/ is compiled with
# the fuzzer's coverage counters (MILLRACE_SANITIZE in the asan preset), only these link its main().
file(GLOB fuzzers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.cc")
add_custom_target(fuzzers)
foreach(fuzzer IN LISTS fuzzers)
  cmake_path(GET fuzzer STEM name)
  add_executable(${name} ${fuzzer})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE millrace_app)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endforeach()
