#include "daemon/tree_path.h"

#include <fmt/format.h>

#include "daemon/gateway.h"

namespace millrace {

Result<std::string> tree_path(const RequestContext& context, Gateway& gateway,
                              const std::string& source) {
  if (source.empty() || source.starts_with('/')) return source.empty() ? "/" : source;
  if (!source.contains('@')) {
    MR_ASSIGN_OR_RETURN(const DatasetName dataset, DatasetName::parse(source));
    return "/datasets/" + dataset.text();
  }
  MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(source));
  MR_ASSIGN_OR_RETURN(const auto version, gateway.datasets().version(context, ref));
  return fmt::format("/datasets/{}/{}", version->ref().dataset.text(),
                     version->ref().version.text());
}

}  // namespace millrace
