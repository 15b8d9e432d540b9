// Which operation a request asks for.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/ascii.h"
#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {
namespace {

struct Route {
  std::string_view method;
  bool of_object;  // Else of a bucket.
  bool is_copy;    // Needs x-amz-copy-source; the others refuse it.
  std::vector<std::string_view> required;
  std::vector<std::string_view> optional;
  S3Operation operation;
};

// The more specific route stands first.
const std::vector<Route>& routes() {
  static const std::vector<Route> table = {
      {"PUT", true, true, {"partNumber", "uploadId"}, {}, upload_part_copy},
      {"PUT", true, false, {"partNumber", "uploadId"}, {}, upload_part},
      {"PUT", true, true, {}, {}, copy_object},
      {"PUT", true, false, {}, {}, put_object},
      {"GET", true, false, {"uploadId"}, {"part-number-marker"}, list_parts},
      {"GET", true, false, {}, {}, get_object},
      {"HEAD", true, false, {}, {}, get_object},
      {"DELETE", true, false, {"uploadId"}, {}, abort_upload},
      {"DELETE", true, false, {}, {}, delete_object},
      {"POST", true, false, {"uploads"}, {}, create_upload},
      {"POST", true, false, {"uploadId"}, {}, complete_upload},
      {"POST", false, false, {"delete"}, {}, delete_objects},
      {"GET", false, false, {"uploads"}, {"prefix", "encoding-type"}, list_uploads},
      {"GET", false, false, {"location"}, {}, get_bucket_location},
      {"GET",
       false,
       false,
       {"list-type"},
       {"prefix", "delimiter", "max-keys", "continuation-token", "start-after", "encoding-type",
        "fetch-owner"},
       list_objects_v2},
      {"HEAD", false, false, {}, {}, head_bucket},
  };
  return table;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool matches(const Route& route, const HttpRequest& request, bool has_key) {
  return route.method == request.method && route.of_object == has_key &&
         route.is_copy == request.headers.has("x-amz-copy-source") &&
         std::all_of(route.required.begin(), route.required.end(),
                     [&](std::string_view name) { return request.has_query(name); });
}

// A header that means something to S3 and nothing to us must not be dropped in silence.
bool is_known_header(std::string_view field) {
  static constexpr std::array<std::string_view, 7> kUnserved = {
      "if-range",          "if-modified-since", "if-unmodified-since", "content-encoding",
      "transfer-encoding", "cache-control",     "content-disposition"};
  static constexpr std::array<std::string_view, 12> kAmz = {"x-amz-date",
                                                            "x-amz-content-sha256",
                                                            "x-amz-security-token",
                                                            "x-amz-user-agent",
                                                            "x-amz-sdk-checksum-algorithm",
                                                            "x-amz-metadata-directive",
                                                            "x-amz-mp-object-size",
                                                            "x-amz-copy-source",
                                                            "x-amz-copy-source-range",
                                                            "x-amz-copy-source-if-match",
                                                            "x-amz-copy-source-if-none-match",
                                                            "x-amz-request-payer"};
  const std::string name = lower_case(field);
  if (contains(kUnserved, name)) return false;
  return !name.starts_with("x-amz-") || name.starts_with("x-amz-meta-") ||
         name.starts_with("x-amz-checksum-") || contains(kAmz, name);
}

}  // namespace

S3Result<S3Operation> find_operation(const HttpRequest& request, bool has_key) {
  // A body without a length first, so that the client learns what is really wrong.
  if ((request.method == "PUT" || request.method == "POST") &&
      !request.headers.has("Content-Length")) {
    return s3_error(411, "MissingContentLength",
                    "You must provide the Content-Length HTTP header.");
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_known_header(name)) {
      return s3_error(501, "NotImplemented", "This server does not know the header " + name);
    }
  }
  for (const Route& route : routes()) {
    if (!matches(route, request, has_key)) continue;
    for (const auto& [name, value] : request.query) {
      // SDKs name the operation in x-id; it means nothing.
      if (!contains(route.required, name) && !contains(route.optional, name) && name != "x-id") {
        return s3_error(501, "NotImplemented",
                        "This server does not know the query parameter " + name);
      }
    }
    return route.operation;
  }
  return s3_error(501, "NotImplemented", "This server does not know that operation.");
}

S3Result<HttpResponse> head_bucket(S3World& world, const S3Call&) {
  HttpResponse response;
  response.headers.add("x-amz-bucket-region", world.options.region);
  return response;
}

S3Result<HttpResponse> get_bucket_location(S3World& world, const S3Call&) {
  XmlText xml("LocationConstraint");
  std::string body = xml.finish();
  // The region stands in the document element itself, and us-east-1 is the empty one.
  if (world.options.region != "us-east-1") {
    body.insert(body.rfind("</"), world.options.region);
  }
  return xml_response(std::move(body));
}

}  // namespace millrace::testing
