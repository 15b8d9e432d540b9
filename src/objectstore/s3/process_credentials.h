#pragma once

#include <string>

#include "base/clock.h"
#include "objectstore/s3/credentials.h"

namespace millrace::s3 {

// Runs a profile's credential_process through /bin/sh and reads the JSON that it prints. It ends
// with the context, and after one minute at the latest; then the process and its children are
// killed. Its standard error is ours, so that its own words reach the user; what it prints to
// standard output is secret and appears nowhere. Blocks; safe from any thread.
Result<Credentials> run_credential_process(const RequestContext& context, Clock& clock,
                                           const std::string& command, const std::string& source);

}  // namespace millrace::s3
