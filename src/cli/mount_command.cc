#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_start.h"
#include "cli/mount_options.h"
#include "frontends/fuse/fuse_mount.h"
#include "frontends/fuse/fusermount.h"
#include "frontends/fuse/mount_directory.h"
#include "frontends/fuse/mount_facts.h"
#include "frontends/fuse/mount_table.h"
#include "frontends/fuse/mount_watch.h"

namespace millrace::cli {
namespace {

constexpr int kLookAgainMs = 1000;

struct MountFlags {
  std::vector<std::string> places;  // [SOURCE] DIR
  MountOptions options;
  std::string option_text;  // Of mount(8).
  bool foreground = false;
  bool fake = false;
  bool unless_mounted = false;
};

// `is_alone`: nothing was said about what to mount.
Result<std::string> existing_directory(const std::string& given, bool is_alone) {
  Result<std::string> directory = mount_directory(given);
  struct stat found{};
  // A mount that nobody serves any more answers with a failure, and is the daemon's to see to.
  if (directory && ::lstat(directory->c_str(), &found) != 0 && errno == ENOENT) {
    directory = failure(StatusCode::kNotFound, "No such file or directory");
  }
  if (directory) return directory;
  if (is_alone) {
    return failure(StatusCode::kNotFound,
                   fmt::format("there is no directory '{0}' to mount on: make it first, or if that "
                               "is what to mount, say where ('millrace mount {0} DIR')",
                               given));
  }
  return failure(StatusCode::kNotFound,
                 fmt::format("cannot mount on '{}': {}; make the directory first", given,
                             directory.error().message()));
}

// By the number of its file system, since its directory may be moved.
Result<bool> is_mounted(ControlClient& client, const std::string& number) {
  MR_ASSIGN_OR_RETURN(const Json answer, client.get("/v1/mounts"));
  for (const Json& mount : answer.value("mounts", Json::array())) {
    if (mount.value("device_number", "") == number) return true;
  }
  return false;
}

// Until a signal comes, which ends the mount, or somebody else ends it.
Result<int> stay(Session& session, ControlClient& client, const std::string& number,
                 MountWatch& watch) {
  while (session.interrupt().signal() == 0) {
    std::array<pollfd, 2> entries = {
        {{session.interrupt().fd(), POLLIN, 0}, {watch.descriptor(), POLLIN, 0}}};
    (void)::poll(entries.data(), entries.size(), kLookAgainMs);
    // From then on the number may be another's.
    if (watch.has_ended()) return 0;
    if (session.interrupt().signal() != 0) break;
    const Result<bool> there = is_mounted(client, number);
    // A daemon that was killed is on its way back, and its mount stays. One that was stopped took
    // it along.
    if (there ? !*there : places_of(number).empty()) return 0;
  }
  // Not by the daemon, since requests to it end with the signal; it sees that the mount is gone.
  MR_RETURN_IF_ERROR(detach_fuse(number));
  return 0;
}

Result<MountWatch> watched(const std::string& directory, const std::string& number) {
  Result<MountWatch> watch = MountWatch::of(directory);
  if (!watch) static_cast<void>(detach_fuse(number));
  return watch;
}

// Of what was there already: that is left as it is.
Status check_execution(const std::string& directory, const std::string& path,
                       const MountOptions& options) {
  const std::optional<ListedMount> there = uppermost_mount(directory);
  if (!there) return {};
  const bool is_forbidden = (there->options + ',').find(",noexec,") != std::string::npos;
  if (is_forbidden == !options.allow_execution) return {};
  return {StatusCode::kConflict,
          fmt::format("'{}' shows {} already, where programs {} be run; unmount it first",
                      directory, path, is_forbidden ? "cannot" : "can")};
}

Result<int> mount(Session& session, const MountFlags& flags) {
  MountOptions options = flags.options;
  MR_RETURN_IF_ERROR(apply_mount_options(flags.option_text, options));
  if (options.opening != "auto") {
    MR_ASSIGN_OR_RETURN([[maybe_unused]] const FuseOpening opening,
                        parse_fuse_opening(options.opening));
  }
  if (flags.foreground && flags.unless_mounted) {
    return failure(StatusCode::kInvalidArgument,
                   "--foreground ends the mount that it made, and --unless-mounted may have made "
                   "none: give one of them");
  }
  if (options.allow_other && ::geteuid() != 0 && !users_may_allow_other()) {
    return failure(
        StatusCode::kPermissionDenied,
        "--allow-other is for root alone here: check the file /etc/fuse.conf, which needs "
        "the line 'user_allow_other'");
  }
  const std::string source = flags.places.size() == 2 ? flags.places.front() : "";
  MR_ASSIGN_OR_RETURN(const std::string directory,
                      existing_directory(flags.places.back(), flags.places.size() == 1));
  MR_RETURN_IF_ERROR(check_mount_text(directory));
  if (flags.fake) return 0;
  MR_RETURN_IF_ERROR(ensure_daemon(session));
  // From here on a signal is how the mount is ended.
  if (flags.foreground) session.interrupt().expect(std::chrono::seconds(20));
  ControlClient client(session);
  Json body = {{"source", source},
               {"directory", directory},
               {"opening", options.opening},
               {"allow_other", options.allow_other},
               {"unless_mounted", flags.unless_mounted}};
  // A daemon of before, which still runs, does not know it.
  if (!options.allow_execution) body["noexec"] = true;
  MR_ASSIGN_OR_RETURN(const Json mounted,
                      client.send(session.context(), HttpMethod::kPost, "/v1/mounts", body));
  const std::string number = mounted.value("device_number", "");
  std::optional<MountWatch> watch;
  if (flags.foreground) {
    MR_ASSIGN_OR_RETURN(watch, watched(directory, number));
  }
  if (mounted.value("was_there", false)) {
    MR_RETURN_IF_ERROR(check_execution(directory, mounted.value("path", ""), options));
  }
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(mounted));
  } else {
    const std::string opening = mounted.value("opening", "");
    MR_RETURN_IF_ERROR(session.output().line(fmt::format(
        "{} is at {} ({})", printable(mounted.value("path", "")), printable(directory), opening)));
    if (opening == "passthrough" && mounted.value("passthrough_missing", Json()).is_string()) {
      session.note(fmt::format("all reads go through the daemon: {}",
                               mounted["passthrough_missing"].get<std::string>()));
    }
  }
  MR_RETURN_IF_ERROR(session.output().flush());
  return watch ? stay(session, client, number, *watch) : 0;
}

}  // namespace

void register_mount(CommandLine& line, CLI::App& root) {
  auto flags = std::make_shared<MountFlags>();
  CLI::App* const command = root.add_subcommand(
      "mount", "Show a version, a dataset, a path of the tree, or all of it, as files");
  command
      ->add_option("place", flags->places,
                   "What ('imagenet@v2', 'imagenet', '/buckets/b'; nothing is all), and where")
      ->type_name("[SOURCE] DIR")
      ->required()
      ->expected(1, 2);
  command
      ->add_option("--opening", flags->options.opening,
                   "How files are opened: passthrough (large files), stateless (small files), auto")
      ->type_name("auto|passthrough|stateless");
  command->add_flag("--allow-other", flags->options.allow_other, "Other users may look too");
  command->add_flag("--unless-mounted", flags->unless_mounted,
                    "Do nothing where the same is mounted already, with the same options");
  command->add_flag("--foreground", flags->foreground, "Stay until the mount ends; Ctrl-C ends it");
  command
      ->add_option(
          "-o", flags->option_text,
          "The same as mount(8) gives it: opening=MODE,allow_other,noexec; ro, _netdev and "
          "others of /etc/fstab are passed over")
      ->type_name("OPTIONS");
  command->add_flag("-f,--fake", flags->fake, "Only check what was given, as mount -f asks for");
  command->add_flag("-s,--sloppy", flags->options.sloppy,
                    "Pass over options that are not known, as mount -s asks for");
  line.runs(command, [flags](Session& session) { return mount(session, *flags); });
}

}  // namespace millrace::cli
