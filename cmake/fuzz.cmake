# fuzz/<name>_fuzz.cc are libFuzzer programs; tools/fuzz runs them. All of src/ is compiled with
# the fuzzer's coverage counters (MILLRACE_SANITIZE in the asan preset), only these link its main().
file(GLOB fuzzers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.cc")
add_custom_target(fuzzers)
foreach(fuzzer IN LISTS fuzzers)
  cmake_path(GET fuzzer STEM name)
  add_executable(${name} ${fuzzer})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${MILLRACE_TOP_LAYER})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endforeach()
# The NFS client of the tests writes the calls to the server that is fuzzed, and reads its answers.
target_sources(nfs_compound_fuzz PRIVATE "${CMAKE_SOURCE_DIR}/tests/frontends/nfs4/nfs_client_call.cc")
