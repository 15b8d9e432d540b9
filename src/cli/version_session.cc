#include "cli/version_session.h"

#include <utility>

namespace millrace::cli {

std::string manifest_directory(Session& session) { return session.settings().cache + "/manifests"; }

Result<OpenVersion> open_version(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(text));
  MR_ASSIGN_OR_RETURN(OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(VersionEntry entry, open.registry.resolve(session.request(), ref));
  ManifestStore manifests(*open.store, manifest_directory(session));
  // No deadline: all of it is fetched within this context.
  MR_ASSIGN_OR_RETURN(auto manifest, manifests.open_whole(session.context(), entry.facts->layout));
  return OpenVersion{
      .registry = std::move(open), .entry = std::move(entry), .manifest = std::move(manifest)};
}

VersionReader OpenVersion::reader(Session& session) const {
  const auto newest =
      [this, &session](const RequestContext& /*context*/) -> Result<std::unique_ptr<Manifest>> {
    MR_ASSIGN_OR_RETURN(const VersionEntry now,
                        registry.registry.version(session.request(), entry.ref));
    if (!now.facts) return failure(StatusCode::kNotFound, "the version is gone");
    ManifestStore manifests(*registry.store, manifest_directory(session));
    return manifests.open_whole(session.context(), now.facts->layout);
  };
  return VersionReader(*registry.store, *manifest, entry.ref,
                       {.request_timeout = session.settings().timeout,
                        .stores = other_stores(session),
                        .newest_layout = newest},
                       session.clock());
}

void add_version_option(CLI::App& command, std::string& ref) {
  command.add_option("version", ref, "DATASET@VERSION, or DATASET@ALIAS")
      ->type_name("REF")
      ->required();
}

}  // namespace millrace::cli
