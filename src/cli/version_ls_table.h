#pragma once

#include <span>

#include "cli/output.h"
#include "dataset/registry.h"

namespace millrace::cli {

// Versions as a table for people, with a head.
Status print_versions(Output& output, std::span<const VersionEntry> entries);

// kNotFound, with the command that lists those that are there.
Status no_such_dataset(const DatasetName& dataset, const ObjectStore& store);

}  // namespace millrace::cli
