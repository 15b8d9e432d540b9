#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace millrace::cli {

struct MountOptions {
  std::string opening = "auto";
  bool allow_other = false;
  bool allow_execution = true;
  bool sloppy = false;  // Options that nobody knows are passed over.
};

// The options of mount(8) and /etc/fstab, "ro,opening=stateless,allow_other". A value with a comma
// stands in double quotes. Those that are other programs', or make no difference here, are passed
// over; kInvalidArgument names what nobody knows.
Status apply_mount_options(const std::string& text, MountOptions& options);

// The command line of `mount.millrace SOURCE DIR [-sfnv] [-o OPTIONS] [-t TYPE]`, by which mount(8)
// calls us, as one of ours: what is a setting of ours among the options ("store=s3://b",
// "config=/etc/m.yaml") becomes its flag. -n, -v and the type change nothing here, and are left
// out. Other flags stay, to be refused by their name.
std::vector<std::string> mount_helper_arguments(const std::vector<std::string>& arguments);

}  // namespace millrace::cli
