#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/session.h"
#include "dataset/registry.h"

namespace millrace::cli {

// The registry in the store that --store names. The store lives as long as this does.
struct OpenRegistry {
  std::shared_ptr<ObjectStore> store;
  Registry registry;
};

// Fails when the store cannot be opened. Makes nothing: a store that is not there has no registry.
Result<OpenRegistry> open_registry(Session& session);

// The version in whatever state it is; where `ref` names an alias, what that points to.
Result<VersionEntry> find_version(Session& session, const Registry& registry,
                                  const VersionRef& ref);

// A command that changes the registry: lets the daemon of this machine look at it again afterwards,
// so that its mounts show the change at once and not some seconds later.
CommandBody changing_registry(CommandBody body);

// What a user wrote as DATASET@ALIAS.
struct AliasRef {
  DatasetName dataset;
  AliasName alias;

  // kInvalidArgument says what to write instead.
  static Result<AliasRef> parse(std::string_view text);
  std::string text() const { return dataset.text() + "@" + alias.text(); }
};

}  // namespace millrace::cli
