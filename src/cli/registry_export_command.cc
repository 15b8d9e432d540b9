#include <memory>

#include <fmt/format.h>

#include "base/random.h"
#include "cli/command.h"
#include "cli/local_file.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "dataset/manifest_store.h"
#include "dataset/registry_document.h"

namespace millrace::cli {
namespace {

// With all parameters, so that an import finds the place again.
std::string place_in(StoreUrl store, std::string_view key) {
  while (key.ends_with('/'))
    key.remove_suffix(1);
  if (store.scheme == StoreUrl::Scheme::kFile) {
    if (!key.empty()) store.root += "/" + std::string(key);
  } else {
    store.prefix = key;
  }
  return store.to_string() + (store.parameters.empty() ? "/" : "");
}

// Where people find the version. Objects that were registered stay where they are, and only the
// manifest knows their prefix as it is in the store.
Result<std::string> documented_path(Session& session, ManifestStore& manifests,
                                    const VersionEntry& entry) {
  std::string key = fmt::format("{}/{}/", entry.ref.dataset.text(), entry.ref.version.text());
  if (entry.facts->origin == VersionOrigin::kRegistered) {
    MR_ASSIGN_OR_RETURN(const auto manifest,
                        manifests.open(session.request(), entry.facts->layout));
    key = manifest->prefix();
    if (!manifest->prefix_store().empty()) {
      MR_ASSIGN_OR_RETURN(StoreUrl other, parse_store_url(manifest->prefix_store()));
      return place_in(std::move(other), key);
    }
  }
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(std::string(kStorePrefix) + key));
  return location.to_string();
}

Json export_document(const std::vector<DocumentedVersion>& versions) {
  Json datasets = Json::object();
  for (const DocumentedVersion& version : versions) {
    Json fields = {{"path", version.path}};
    if (version.size_gb) fields["size_gb"] = Json::parse(format_size_gb(*version.size_gb));
    if (version.sample_count) fields["sample_count"] = *version.sample_count;
    if (version.created) fields["created"] = date_text(*version.created);
    if (version.notes) fields["notes"] = *version.notes;
    datasets[version.ref.dataset.text()]["versions"][version.ref.version.text()] =
        std::move(fields);
  }
  return {{"datasets", std::move(datasets)}};
}

Status write_file(const std::string& path, std::string text) {
  MR_ASSIGN_OR_RETURN(LocalFileWriter file, LocalFileWriter::create(path, system_random()));
  MR_RETURN_IF_ERROR(file.write(Slice::from_string(std::move(text))));
  return file.finish(false);
}

Result<int> export_registry(Session& session, const std::string& file) {
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(auto listings, open.registry.every_version(session.request()));
  const ReadableListing readable = readable_entries(std::move(listings));
  // A document that lacks a version would be taken for all there is.
  MR_RETURN_IF_ERROR(readable.damage);
  ManifestStore manifests(*open.store, session.settings().cache + "/manifests");
  std::vector<DocumentedVersion> versions;
  for (const VersionEntry& entry : readable.entries) {
    if (!entry.readable()) continue;
    MR_ASSIGN_OR_RETURN(std::string path, documented_path(session, manifests, entry));
    versions.push_back(document_version(entry, std::move(path)));
  }
  const std::string text = session.output().json() ? json_text(export_document(versions)) + "\n"
                                                   : write_registry_document(versions);
  if (file.empty() || file == "-") {
    MR_RETURN_IF_ERROR(session.output().write(as_bytes(text)));
    return 0;
  }
  MR_RETURN_IF_ERROR(write_file(file, text));
  session.note(
      fmt::format("wrote {} to {}", count_text(versions.size(), "version", "versions"), file));
  return 0;
}

}  // namespace

void register_registry_export(CommandLine& line, CLI::App& registry) {
  auto file = std::make_shared<std::string>();
  CLI::App* const command =
      registry.add_subcommand("export", "Write all published versions as YAML (or --json)");
  command->add_option("file", *file, "Where to; without it, standard output")->type_name("FILE");
  line.runs(command, [file](Session& session) { return export_registry(session, *file); });
}

}  // namespace millrace::cli
