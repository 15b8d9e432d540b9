#include "objectstore/s3/credentials_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "objectstore/s3/credentials_time.h"

namespace millrace::s3 {
namespace {

using Json = nlohmann::json;

std::unexpected<Status> bad_answer(std::string_view source, std::string_view what) {
  return failure(StatusCode::kInternal, fmt::format("the answer of {} {}", source, what));
}

// The text of a field; empty when it is absent or null.
Result<std::string> text_field(const Json& object, const char* name, std::string_view source) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string())
    return bad_answer(source, fmt::format("has a '{}' that is no text", name));
  return found->get<std::string>();
}

Status check_kind(const Json& object, CredentialJson kind, std::string_view source) {
  if (kind == CredentialJson::kProcess) {
    const auto version = object.find("Version");
    if (version != object.end() && *version == 1) return {};
    return bad_answer(source, "does not say \"Version\": 1").error();
  }
  MR_ASSIGN_OR_RETURN(const std::string code, text_field(object, "Code", source));
  if (code.empty() || code == "Success") return {};
  return Status(StatusCode::kUnauthenticated,
                fmt::format("{} reports '{}'", source, code.substr(0, 64)));
}

}  // namespace

Result<Credentials> parse_credentials_json(std::string_view text, CredentialJson kind,
                                           std::string_view source) {
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return bad_answer(source, "is not a JSON object");
  MR_RETURN_IF_ERROR(check_kind(object, kind, source));

  Credentials result;
  result.source = source;
  MR_ASSIGN_OR_RETURN(result.access_key, text_field(object, "AccessKeyId", source));
  MR_ASSIGN_OR_RETURN(result.secret_key, text_field(object, "SecretAccessKey", source));
  const char* token = kind == CredentialJson::kProcess ? "SessionToken" : "Token";
  MR_ASSIGN_OR_RETURN(result.session_token, text_field(object, token, source));
  MR_ASSIGN_OR_RETURN(const std::string expires, text_field(object, "Expiration", source));
  if (result.access_key.empty()) return bad_answer(source, "has no 'AccessKeyId'");
  if (result.secret_key.empty()) return bad_answer(source, "has no 'SecretAccessKey'");
  if (!expires.empty()) {
    result.expires = parse_iso8601(expires);
    if (!result.expires) return bad_answer(source, "has an 'Expiration' that is no ISO 8601 time");
  }
  return result;
}

}  // namespace millrace::s3
