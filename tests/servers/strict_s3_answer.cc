#include "tests/servers/strict_s3_answer.h"

#include <ctime>

#include <fmt/format.h>

namespace millrace::testing {
namespace {

std::string format_time(S3Time time, const char* format) {
  const time_t seconds = std::chrono::system_clock::to_time_t(time);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  // -Wformat wants a literal format; the two callers below pass constants.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  return std::string(text, std::strftime(text, sizeof text, format, &utc));
#pragma GCC diagnostic pop
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML 1.0 has no way to say a control character; S3 sends the reference all the same,
        // which is why clients ask for encoding-type=url.
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "&#x{:x};", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
}

}  // namespace

std::unexpected<S3Error> s3_error(int status, std::string code, std::string message) {
  S3Error error;
  error.status = status;
  error.code = std::move(code);
  error.message = std::move(message);
  return std::unexpected(std::move(error));
}

XmlText::XmlText(std::string_view root) : root_(root) {
  text_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<" + root_;
  if (root != "Error") text_ += " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";
  text_ += '>';
}

XmlText& XmlText::open(std::string_view tag) {
  text_.append("<").append(tag).append(">");
  return *this;
}

XmlText& XmlText::close(std::string_view tag) {
  text_.append("</").append(tag).append(">");
  return *this;
}

XmlText& XmlText::leaf(std::string_view tag, std::string_view text) {
  open(tag);
  append_escaped(text_, text);
  return close(tag);
}

std::string XmlText::finish() {
  close(root_);
  return std::move(text_);
}

std::string error_xml(const S3Error& error, std::string_view resource,
                      std::string_view request_id) {
  XmlText xml("Error");
  xml.leaf("Code", error.code).leaf("Message", error.message);
  for (const auto& [tag, text] : error.elements) {
    xml.leaf(tag, text);
  }
  xml.leaf("Resource", resource).leaf("RequestId", request_id);
  return xml.finish();
}

HttpResponse xml_response(std::string body) {
  HttpResponse response;
  response.headers.add("Content-Type", "application/xml");
  response.body = std::move(body);
  return response;
}

std::string http_date(S3Time time) { return format_time(time, "%a, %d %b %Y %H:%M:%S GMT"); }
std::string iso_date(S3Time time) { return format_time(time, "%Y-%m-%dT%H:%M:%S.000Z"); }

}  // namespace millrace::testing
