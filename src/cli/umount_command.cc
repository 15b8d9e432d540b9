#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"

namespace millrace::cli {
namespace {

struct UmountFlags {
  std::string directory;
  bool lazy = false;
};

Result<int> umount(Session& session, const UmountFlags& flags) {
  // Not canonical(): that would ask the mount, which may be busy or dead.
  const std::string directory =
      std::filesystem::absolute(flags.directory).lexically_normal().string();
  const bool has_end = directory.size() > 1 && directory.ends_with('/');
  const std::string path =
      "/v1/mounts/" +
      ControlClient::component(has_end ? directory.substr(0, directory.size() - 1) : directory);
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const Json answer,
                      ControlClient(session).send(session.context(), HttpMethod::kDelete,
                                                  path + (flags.lazy ? "?lazy=true" : "")));
  return 0;
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
