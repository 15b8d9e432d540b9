# Script for "cmake -P": writes OUTPUT with VERSION and the revision of the work tree SOURCE_DIR.
execute_process(
  COMMAND git -C "${SOURCE_DIR}" rev-parse --short=10 HEAD
  OUTPUT_VARIABLE GIT_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(GIT_REVISION "unknown")  # An unpacked source tarball, or a repository without a commit.
endif()
# configure_file() leaves the file alone when its content would be the same.
configure_file("${CMAKE_CURRENT_LIST_DIR}/version.cc.in" "${OUTPUT}" @ONLY)
