#include "abi/handles.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <openssl/crypto.h>

#include "base/version.h"

static_assert(static_cast<int>(millrace::StatusCode::kInternal) == MR_INTERNAL &&
                  static_cast<int>(millrace::StatusCode::kNotFound) == MR_NOT_FOUND,
              "codes are part of the interface");

namespace millrace {
namespace {

// At exit OpenSSL frees what threads of ours may still use, when the process ends while a loader
// reads ahead.
[[gnu::constructor]] void keep_openssl_until_the_end() {
  (void)::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

}  // namespace

int tell(const Status& status, mr_error** error) {
  if (!status.ok() && error != nullptr) *error = new mr_error{status};
  return static_cast<int>(status.code());
}

int give_text(const std::string& text, char** into, mr_error** error) {
  *into = ::strdup(text.c_str());
  if (*into != nullptr) return MR_OK;
  return tell({StatusCode::kResourceExhausted, "there is no memory for a text"}, error);
}

mr_batch* give_batch(Batch batch) { return new mr_batch{.batch = std::move(batch)}; }

TimePoint deadline_in(double seconds, Duration otherwise) {
  constexpr double kForEver = 3.2e8;
  const TimePoint now = system_clock().now();
  if (!(seconds > 0)) return now + otherwise;
  return now + std::chrono::duration_cast<Duration>(
                   std::chrono::duration<double>(seconds < kForEver ? seconds : kForEver));
}

std::shared_ptr<Cancellation> cancellation_of(const mr_cancellation* cancellation) {
  return cancellation == nullptr ? std::make_shared<Cancellation>() : cancellation->shared;
}

}  // namespace millrace

extern "C" {

uint32_t mr_abi_version(void) { return MR_ABI_VERSION; }
const char* mr_release(void) {
  static const std::string release(millrace::version());
  return release.c_str();
}

int mr_error_code(const mr_error* error) { return static_cast<int>(error->status.code()); }
const char* mr_error_name(const mr_error* error) {
  return millrace::status_code_name(error->status.code()).data();
}
const char* mr_error_message(const mr_error* error) { return error->status.message().c_str(); }
void mr_error_free(mr_error* error) { delete error; }
void mr_text_free(char* text) { std::free(text); }

mr_cancellation* mr_cancellation_make(void) { return new mr_cancellation; }
void mr_cancellation_request(mr_cancellation* cancellation) { cancellation->shared->request(); }
void mr_cancellation_free(mr_cancellation* cancellation) { delete cancellation; }

}  // extern "C"
