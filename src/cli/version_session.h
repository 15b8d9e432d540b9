#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/other_stores.h"
#include "cli/registry_session.h"
#include "dataset/manifest_store.h"
#include "dataset/version_reader.h"

namespace millrace::cli {

// A version that can be read, opened for reading from end to end.
struct OpenVersion {
  OpenRegistry registry;
  VersionEntry entry;
  std::unique_ptr<Manifest> manifest;

  // Goes on by a later layout when the version is repacked meanwhile. This outlives it.
  VersionReader reader(Session& session) const;
};

// Where pages of manifests are kept on this machine.
std::string manifest_directory(Session& session);

// `text` is DATASET@VERSION, or DATASET@ALIAS.
Result<OpenVersion> open_version(Session& session, const std::string& text);

// The option that names the version, first among those of a command.
void add_version_option(CLI::App& command, std::string& ref);

}  // namespace millrace::cli
