#include <memory>

#include "cli/command.h"
#include "cli/control_client.h"
#include "frontends/fuse/fuse_mount.h"
#include "frontends/fuse/mount_directory.h"

namespace millrace::cli {
namespace {

struct UmountFlags {
  std::string directory;
  bool lazy = false;
};

Result<int> umount(Session& session, const UmountFlags& flags) {
  // What leads nowhere now may still have led to a mount that was lost with its directory.
  const std::string directory = mount_directory(flags.directory).value_or(flags.directory);
  const std::string path = "/v1/mounts/" + ControlClient::component(directory);
  const Result<Json> answer = ControlClient(session).send(session.context(), HttpMethod::kDelete,
                                                          path + (flags.lazy ? "?lazy=true" : ""));
  if (answer) return 0;
  if (answer.error() == StatusCode::kNotFound) {
    // No daemon, or one that does not know it: it may be one that was left dead.
    MR_ASSIGN_OR_RETURN(const bool was_dead, remove_dead_mounts(directory));
    if (was_dead) return 0;
  }
  return failure(answer.error());
}

}  // namespace

void register_umount(CommandLine& line, CLI::App& root) {
  auto flags = std::make_shared<UmountFlags>();
  CLI::App* const command = root.add_subcommand("umount", "End a mount");
  command->add_option("directory", flags->directory, "Where it is")->type_name("DIR")->required();
  command->add_flag("--lazy", flags->lazy,
                    "Take it out of sight now, and end it when its last user is gone");
  line.runs(command, [flags](Session& session) { return umount(session, *flags); });
}

}  // namespace millrace::cli
