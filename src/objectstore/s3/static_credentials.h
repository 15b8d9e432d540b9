#pragma once

#include <utility>

#include "objectstore/s3/credentials.h"

namespace millrace::s3 {

// Credentials given in code or configuration; the caller fills in `source`.
class StaticCredentials final : public CredentialProvider {
 public:
  explicit StaticCredentials(Credentials credentials) : credentials_(std::move(credentials)) {}

  Result<Credentials> fetch(const RequestContext&) override { return credentials_; }
  std::string name() const override { return "configuration"; }

 private:
  const Credentials credentials_;
};

}  // namespace millrace::s3
