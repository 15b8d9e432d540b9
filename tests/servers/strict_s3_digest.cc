#include "tests/servers/strict_s3_digest.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace millrace::testing {
namespace {

std::string digest(const EVP_MD* kind, std::string_view data) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(data.data(), data.size(), out, &size, kind, nullptr);
  return std::string(reinterpret_cast<char*>(out), size);
}

// A CRC with reflected input and output, all ones before and after, of 32 or 64 bits. It takes
// eight bytes per step, because tests put tens of megabytes and a byte per step would dominate.
class ReflectedCrc {
 public:
  ReflectedCrc(uint64_t polynomial, int bits) : bits_(bits) {
    for (uint64_t byte = 0; byte < 256; ++byte) {
      uint64_t crc = byte;
      for (int i = 0; i < 8; ++i) {
        crc = (crc >> 1) ^ ((crc & 1) ? polynomial : 0);
      }
      tables_[0][byte] = crc;
    }
    for (size_t k = 1; k < tables_.size(); ++k) {
      for (size_t byte = 0; byte < 256; ++byte) {
        const uint64_t previous = tables_[k - 1][byte];
        tables_[k][byte] = (previous >> 8) ^ tables_[0][previous & 0xff];
      }
    }
  }

  // Most significant byte first.
  std::string operator()(std::string_view data) const {
    const uint64_t ones = bits_ == 64 ? ~uint64_t{0} : 0xffffffffu;
    uint64_t crc = ones;
    for (; data.size() >= 8; data.remove_prefix(8)) {
      uint64_t word = 0;
      std::memcpy(&word, data.data(), 8);  // Little endian, as all machines we test on.
      crc ^= word;
      uint64_t next = 0;
      for (size_t k = 0; k < 8; ++k) {
        next ^= tables_[7 - k][(crc >> (8 * k)) & 0xff];
      }
      crc = next;
    }
    for (const char c : data) {
      crc = (crc >> 8) ^ tables_[0][(crc ^ static_cast<unsigned char>(c)) & 0xff];
    }
    crc ^= ones;
    std::string out;
    for (int shift = bits_ - 8; shift >= 0; shift -= 8) {
      out += static_cast<char>(crc >> shift);
    }
    return out;
  }

 private:
  int bits_;
  std::array<std::array<uint64_t, 256>, 8> tables_;
};

}  // namespace

std::string md5(std::string_view data) { return digest(EVP_md5(), data); }
std::string sha1(std::string_view data) { return digest(EVP_sha1(), data); }
std::string sha256(std::string_view data) { return digest(EVP_sha256(), data); }

std::string hmac_sha256(std::string_view key, std::string_view data) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(data.data()), data.size(), out, &size);
  return std::string(reinterpret_cast<char*>(out), size);
}

std::optional<std::string> s3_checksum(std::string_view algorithm, std::string_view data) {
  static const ReflectedCrc crc32(0xedb88320u, 32);
  static const ReflectedCrc crc32c(0x82f63b78u, 32);
  static const ReflectedCrc crc64nvme(0x9a6c9329ac4bc9b5u, 64);
  if (algorithm == "CRC32") return crc32(data);
  if (algorithm == "CRC32C") return crc32c(data);
  if (algorithm == "CRC64NVME") return crc64nvme(data);
  if (algorithm == "SHA1") return sha1(data);
  if (algorithm == "SHA256") return sha256(data);
  return std::nullopt;
}

std::string to_hex(std::string_view raw) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(raw.size() * 2);
  for (const unsigned char c : raw) {
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

std::string to_base64(std::string_view raw) {
  std::string out((raw.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(raw.data()),
                                   static_cast<int>(raw.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out(text.size() / 4 * 3 + 1, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') {
    ++padding;
  }
  out.resize(static_cast<size_t>(size) - padding);
  // Encoding again refuses what OpenSSL forgives: spaces at the ends and stray bits.
  if (to_base64(out) != text) return std::nullopt;
  return out;
}

std::string uri_encode(std::string_view text, bool keep_slash) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos || (keep_slash && c == '/')) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace millrace::testing
