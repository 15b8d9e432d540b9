# tests/servers: the servers that tests and benchmarks start, and the clients that they are used
# with, as the library test_servers, and each *_main.cc as a program of its own, to be started by
# hand.
file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/servers/*.cc")
set(mains ${sources})
list(FILTER mains INCLUDE REGEX "_main\\.cc$")
list(FILTER sources EXCLUDE REGEX "_(main|test)\\.cc$")

add_library(test_servers STATIC ${sources})
target_include_directories(test_servers PUBLIC "${CMAKE_SOURCE_DIR}")
# Some servers are scripts of tools/; this finds them for a test that is started by hand.
set_source_files_properties(
  "${CMAKE_SOURCE_DIR}/tests/servers/ceph_server.cc"
  "${CMAKE_SOURCE_DIR}/tests/servers/nfs_guest.cc" PROPERTIES
  COMPILE_DEFINITIONS "MILLRACE_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\"")
target_link_libraries(test_servers PUBLIC
  millrace_flags millrace_objectstore OpenSSL::SSL OpenSSL::Crypto CURL::libcurl pugixml::pugixml
  fmt::fmt)
millrace_use_precompiled(test_servers layers)
foreach(main IN LISTS mains)
  cmake_path(GET main STEM name)
  string(REGEX REPLACE "_main$" "" name "${name}")
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE test_servers)
endforeach()
