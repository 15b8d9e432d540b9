#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace millrace::s3 {

// A small file that holds settings or a secret, as it was when it was read.
struct CredentialFile {
  std::string text;
  // The group or everybody may read it: worth a warning when it holds a secret.
  bool readable_by_others = false;
};

// Reads a whole regular file (links are followed: Kubernetes mounts tokens through them). kNotFound
// when there is none, kPermissionDenied, kInvalidArgument when it is no regular file or longer than
// `bytes_max`, kIoError. Messages name the path and never the content.
Result<CredentialFile> read_credential_file(const std::string& path, std::uint64_t bytes_max);

// Reads a token: the file's text without white space around it. Read at every use, because what
// writes these files replaces them long before the old content expires.
Result<std::string> read_token_file(const std::string& path);

}  // namespace millrace::s3
