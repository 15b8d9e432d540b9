#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "daemon/control_request.h"
#include "frontends/http/http_call.h"

namespace millrace {

// The control interface: which method and path is answered by whom (docs/openapi.yaml). Failures
// become {"error": {"code", "message"}} with the HTTP status of their code.
//
// Lifecycle: routes are added before the server starts, and their owners outlive it; after that it
// is safe from any thread.
class ControlRoutes final : public HttpHandler {
 public:
  // `timeout` is how long an answer may take; handlers that ask a store do so on `work`, whose
  // refusals are the answer.
  ControlRoutes(Clock& clock, Executor& work, Duration timeout)
      : clock_(clock), work_(work), timeout_(timeout) {}

  // `pattern` is a path whose parts in braces stand for one component each, and the fields that a
  // query of it may have: "/v1/preloads/{id}", "/v1/usage?by&run". A component may be
  // percent-encoded, a '/' in it included. Where two patterns fit, the one that was added first
  // wins. Other fields are refused: a mistyped name must not be ignored.
  void add(HttpMethod method, std::string_view pattern, ControlHandler handler);
  // For what has to ask a store first, which may not answer: it must not hold up the others.
  void add_asking(HttpMethod method, std::string_view pattern, ControlHandler handler);
  void add_waiting(HttpMethod method, std::string_view pattern, WaitingControlHandler handler);

  void handle(HttpCall call, Completion<HttpAnswer> done) override;

  struct Listed {
    HttpMethod method;
    std::string path;  // Of the pattern.
    std::vector<std::string> query = {};

    bool operator==(const Listed&) const = default;
  };
  // In the order in which they were added.
  std::vector<Listed> list() const;

 private:
  struct Route {
    Listed listed;
    std::vector<std::string> components;
    WaitingControlHandler handler;
  };
  struct Match {
    const Route* route = nullptr;
    std::vector<std::string> allowed;  // Methods of the path, when none is the request's.
  };

  Match find(HttpMethod method, const std::vector<std::string>& components) const;

  static void answer(const ControlHandler& handler, const ControlRequest& request,
                     Completion<ControlAnswer> done);

  Clock& clock_;
  Executor& work_;
  const Duration timeout_;
  std::vector<Route> routes_;
};

}  // namespace millrace
