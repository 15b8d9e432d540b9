#include "objectstore/s3/s3_xml.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "base/time_format.h"
#include "objectstore/s3/uri.h"

namespace millrace::s3 {
namespace {

std::unexpected<Status> malformed(std::string_view what, std::string_view why) {
  return failure(StatusCode::kCorruption,
                 fmt::format("the store's answer to {} is not what S3 defines: {}", what, why));
}

bool load(std::string_view xml, pugi::xml_document& document) {
  return document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8);
}

Result<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    return failure(StatusCode::kInternal, fmt::format("'{}' is not a number", text));
  }
  return value;
}

// Keys and prefixes come encoded as in a form: AWS writes a space as '+', others as "%20".
Result<std::string> decode_key(std::string text) {
  std::ranges::replace(text, '+', ' ');
  return decode_uri_component(text);
}

Result<ObjectInfo> parse_object(const pugi::xml_node& node) {
  ObjectInfo info;
  MR_ASSIGN_OR_RETURN(std::string key, decode_key(node.child_value("Key")));
  if (key.empty()) return malformed("list", "an object without a key");
  info.key = ObjectKey(std::move(key));
  MR_ASSIGN_OR_RETURN(info.size, parse_number(node.child_value("Size")));
  info.identity = ObjectIdentity(node.child_value("ETag"));
  if (info.identity.value().empty()) return malformed("list", "an object without an ETag");
  // Stores differ in the digits of the fraction; a time that cannot be read is not worth a failure.
  if (auto modified = parse_iso8601(node.child_value("LastModified"))) info.modified = *modified;
  return info;
}

// XML 1.0 has no way to write most control characters, so a key with one cannot be named in a body.
std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
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
      case '\'':
        out += "&apos;";
        break;
      case '\r':
        out += "&#13;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\t':
        out += "&#9;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

Status check_order(const ListPage& page) {
  const auto key_order = [](const ObjectInfo& a, const ObjectInfo& b) {
    return a.key.value() < b.key.value();
  };
  const bool ascending =
      std::ranges::adjacent_find(page.objects,
                                 [&](const auto& a, const auto& b) { return !key_order(a, b); }) ==
          page.objects.end() &&
      std::ranges::adjacent_find(page.prefixes, std::greater_equal<>{}) == page.prefixes.end();
  if (ascending) return {};
  // Everything above walks listings as sorted: an unsorted one would lose keys silently.
  return {StatusCode::kInternal,
          "the store lists keys out of order or twice; stores that do not sort (S3 directory "
          "buckets) cannot be used"};
}

}  // namespace

ErrorDocument parse_error(std::string_view xml) {
  pugi::xml_document document;
  if (!load(xml, document)) return {};
  const pugi::xml_node error = document.child("Error");
  return {error.child_value("Code"), error.child_value("Message"), error.child_value("Region")};
}

Result<ListPage> parse_list(std::string_view xml) {
  pugi::xml_document document;
  if (!load(xml, document)) return malformed("list", "it is not XML, or was cut short");
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return malformed("list", "there is no <ListBucketResult>");
  ListPage page;
  for (const pugi::xml_node node : root.children("Contents")) {
    MR_ASSIGN_OR_RETURN(ObjectInfo info, parse_object(node));
    page.objects.push_back(std::move(info));
  }
  for (const pugi::xml_node node : root.children("CommonPrefixes")) {
    MR_ASSIGN_OR_RETURN(std::string prefix, decode_key(node.child_value("Prefix")));
    page.prefixes.push_back(std::move(prefix));
  }
  MR_RETURN_IF_ERROR(check_order(page));
  const std::string_view truncated = root.child_value("IsTruncated");
  if (truncated == "true") {
    page.continuation = root.child_value("NextContinuationToken");
    if (page.continuation.empty()) return malformed("list", "more pages but no token for the next");
  } else if (truncated != "false") {
    return malformed("list", "it does not say whether more follows (<IsTruncated>)");
  }
  return page;
}

Result<std::string> parse_create_upload(std::string_view xml) {
  pugi::xml_document document;
  if (!load(xml, document)) return malformed("CreateMultipartUpload", "it is not XML");
  std::string id = document.child("InitiateMultipartUploadResult").child_value("UploadId");
  if (id.empty()) return malformed("CreateMultipartUpload", "there is no <UploadId>");
  return id;
}

Result<std::string> parse_etag(std::string_view xml) {
  pugi::xml_document document;
  if (!load(xml, document)) return malformed("a write", "it is not XML");
  std::string etag = document.document_element().child_value("ETag");
  if (etag.empty()) return malformed("a write", "there is no <ETag>");
  return etag;
}

Result<std::vector<RemoveFailure>> parse_remove(std::string_view xml) {
  pugi::xml_document document;
  if (!load(xml, document)) return malformed("DeleteObjects", "it is not XML");
  const pugi::xml_node root = document.child("DeleteResult");
  if (!root) return malformed("DeleteObjects", "there is no <DeleteResult>");
  std::vector<RemoveFailure> failures;
  for (const pugi::xml_node node : root.children("Error")) {
    failures.push_back(
        {node.child_value("Key"), node.child_value("Code"), node.child_value("Message")});
  }
  return failures;
}

std::string write_remove(std::span<const ObjectKey> keys) {
  std::string xml = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>";
  for (const ObjectKey& key : keys) {
    xml += "<Object><Key>" + escape(key.value()) + "</Key></Object>";
  }
  return xml + "</Delete>";
}

std::string write_complete(std::span<const UploadedPart> parts) {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (const UploadedPart& part : parts) {
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag>", part.number,
                       escape(part.etag));
    if (!part.crc32c.empty()) {
      xml += fmt::format("<ChecksumCRC32C>{}</ChecksumCRC32C>", part.crc32c);
    }
    xml += "</Part>";
  }
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace millrace::s3
