#include "frontends/fuse/mount_facts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using Json = nlohmann::json;

constexpr int kFactsVersion = 2;

bool is_whole(const Json& facts) {
  return facts.contains("path") && facts["path"].is_string() && facts.contains("directory") &&
         facts["directory"].is_string() && facts.contains("root") &&
         facts["root"].is_number_unsigned() && facts.contains("opening") &&
         facts["opening"].is_string() && facts.contains("immutable") &&
         facts["immutable"].is_boolean() && facts.contains("uid") &&
         facts["uid"].is_number_unsigned() && facts.contains("gid") &&
         facts["gid"].is_number_unsigned() && facts.contains("allow_other") &&
         facts["allow_other"].is_boolean();
}

}  // namespace

std::string_view fuse_opening_name(FuseOpening opening) {
  return opening == FuseOpening::kStateless ? "stateless" : "passthrough";
}

Result<FuseOpening> parse_fuse_opening(std::string_view name) {
  if (name == "passthrough") return FuseOpening::kPassthrough;
  if (name == "stateless") return FuseOpening::kStateless;
  return failure(
      StatusCode::kInvalidArgument,
      fmt::format("'{}' is no way to open files: expected passthrough, stateless or auto", name));
}

std::string mount_facts_text(const MountFacts& facts) {
  return Json({{"version", kFactsVersion},
               {"path", facts.path},
               {"directory", facts.directory},
               {"allow_other", facts.allow_other},
               {"root", facts.view.root.value()},
               {"immutable", facts.view.is_immutable},
               {"opening", fuse_opening_name(facts.view.opening)},
               {"uid", facts.view.uid},
               {"gid", facts.view.gid}})
      .dump();
}

Result<MountFacts> parse_mount_facts(const std::string& text) {
  const Json facts = Json::parse(text, nullptr, false);
  if (!facts.is_object() || !facts.contains("version") || !facts["version"].is_number_integer()) {
    return failure(StatusCode::kCorruption, "the facts of a mount are no JSON object of ours");
  }
  if (facts["version"] != kFactsVersion) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the facts of a mount have version {}, this program knows {}",
                               facts["version"].dump(), kFactsVersion));
  }
  if (!is_whole(facts)) {
    return failure(StatusCode::kCorruption, "the facts of a mount are not complete");
  }
  MountFacts parsed;
  parsed.path = facts["path"];
  parsed.directory = facts["directory"];
  parsed.allow_other = facts["allow_other"];
  parsed.view.root = NodeNumber(facts["root"].get<std::uint64_t>());
  parsed.view.is_immutable = facts["immutable"];
  MR_ASSIGN_OR_RETURN(parsed.view.opening, parse_fuse_opening(facts["opening"].get<std::string>()));
  parsed.view.uid = facts["uid"];
  parsed.view.gid = facts["gid"];
  return parsed;
}

}  // namespace millrace
