#pragma once

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "objectstore/s3/credentials.h"

namespace millrace::s3 {

struct CachedCredentialsOptions {
  // How long before their expiry new credentials are fetched: this, plus up to the jitter, so that
  // a fleet that started together does not ask together. At most half of a short life.
  Duration refresh_early = std::chrono::minutes(5);
  Duration refresh_jitter_max = std::chrono::minutes(2);
  // How long an early refresh may hold up the caller that makes it.
  Duration early_refresh_time_max = std::chrono::seconds(30);
  // After an early refresh failed, until the next.
  Duration retry_pause = std::chrono::seconds(15);
};

// Credentials that stay fresh.
//
// Invariants:
//  1. At most one fetch is under way. It runs on the thread of the caller that found it due,
//  without
//     a lock held.
//  2. While the credentials at hand are valid nobody else waits for it, and its failure is logged
//     once and otherwise unseen.
//  3. Credentials that have expired, or that invalidate() named, are never handed out.
//
// Safe from any thread. Nobody may be inside when it is destroyed.
class CachedCredentials {
 public:
  CachedCredentials(std::unique_ptr<CredentialProvider> provider, Clock& clock, Random& random,
                    CachedCredentialsOptions options = {});
  ~CachedCredentials();

  // Valid credentials, fetched if need be. Blocks only then, until the context ends; not for event
  // loops. Fails as the provider does, with kDeadlineExceeded or kCancelled.
  Result<std::shared_ptr<const Credentials>> get(const RequestContext& context);

  // Valid credentials without blocking, or null when somebody has to call get() first: there are
  // none, or it is time for an early refresh that nobody has begun.
  std::shared_ptr<const Credentials> get_if_fresh();

  // The store says that the credentials with this access key have expired: they are replaced before
  // anybody gets any again. Nothing happens when others are at hand already.
  void invalidate(std::string_view access_key);

 private:
  struct State;
  class WakeUp;
  Result<std::shared_ptr<const Credentials>> wait_or_refresh(const RequestContext& context);
  Result<Credentials> fetch(const RequestContext& context, bool early);

  // Constant after construction.
  const std::unique_ptr<CredentialProvider> provider_;
  Clock& clock_;
  Random& random_;
  const CachedCredentialsOptions options_;

  // Synchronises itself. Shared with timers, which may fire a last time after we are gone.
  const std::shared_ptr<State> state_;
};

}  // namespace millrace::s3
