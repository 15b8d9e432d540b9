// What the strict S3 server says: errors, XML, dates.
#pragma once

#include <chrono>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/servers/http_server.h"

namespace millrace::testing {

using S3Time = std::chrono::system_clock::time_point;

struct S3Error {
  int status = 400;
  std::string code;
  std::string message;
  std::vector<std::pair<std::string, std::string>> elements;  // More children of <Error>.
  HttpHeaders headers;
};

template <typename T>
using S3Result = std::expected<T, S3Error>;

// For `return s3_error(404, "NoSuchKey", "...")` in a function that returns S3Result.
std::unexpected<S3Error> s3_error(int status, std::string code, std::string message);

// Builds an XML document, element by element. Text is escaped.
class XmlText {
 public:
  // The document element, in S3's namespace unless it is an <Error>.
  explicit XmlText(std::string_view root);

  XmlText& open(std::string_view tag);
  XmlText& close(std::string_view tag);
  XmlText& leaf(std::string_view tag, std::string_view text);
  // Closes the document element and gives the text away.
  std::string finish();

 private:
  std::string root_;
  std::string text_;
};

std::string error_xml(const S3Error& error, std::string_view resource, std::string_view request_id);
HttpResponse xml_response(std::string body);

std::string http_date(S3Time time);  // Sun, 15 Nov 2026 10:00:00 GMT
std::string iso_date(S3Time time);   // 2026-11-15T10:00:00.000Z

}  // namespace millrace::testing
