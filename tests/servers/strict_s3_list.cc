// ListObjectsV2.
#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "tests/servers/strict_s3_digest.h"
#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {
namespace {

constexpr size_t kHugeAnswerBytes = 32 * 1024 * 1024;

struct ListQuery {
  std::string prefix;
  std::string delimiter;
  std::string start_after;
  std::optional<std::string> token;
  std::string resume_after;  // Key or common prefix that ended the page before.
  size_t max_keys = kKeysMax;
  bool url_encoding = false;
};

struct ListEntry {
  std::string name;
  S3ObjectPtr object;  // Null for a common prefix.
};

struct ListPage {
  std::vector<ListEntry> entries;
  bool truncated = false;
};

// A token means nothing to the client, and its alphabet (+, / and =) needs escaping in a query.
std::string encode_token(const std::string& last) {
  return to_base64(sha256("token" + last).substr(0, 8) + last);
}

std::optional<std::string> decode_token(const std::string& token) {
  const auto raw = from_base64(token);
  if (!raw || raw->size() < 8) return std::nullopt;
  std::string last = raw->substr(8);
  if (raw->substr(0, 8) != sha256("token" + last).substr(0, 8)) return std::nullopt;
  return last;
}

S3Result<ListQuery> parse_list_query(const S3Call& call) {
  const auto invalid = [](std::string why) {
    return s3_error(400, "InvalidArgument", std::move(why));
  };
  ListQuery query;
  query.prefix = call.query("prefix");
  query.delimiter = call.query("delimiter");
  query.start_after = call.query("start-after");
  query.token = call.http.query_value("continuation-token");
  if (call.query("list-type") != "2") return invalid("Only list-type=2 is served.");
  if (query.token) {
    const auto last = decode_token(*query.token);
    if (!last) return invalid("The continuation token provided is incorrect");
    query.resume_after = *last;
  }
  if (const auto text = call.http.query_value("max-keys")) {
    const auto [end, error] =
        std::from_chars(text->data(), text->data() + text->size(), query.max_keys);
    if (text->empty() || error != std::errc() || end != text->data() + text->size()) {
      return invalid("Provided max-keys not an integer or within integer range");
    }
    query.max_keys = std::min(query.max_keys, kKeysMax);
  }
  const std::string encoding = call.query("encoding-type");
  if (!encoding.empty() && encoding != "url") return invalid("Invalid Encoding Method specified");
  query.url_encoding = encoding == "url";
  return query;
}

// The caller holds the lock.
ListPage collect(const S3Bucket& bucket, const ListQuery& query) {
  ListPage page;
  if (query.max_keys == 0) return page;
  const std::string& after = query.token ? query.resume_after : query.start_after;
  auto it = bucket.objects.lower_bound(std::max(query.prefix, after));
  for (; it != bucket.objects.end() && it->first.starts_with(query.prefix); ++it) {
    const std::string& key = it->first;
    if (!after.empty() && key <= after) continue;
    std::string rolled_up;
    if (!query.delimiter.empty()) {
      const size_t at = key.find(query.delimiter, query.prefix.size());
      if (at != std::string::npos) rolled_up = key.substr(0, at + query.delimiter.size());
    }
    if (!rolled_up.empty()) {
      // Already given, on this page or as the last entry of the page before.
      if (!page.entries.empty() && page.entries.back().name == rolled_up) continue;
      if (query.token && query.resume_after == rolled_up) continue;
    }
    if (page.entries.size() == query.max_keys) {
      page.truncated = true;
      break;
    }
    if (rolled_up.empty())
      page.entries.push_back({key, it->second});
    else
      page.entries.push_back({rolled_up, nullptr});
  }
  return page;
}

// As S3 encodes names in a listing: like a form, so a space is '+', but with '/' and '*' kept.
std::string listed(const std::string& name, bool url_encoding) {
  if (!url_encoding) return name;
  std::string out;
  for (const char c : name) {
    if (c == ' ')
      out += '+';
    else if (c == '*')
      out += '*';
    else
      out += uri_encode(std::string_view(&c, 1), true);
  }
  return out;
}

void write_entry(XmlText& xml, const ListEntry& entry, bool url_encoding) {
  if (!entry.object) {
    xml.open("CommonPrefixes").leaf("Prefix", listed(entry.name, url_encoding));
    xml.close("CommonPrefixes");
    return;
  }
  xml.open("Contents").leaf("Key", listed(entry.name, url_encoding));
  xml.leaf("LastModified", iso_date(entry.object->modified)).leaf("ETag", entry.object->etag);
  if (entry.object->checksum) {
    xml.leaf("ChecksumAlgorithm", entry.object->checksum->algorithm);
    xml.leaf("ChecksumType", entry.object->checksum->type);
  }
  xml.leaf("Size", std::to_string(entry.object->body.size())).leaf("StorageClass", "STANDARD");
  xml.close("Contents");
}

void distort(S3ListQuirk quirk, const ListQuery& query, ListPage& page) {
  if (quirk == S3ListQuirk::kOutOfOrder) std::reverse(page.entries.begin(), page.entries.end());
  if (quirk == S3ListQuirk::kRepeatedToken && !page.entries.empty()) page.truncated = true;
  if (quirk == S3ListQuirk::kDuplicateKeys) {
    std::vector<ListEntry> twice;
    for (const ListEntry& entry : page.entries) {
      twice.insert(twice.end(), 2, entry);
    }
    page.entries = std::move(twice);
  }
  if (quirk == S3ListQuirk::kHugeAnswer) {
    auto filler = std::make_shared<S3Object>();
    filler->etag = "\"00000000000000000000000000000000\"";
    for (size_t bytes = 0, i = 0; bytes < kHugeAnswerBytes; bytes += 1000, ++i) {
      page.entries.push_back({fmt::format("{}{:0>900}", query.prefix, i), filler});
    }
  }
}

std::string list_xml(const S3Call& call, const ListQuery& query, const ListPage& page,
                     const std::string& next_token) {
  XmlText xml("ListBucketResult");
  xml.leaf("Name", call.bucket).leaf("Prefix", listed(query.prefix, query.url_encoding));
  if (!query.delimiter.empty()) {
    xml.leaf("Delimiter", listed(query.delimiter, query.url_encoding));
  }
  if (!query.start_after.empty()) {
    xml.leaf("StartAfter", listed(query.start_after, query.url_encoding));
  }
  if (query.token) xml.leaf("ContinuationToken", *query.token);
  if (query.url_encoding) xml.leaf("EncodingType", "url");
  xml.leaf("MaxKeys", std::to_string(query.max_keys));
  xml.leaf("KeyCount", std::to_string(page.entries.size()));
  xml.leaf("IsTruncated", page.truncated ? "true" : "false");
  if (page.truncated) xml.leaf("NextContinuationToken", next_token);
  for (const ListEntry& entry : page.entries) {
    write_entry(xml, entry, query.url_encoding);
  }
  return xml.finish();
}

}  // namespace

S3Result<HttpResponse> list_objects_v2(S3World& world, const S3Call& call) {
  const auto query = parse_list_query(call);
  if (!query) return std::unexpected(query.error());
  ListPage page;
  auto quirk = S3ListQuirk::kNone;
  {
    std::lock_guard lock(world.mutex);
    page = collect(world.buckets.at(call.bucket), *query);
    if (world.quirks.list_quirk != S3ListQuirk::kNone && take_one(world.quirks.list_quirk_times)) {
      quirk = world.quirks.list_quirk;
    }
  }
  std::string next_token = page.truncated ? encode_token(page.entries.back().name) : "";
  if (quirk == S3ListQuirk::kRepeatedToken) {
    next_token = query->token.value_or(encode_token(query->start_after));
  }
  distort(quirk, *query, page);
  std::string body = list_xml(call, *query, page, next_token);
  if (quirk == S3ListQuirk::kTruncatedXml) body.resize(body.size() / 2);
  if (quirk == S3ListQuirk::kBadXml) body.replace(body.rfind("</"), 2, "</Wrong");
  return xml_response(std::move(body));
}

}  // namespace millrace::testing
