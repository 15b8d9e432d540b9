#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace millrace {

using Sha256Digest = std::array<std::byte, 32>;

Sha256Digest sha256(ByteView bytes);
Sha256Digest hmac_sha256(ByteView key, ByteView message);

// SHA-256 of bytes that come piece by piece. Cheap for small pieces: they are gathered before they
// are hashed. Move-only; needs one thread at a time.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void add(ByteView bytes);
  // The digest of all that was added. Afterwards the object starts anew.
  Sha256Digest finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

// MD5 in base64, the form of Content-MD5. Not for security: some stores check nothing else.
std::string md5_base64(ByteView bytes);

}  // namespace millrace
