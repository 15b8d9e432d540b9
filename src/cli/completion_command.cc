#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/completion_model.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> write_completion(Session& session, const CommandLine& line, const std::string& shell) {
  const CompletionCommand model = completion_model(line.root);
  std::string script;
  if (shell == "bash") {
    script = bash_completion(model);
  } else if (shell == "zsh") {
    script = zsh_completion(model);
  } else if (shell == "fish") {
    script = fish_completion(model);
  } else {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("there is no completion for '{}': expected bash, zsh or fish", shell));
  }
  MR_RETURN_IF_ERROR(session.output().write(as_bytes(script)));
  return 0;
}

}  // namespace

void register_completion(CommandLine& line, CLI::App& root) {
  auto shell = std::make_shared<std::string>();
  CLI::App* const command = root.add_subcommand(
      "completion", "Write a completion script: source <(millrace completion bash)");
  command->add_option("shell", *shell, "The shell")->type_name("bash|zsh|fish")->required();
  line.runs(command,
            [&line, shell](Session& session) { return write_completion(session, line, *shell); });
}

}  // namespace millrace::cli
