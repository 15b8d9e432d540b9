#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_start.h"
#include "cli/document_cells.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

struct NfsExportFlags {
  std::string path;
  std::string source;
  std::vector<std::string> clients;
  std::string squash;
  std::string anonymous;
  std::vector<std::string> flavours;
};

Json export_request(const NfsExportFlags& flags) {
  Json options = Json::array();
  if (!flags.clients.empty()) {
    options.push_back(fmt::format("clients={}", fmt::join(flags.clients, "+")));
  }
  if (!flags.squash.empty()) options.push_back("squash=" + flags.squash);
  if (!flags.anonymous.empty()) options.push_back("anon=" + flags.anonymous);
  if (!flags.flavours.empty()) {
    options.push_back(fmt::format("sec={}", fmt::join(flags.flavours, "+")));
  }
  Json request = {{"path", flags.path}, {"options", std::move(options)}};
  if (!flags.source.empty()) request["source"] = flags.source;
  return request;
}

Result<int> add_export(Session& session, const NfsExportFlags& flags) {
  MR_RETURN_IF_ERROR(ensure_daemon(session));
  ControlClient client(session);
  MR_ASSIGN_OR_RETURN(const Json added, client.send(session.request(), HttpMethod::kPost,
                                                    "/v1/exports", export_request(flags)));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(added));
    return 0;
  }
  session.note(fmt::format("{} is exported as {}", text_cell(added, "source"), flags.path));
  MR_ASSIGN_OR_RETURN(const Json exports, client.get("/v1/exports"));
  if (!exports.value("served", false)) {
    session.note("the daemon does not serve NFS: start it with --nfs ADDRESS");
  }
  return 0;
}

}  // namespace

void register_export_add(CommandLine& line, CLI::App& exports) {
  auto flags = std::make_shared<NfsExportFlags>();
  CLI::App* const command =
      exports.add_subcommand("add", "Let NFS clients mount a part of the tree, from now on");
  command->add_option("path", flags->path, "As clients name it: /imagenet")
      ->type_name("PATH")
      ->required();
  command
      ->add_option(
          "source", flags->source,
          "What is there: imagenet@v2, imagenet, /buckets/b; the path itself when left out")
      ->type_name("SOURCE");
  command
      ->add_option("--clients", flags->clients,
                   "Networks of those who may: 10.0.0.0/8; everybody when left out")
      ->type_name("NETWORK")
      ->delimiter(',');
  command
      ->add_option("--squash", flags->squash,
                   "Whose credentials count as nobody's: root (the default), all or none")
      ->type_name("WHO");
  command->add_option("--anon", flags->anonymous, "Who nobody is (65534:65534)")
      ->type_name("UID:GID");
  command
      ->add_option("--sec", flags->flavours,
                   "Credentials that are taken: sys (the default), none; tls or mtls takes them "
                   "over TLS only")
      ->type_name("FLAVOUR")
      ->delimiter(',');
  line.runs(command, [flags](Session& session) { return add_export(session, *flags); });
}

}  // namespace millrace::cli
