#pragma once

#include <memory>

#include "base/request_context.h"

namespace millrace {

// A part of a request that ends with its parent, and that can also be ended alone.
// Thread-compatible; the context may be used from any thread while this lives.
class LinkedCancellation {
 public:
  explicit LinkedCancellation(const RequestContext& parent)
      : parent_(parent),
        child_(std::make_shared<Cancellation>()),
        context_(parent.with_cancellation(child_)),
        id_(parent_.cancellation().subscribe([child = child_] { child->request(); })) {}
  ~LinkedCancellation() { parent_.cancellation().unsubscribe(id_); }
  LinkedCancellation(const LinkedCancellation&) = delete;
  LinkedCancellation& operator=(const LinkedCancellation&) = delete;

  const RequestContext& context() const { return context_; }

 private:
  const RequestContext parent_;
  const std::shared_ptr<Cancellation> child_;
  const RequestContext context_;
  const Cancellation::CallbackId id_;
};

}  // namespace millrace
