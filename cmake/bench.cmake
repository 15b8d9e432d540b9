# bench/<name>_bench.cc are programs, which tools/bench runs; the other .cc files of the folder are
# what they share.
file(GLOB benches CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/*_bench.cc")
file(GLOB shared CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bench/*.cc")
list(REMOVE_ITEM shared ${benches})
# The NFS client of the tests is the load generator of the NFS benchmark.
file(GLOB nfs_client CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/frontends/nfs4/nfs_client_*.cc")
list(FILTER nfs_client EXCLUDE REGEX "_test\\.cc$")
list(APPEND shared ${nfs_client})

add_library(bench_shared STATIC ${shared})
target_link_libraries(bench_shared PUBLIC ${MILLRACE_TOP_LAYER} test_servers CLI11::CLI11
                                          nlohmann_json::nlohmann_json)
millrace_use_precompiled(bench_shared layers)
foreach(bench IN LISTS benches)
  cmake_path(GET bench STEM name)
  add_executable(${name} ${bench})
  target_link_libraries(${name} PRIVATE bench_shared)
endforeach()
