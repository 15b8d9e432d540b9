#pragma once

#include <millrace.h>

#include <atomic>
#include <memory>
#include <string>

#include "abi/dataset_handle.h"
#include "base/cancellation.h"
#include "base/status.h"
#include "loader/batch_builder.h"

// What the opaque handles of include/millrace.h are.

struct mr_error {
  millrace::Status status;
};

struct mr_cancellation {
  std::shared_ptr<millrace::Cancellation> shared = std::make_shared<millrace::Cancellation>();
};

struct mr_dataset {
  std::shared_ptr<millrace::DatasetHandle> handle;
};

struct mr_batch {
  millrace::Batch batch;
  std::atomic<std::size_t> references = 1;
};

namespace millrace {

// Tells a failure to a caller of C.
int tell(const Status& status, mr_error** error);
// Hands a text out.
int give_text(const std::string& text, char** into, mr_error** error);
mr_batch* give_batch(Batch batch);
// Seconds from now; 0 is `otherwise`.
TimePoint deadline_in(double seconds, Duration otherwise);
// One that nobody requests where there is none.
std::shared_ptr<Cancellation> cancellation_of(const mr_cancellation* cancellation);

}  // namespace millrace
