# The library behind src/base/version.h. The version is the one in project(); the git revision is
# looked up at each build by cmake/git_revision.cmake, which rewrites version.cc only when the
# answer changed: a commit costs one small compilation and the links, never a full rebuild.
set(version_source "${CMAKE_BINARY_DIR}/generated/version.cc")
add_custom_target(git_revision
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${CMAKE_SOURCE_DIR}" "-DVERSION=${PROJECT_VERSION}"
          "-DOUTPUT=${version_source}" -P "${CMAKE_SOURCE_DIR}/cmake/git_revision.cmake"
  BYPRODUCTS "${version_source}"
  COMMENT "Looking up the git revision")
add_library(millrace_version STATIC "${version_source}")
add_dependencies(millrace_version git_revision)
target_include_directories(millrace_version PRIVATE "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(millrace_version PRIVATE millrace_flags)
