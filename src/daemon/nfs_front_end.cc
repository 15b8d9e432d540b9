#include "daemon/nfs_front_end.h"

#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "daemon/control_body.h"
#include "daemon/control_routes.h"
#include "daemon/gateway.h"
#include "daemon/tree_path.h"
#include "platform/path.h"

namespace millrace {
namespace {

// The text form of what a body asks for, so that there is one reader of options.
Result<NfsExport> wanted_export(const ControlRequest& request, Gateway& gateway) {
  ControlBody body(request.body);
  const std::optional<std::string> path = body.text("path");
  const std::optional<std::string> source = body.text("source");
  const std::vector<std::string> options = body.texts("options");
  MR_RETURN_IF_ERROR(body.status());
  if (!path) return failure(StatusCode::kInvalidArgument, "the field 'path' is missing");
  MR_RETURN_IF_ERROR(check_nfs_path(*path));
  MR_ASSIGN_OR_RETURN(const std::string from,
                      tree_path(request.context, gateway, source.value_or(*path)));
  std::string text = *path + "=" + from;
  for (const std::string& option : options)
    text += "," + option;
  return NfsExport::parse(text);
}

// Clients name themselves by any bytes; what is not printable is shown as \xNN.
std::string printable_owner(std::string_view owner) {
  std::string text;
  for (const char c : owner) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

// Nothing when there is no TLS.
Result<std::optional<TlsServerFiles>> tls_files(const Settings& settings) {
  TlsServerFiles files{.certificate = settings.nfs_tls_certificate,
                       .key = settings.nfs_tls_key,
                       .client_authority = settings.nfs_tls_client_ca};
  if (files.certificate.empty() != files.key.empty()) {
    return failure(StatusCode::kInvalidArgument,
                   "nfs_tls_certificate and nfs_tls_key go together: one of them is not set");
  }
  if (!files.certificate.empty()) return files;
  if (files.client_authority.empty()) return std::nullopt;
  return failure(StatusCode::kInvalidArgument,
                 "nfs_tls_client_ca needs nfs_tls_certificate and nfs_tls_key too");
}

RpcTransport best_transport(const std::optional<TlsServerFiles>& tls) {
  if (!tls) return RpcTransport::kPlain;
  return tls->client_authority.empty() ? RpcTransport::kTls : RpcTransport::kMutualTls;
}

Json client_document(const NfsClientInfo& client) {
  using std::chrono::seconds;
  return {{"client", printable_owner(client.owner)},
          {"principal", client.principal},
          {"protocol", client.has_sessions ? "4.1+" : "4.0"},
          {"sessions", client.sessions},
          {"opens", client.opens},
          {"idle_seconds", std::chrono::duration_cast<seconds>(client.idle).count()},
          {"operations", client.operations},
          {"read_bytes", client.read_bytes}};
}

}  // namespace

Status check_nfs_settings(const Settings& settings) {
  MR_ASSIGN_OR_RETURN(const std::optional<TlsServerFiles> tls, tls_files(settings));
  for (const NfsExport& exported : settings.exports)
    MR_RETURN_IF_ERROR(check_nfs_transport(exported, best_transport(tls)));
  if (!settings.nfs || !tls) return {};
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const auto usable, TlsServer::open(*tls, kRpcTlsProtocol));
  return {};
}

void NfsFrontEnd::add_routes(ControlRoutes& routes) {
  routes.add(HttpMethod::kGet, "/v1/exports", [this](const ControlRequest&) { return list(); });
  routes.add_asking(HttpMethod::kPost, "/v1/exports",
                    [this](const ControlRequest& request) { return add(request); });
  routes.add(HttpMethod::kDelete, "/v1/exports/{path}",
             [this](const ControlRequest& request) { return remove(request); });
  routes.add(HttpMethod::kGet, "/v1/nfs/clients",
             [this](const ControlRequest&) { return clients(); });
}

Status NfsFrontEnd::start(Gateway& gateway) {
  gateway_ = &gateway;
  const Settings& settings = gateway.settings();
  const std::string directory = join_path(gateway.directory(), "nfs");
  MR_RETURN_IF_ERROR(gateway.disk().make_directories(directory));
  MR_ASSIGN_OR_RETURN(std::optional<TlsServerFiles> tls, tls_files(settings));
  MR_ASSIGN_OR_RETURN(exports_, ExportList::open(gateway.disk(), join_path(directory, "exports"),
                                                 settings.exports, best_transport(tls)));
  if (!settings.nfs) return {};
  NfsServerOptions options;
  options.address = settings.nfs->address;
  options.port = settings.nfs->port;
  options.state_directory = directory;
  options.handle_key_file = settings.nfs_key_file;
  options.tls = std::move(tls);
  options.state.lease = settings.nfs_lease;
  options.request_timeout = settings.timeout;
  MR_ASSIGN_OR_RETURN(server_, NfsServer::start({.files = gateway.files(),
                                                 .clock = gateway.clock(),
                                                 .work = gateway.work(),
                                                 .metrics = gateway.metrics(),
                                                 .exports = exports_->exports(),
                                                 .random = system_random(),
                                                 .disk = gateway.disk()},
                                                std::move(options)));
  log_info("NFS is served", {{"address", settings.nfs->address}, {"port", server_->port()}});
  return {};
}

void NfsFrontEnd::stop(TimePoint deadline) {
  if (server_) server_->stop(deadline);
}

Json NfsFrontEnd::status() {
  const auto exports = exports_->exports().table();
  if (!server_) return {{"address", nullptr}, {"exports", exports->exports().size()}};
  NfsSetting address = *gateway_->settings().nfs;
  address.port = server_->port();
  return {{"address", address.to_string()},
          {"exports", exports->exports().size()},
          {"connections", server_->connections()},
          {"clients", server_->state().clients().size()}};
}

Json NfsFrontEnd::document(const NfsExport& exported) const {
  Json clients = Json::array();
  for (const NetworkRange& range : exported.clients)
    clients.push_back(range.to_string());
  Json flavours = Json::array();
  if (exported.allows_sys) flavours.push_back("sys");
  if (exported.allows_none) flavours.push_back("none");
  return {{"path", exported.path},
          {"source", exported.source},
          {"clients", std::move(clients)},
          {"squash", nfs_squash_name(exported.squash)},
          {"anonymous_uid", exported.anonymous_uid},
          {"anonymous_gid", exported.anonymous_gid},
          {"flavours", std::move(flavours)},
          {"transport", rpc_transport_name(exported.transport)},
          {"read_only", exported.read_only},
          {"setting", exports_->is_setting(exported.path)}};
}

Result<Json> NfsFrontEnd::list() {
  const auto table = exports_->exports().table();
  Json exports = Json::array();
  for (const NfsExport& exported : table->exports())
    exports.push_back(document(exported));
  return Json{{"exports", std::move(exports)}, {"served", server_ != nullptr}};
}

Result<Json> NfsFrontEnd::clients() {
  Json clients = Json::array();
  if (server_) {
    for (const NfsClientInfo& client : server_->state().list_clients())
      clients.push_back(client_document(client));
  }
  return Json{{"clients", std::move(clients)}};
}

Result<Json> NfsFrontEnd::add(const ControlRequest& request) {
  MR_ASSIGN_OR_RETURN(NfsExport wanted, wanted_export(request, *gateway_));
  MR_ASSIGN_OR_RETURN(const NodeAttributes node,
                      gateway_->files().resolve(request.context, wanted.source));
  if (node.kind != NodeKind::kDirectory) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is not a directory", wanted.source));
  }
  Json added = document(wanted);
  MR_RETURN_IF_ERROR(exports_->add(std::move(wanted)));
  return added;
}

Result<Json> NfsFrontEnd::remove(const ControlRequest& request) {
  const auto before = exports_->exports().table();
  const std::string path = request.parameter("path");
  MR_RETURN_IF_ERROR(exports_->remove(path));
  if (server_) server_->recall_export(*before->find(path));
  return Json(nullptr);
}

}  // namespace millrace
