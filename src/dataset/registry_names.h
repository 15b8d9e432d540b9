#pragma once

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/registry_access.h"
#include "dataset/version_ref.h"

namespace millrace {

// The rules between names. Each is checked before a name is taken, so that most who may not take it
// leave no trace, and again after its record is written: of two that exclude each other and are
// taken at once at least one then sees the other and gives up. Both may; never do both stay.

// kConflict when a dataset exists whose name is a beginning of this one, or the reverse. A dataset
// exists while a version of it is not aborted. Takes one list for each component of the name.
Status check_dataset_name(const RequestContext& context, const RegistryAccess& access,
                          const DatasetName& dataset);

// kConflict when the name of the version is that of an alias.
Status check_no_alias_has_name(const RequestContext& context, const RegistryAccess& access,
                               const VersionRef& ref);

// kConflict when the name of the alias is that of a version that is not aborted.
Status check_no_version_has_name(const RequestContext& context, const RegistryAccess& access,
                                 const DatasetName& dataset, const AliasName& alias);

}  // namespace millrace
