#include <string>

#include "fuzz/fuzz_input.h"
#include "objectstore/s3/s3_error.h"
#include "objectstore/s3/s3_headers.h"

// An answer to GET and HEAD: a byte for the status, then "name: value" lines, then a blank line and
// the body. A range that is accepted must be the one that was asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  if (size < 3) return 0;
  std::string_view text = fuzz_text(data + 3, size - 3);
  HttpResponse response;
  response.status = data[0] % 2 == 0 ? 206 : 200;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) break;
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    response.headers.add(std::string(line.substr(0, colon)), std::string(line.substr(colon + 2)));
  }
  response.body = Slice::copy_of(text);
  GetRequest request;
  request.key = ObjectKey("k");
  if (data[1] % 3 != 0) request.range = ByteRange{data[1], std::uint64_t{data[2]} + 1};
  if (const auto result = s3::parse_get(request, response)) {
    fuzz_require(result->data.text() == text);
    if (request.range) {
      fuzz_require(result->data.size() <= request.range->length);
      fuzz_require(request.range->offset + result->data.size() <= result->info.size);
    }
  }
  (void)s3::parse_object_headers(request.key, response.headers);
  response.status = 100 + data[0] * 2;
  (void)s3::status_of(s3::read_error(response), response, "GET s3://b/k");
  return 0;
}
