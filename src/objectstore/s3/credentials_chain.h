#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "objectstore/s3/credentials.h"
#include "objectstore/s3/credentials_environment.h"
#include "objectstore/s3/credentials_sts.h"

namespace millrace::s3 {

// Several providers, asked in order. The first that is configured wins, and from then on only that
// one is asked: a daemon must not change its identity because one source was away for a moment.
//
// A failure of a configured provider is the chain's failure. When none is configured:
// kUnauthenticated, with every provider and its reason, and what to do. Safe from any thread.
class CredentialChain final : public CredentialProvider {
 public:
  explicit CredentialChain(std::vector<std::unique_ptr<CredentialProvider>> providers)
      : providers_(std::move(providers)) {}

  Result<Credentials> fetch(const RequestContext& context) override;
  // The winner's name once there is one.
  std::string name() const override;

 private:
  Result<Credentials> fetch_first(const RequestContext& context);

  const std::vector<std::unique_ptr<CredentialProvider>> providers_;

  mutable Mutex mutex_;
  CredentialProvider* winner_ MR_GUARDED_BY(mutex_) = nullptr;
};

// Where AWS's usual chain looks, and with what.
struct CredentialSources {
  CredentialTransport transport;
  Environment environment = Environment::process();
  std::optional<Credentials> given;  // From code or configuration: beats everything.
  std::string profile;  // Chosen explicitly: environment and web identity are not asked.
  std::string region;   // For STS; empty: resolve_region().
  SignFunction sign;    // For profiles that assume a role.
};

// AWS's order: given, environment, web identity, shared profile files, container, IMDS.
std::unique_ptr<CredentialChain> default_credential_chain(CredentialSources sources);

}  // namespace millrace::s3
