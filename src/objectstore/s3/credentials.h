#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"

namespace millrace::s3 {

// What a request is signed with. It has no output operator on purpose: describe() is the only text
// form, and it holds no secret.
struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;        // Empty for long-lived keys.
  std::optional<WallTime> expires;  // Nothing: they do not expire by themselves.
  std::string source;               // "environment", "profile 'x' in /home/a/.aws/credentials", ...

  // "key AKIA...MPLE from environment, until 2026-01-02T03:04:05Z". Safe for logs and errors.
  std::string describe() const;
};

// kInvalidArgument when a part is missing or holds white space or control characters: such a value
// would be refused by the store with a misleading error, or would break out of a header.
Status check_credentials(const Credentials& credentials);

// One place that credentials can come from.
//
// fetch() gives fresh credentials. kNotFound means "not configured here": its message is the short
// reason ("AWS_ACCESS_KEY_ID is not set"), and the next provider is asked. Any other failure means
// "configured, but does not work", and nobody else is asked: falling through to weaker or other
// credentials would be a surprise. fetch() blocks, at most until the context ends; it is safe from
// any thread. Messages never hold a secret.
class CredentialProvider {
 public:
  virtual ~CredentialProvider() = default;
  virtual Result<Credentials> fetch(const RequestContext& context) = 0;
  virtual std::string name() const = 0;
};

}  // namespace millrace::s3
