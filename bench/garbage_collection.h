#pragma once

#include "tests/servers/ceph_server.h"

namespace millrace::bench {

// Returns when Ceph has worked off what was deleted: not before its garbage collector has had its
// turn, and then as soon as its processes are at rest, or after 15 s at the latest.
void wait_for_garbage_collection(const millrace::testing::CephServer& ceph);

}  // namespace millrace::bench
