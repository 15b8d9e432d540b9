#include <fmt/format.h>

#include "app/registry_documents.h"
#include "daemon/control_resources.h"

namespace millrace {
namespace {

Result<Json> list_datasets(Gateway& gateway, const ControlRequest& request) {
  MR_ASSIGN_OR_RETURN(const auto names, gateway.registry().datasets(request.context));
  Json datasets = Json::array();
  for (const DatasetName& name : names)
    datasets.push_back({{"dataset", name.text()}});
  return Json{{"datasets", std::move(datasets)}};
}

Result<Json> show_dataset(Gateway& gateway, const ControlRequest& request) {
  MR_ASSIGN_OR_RETURN(const DatasetName name, DatasetName::parse(request.parameter("name")));
  MR_ASSIGN_OR_RETURN(const auto listings, gateway.registry().versions(request.context, name));
  if (listings.empty()) {
    return failure(StatusCode::kNotFound, fmt::format("there is no dataset '{}' in {}", name.text(),
                                                      gateway.store().describe()));
  }
  Json versions = Json::array();
  Json damaged = Json::array();
  for (const VersionListing& listing : listings) {
    if (listing.entry) {
      versions.push_back(version_document(*listing.entry));
    } else {
      damaged.push_back({{"ref", listing.ref.text()}, {"error", listing.entry.error().message()}});
    }
  }
  MR_ASSIGN_OR_RETURN(const auto entries, gateway.registry().aliases().list(request.context, name));
  Json aliases = Json::array();
  for (const AliasEntry& entry : entries)
    aliases.push_back(alias_document(entry));
  return Json{{"dataset", name.text()},
              {"versions", std::move(versions)},
              {"aliases", std::move(aliases)},
              {"damaged", std::move(damaged)}};
}

}  // namespace

void add_dataset_routes(ControlRoutes& routes, Gateway& gateway) {
  routes.add_asking(HttpMethod::kGet, "/v1/datasets", [&gateway](const ControlRequest& request) {
    return list_datasets(gateway, request);
  });
  routes.add_asking(
      HttpMethod::kGet, "/v1/datasets/{name}",
      [&gateway](const ControlRequest& request) { return show_dataset(gateway, request); });
}

}  // namespace millrace
