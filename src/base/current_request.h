#pragma once

#include "base/request_context.h"

namespace millrace {

// The request that this thread works for, for what lies too deep to be told by a parameter: pages
// of a manifest are fetched when a view of them is touched, and then must not take longer than who
// touched them may wait. They nest.
class CurrentRequest {
 public:
  // `context` outlives it.
  explicit CurrentRequest(const RequestContext& context) : outer_(innermost) {
    innermost = &context;
  }
  ~CurrentRequest() { innermost = outer_; }
  CurrentRequest(const CurrentRequest&) = delete;
  CurrentRequest& operator=(const CurrentRequest&) = delete;

  // Null when nobody said.
  static const RequestContext* get() { return innermost; }

 private:
  static inline thread_local const RequestContext* innermost = nullptr;

  const RequestContext* const outer_;
};

}  // namespace millrace
