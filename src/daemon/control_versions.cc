#include "app/registry_documents.h"
#include "daemon/control_resources.h"

namespace millrace {

void add_version_routes(ControlRoutes& routes, Gateway& gateway) {
  // The version may be an alias's name: then it is what that points to.
  routes.add_asking(HttpMethod::kGet, "/v1/versions/{name}/{version}",
                    [&gateway](const ControlRequest& request) -> Result<Json> {
                      MR_ASSIGN_OR_RETURN(const VersionRef ref,
                                          VersionRef::parse(request.parameter("name") + "@" +
                                                            request.parameter("version")));
                      MR_ASSIGN_OR_RETURN(const VersionEntry entry,
                                          gateway.registry().resolve(request.context, ref));
                      return version_document(entry);
                    });
}

}  // namespace millrace
