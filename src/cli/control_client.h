#pragma once

#include <string>
#include <string_view>

#include "base/request_context.h"
#include "base/status.h"
#include "cli/output.h"
#include "cli/session.h"
#include "platform/http_client.h"

namespace millrace::cli {

// Asks the daemon of this machine, over its Unix socket. Each request has a connection of its own.
// Thread-compatible; the session outlives it.
class ControlClient {
 public:
  explicit ControlClient(Session& session) : session_(session) {}

  // The answer's document; null for an answer without one. A failure of the daemon comes back as it
  // was there. kNotFound with no_daemon() when none listens; kUnavailable when it ended meanwhile.
  // Waits until the context's deadline, which may be none, or a signal.
  Result<Json> send(const RequestContext& context, HttpMethod method, const std::string& path,
                    const Json& body = nullptr);
  // A GET, within the setting `timeout`.
  Result<Json> get(const std::string& path);

  // Whether a failure of send() means that there is no daemon.
  static bool is_no_daemon(const Status& status);
  // A part of a path, so that a '/' in it does not end it.
  static std::string component(std::string_view text);

 private:
  Session& session_;
};

}  // namespace millrace::cli
