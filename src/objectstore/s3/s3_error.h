#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "objectstore/s3/s3_xml.h"
#include "platform/http_client.h"

namespace millrace::s3 {

// A failed answer, read once.
struct S3Error {
  int http_status = 0;
  ErrorDocument document;
};
S3Error read_error(const HttpResponse& response);

// What the caller can do about it, with a sentence that begins with `what` ("GET s3://b/k"). The
// only place that knows S3's error codes.
Status status_of(const S3Error& error, const HttpResponse& response, std::string_view what);

}  // namespace millrace::s3
