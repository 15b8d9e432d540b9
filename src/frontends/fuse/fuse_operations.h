#pragma once

#include <cstdint>
#include <string_view>

#include "frontends/fuse/fuse_connection.h"
#include "frontends/fuse/fuse_request.h"
#include "metrics/metric_table.h"

namespace millrace {

// Answers one kind of request; each is in a file of its own. It may block until the call's
// deadline; reads are answered later, on any thread.
using FuseOperation = void (*)(FuseCall call, const FuseRequest& request);

void fuse_lookup(FuseCall call, const FuseRequest& request);
void fuse_getattr(FuseCall call, const FuseRequest& request);
void fuse_readlink(FuseCall call, const FuseRequest& request);
void fuse_open(FuseCall call, const FuseRequest& request);
void fuse_read(FuseCall call, const FuseRequest& request);
void fuse_release(FuseCall call, const FuseRequest& request);
void fuse_statfs(FuseCall call, const FuseRequest& request);
void fuse_opendir(FuseCall call, const FuseRequest& request);
void fuse_readdir(FuseCall call, const FuseRequest& request);
void fuse_readdirplus(FuseCall call, const FuseRequest& request);
void fuse_getxattr(FuseCall call, const FuseRequest& request);
void fuse_listxattr(FuseCall call, const FuseRequest& request);

// The operation of a request, and how it is counted. Null for what we do not do; the kernel is told
// so once and then does without.
struct FuseHandler {
  FuseOperation operation = nullptr;
  FuseMetricOperation counted = FuseMetricOperation::kOther;
};
FuseHandler fuse_handler(std::uint32_t opcode);

}  // namespace millrace
