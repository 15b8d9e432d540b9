#include "loader/file_hashes.h"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/ascii.h"
#include "base/hex.h"

namespace millrace {

namespace {

// What OpenSSL calls otherwise.
constexpr std::array<std::pair<std::string_view, const char*>, 8> kHashNames = {{
    {"blake2b", "blake2b512"},
    {"blake2s", "blake2s256"},
    {"sha3_224", "sha3-224"},
    {"sha3_256", "sha3-256"},
    {"sha3_384", "sha3-384"},
    {"sha3_512", "sha3-512"},
    {"sha512_224", "sha512-224"},
    {"sha512_256", "sha512-256"},
}};

const EVP_MD* hash_algorithm(const std::string& name) {
  for (const auto& [theirs, openssl] : kHashNames) {
    if (theirs == name) return EVP_get_digestbyname(openssl);
  }
  // Those of a length that is chosen have no digest of their own.
  if (name.starts_with("shake")) return nullptr;
  return EVP_get_digestbyname(name.c_str());
}

}  // namespace

Status check_hashes(ByteView bytes, std::span<const std::pair<std::string, std::string>> hashes,
                    std::string_view what) {
  for (const auto& [name, digits] : hashes) {
    const EVP_MD* const algorithm = hash_algorithm(name);
    if (algorithm == nullptr) continue;
    std::array<std::byte, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                   &size, algorithm, nullptr) != 1) {
      return {StatusCode::kInternal, fmt::format("OpenSSL computes no {}", name)};
    }
    if (to_hex(ByteView(digest).first(size)) != lower_case(digits)) {
      return {StatusCode::kCorruption,
              fmt::format("{}: its {} is not the one of the index", what, name)};
    }
  }
  return {};
}

}  // namespace millrace
