#pragma once

#include <memory>

#include "app/settings.h"
#include "daemon/export_list.h"
#include "daemon/front_end.h"
#include "frontends/nfs4/nfs_server.h"

namespace millrace {

// Checks what the settings say of NFS as a start would, with the files that they name: the files of
// TLS, and what the exports ask of it. kInvalidArgument with a sentence. Blocks.
Status check_nfs_settings(const Settings& settings);

// NFS as a front end of the daemon: /v1/exports, /v1/nfs/clients, and the server where the settings
// ask for one.
class NfsFrontEnd final : public FrontEnd {
 public:
  std::string_view name() const override { return "nfs"; }
  void add_routes(ControlRoutes& routes) override;
  Status start(Gateway& gateway) override;
  void stop(TimePoint deadline) override;
  Json status() override;

  // 0 while NFS is not served.
  std::uint16_t port() const { return server_ ? server_->port() : 0; }

 private:
  Result<Json> list();
  Result<Json> add(const ControlRequest& request);
  Result<Json> remove(const ControlRequest& request);
  Json document(const NfsExport& exported) const;
  Result<Json> clients();

  Gateway* gateway_ = nullptr;
  std::unique_ptr<ExportList> exports_;
  std::unique_ptr<NfsServer> server_;
};

}  // namespace millrace
