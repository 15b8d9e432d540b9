#include "loader/file_hashes.h"

#include <array>
#include <optional>

#include <fmt/format.h>
#include <openssl/evp.h>
// All of it in this file: there is nothing to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

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

std::optional<std::string> openssl_digits(ByteView bytes, const std::string& name) {
  const EVP_MD* const algorithm = hash_algorithm(name);
  std::array<std::byte, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (algorithm == nullptr ||
      EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 algorithm, nullptr) != 1) {
    return std::nullopt;
  }
  return to_hex(ByteView(digest).first(size));
}

// The family of xxhash, with seed 0, as its Python package writes it: the highest byte first.
std::optional<std::string> xxhash_digits(ByteView bytes, std::string_view name) {
  if (name == "xxh32") return fmt::format("{:08x}", XXH32(bytes.data(), bytes.size(), 0));
  if (name == "xxh64") return fmt::format("{:016x}", XXH64(bytes.data(), bytes.size(), 0));
  if (name == "xxh3_64" || name == "xxh3_64bits") {
    return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
  }
  if (name == "xxh128" || name == "xxh3_128" || name == "xxh3_128bits") {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }
  return std::nullopt;
}

}  // namespace

Status check_hashes(ByteView bytes, std::span<const std::pair<std::string, std::string>> hashes,
                    std::string_view what) {
  for (const auto& [name, expected] : hashes) {
    std::optional<std::string> digits = xxhash_digits(bytes, name);
    if (!digits) digits = openssl_digits(bytes, name);
    if (!digits) {
      return {StatusCode::kUnsupported,
              fmt::format("{}: its index has a hash '{}', which cannot be checked", what, name)};
    }
    if (*digits != lower_case(expected)) {
      return {StatusCode::kCorruption,
              fmt::format("{}: its {} is not the one of the index", what, name)};
    }
  }
  return {};
}

}  // namespace millrace
