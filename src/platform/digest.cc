#include "platform/digest.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <openssl/evp.h>

#include "base/base64.h"

namespace millrace {
namespace {

// One context per thread with the algorithm looked up once: OpenSSL 3 spends more on the look-up
// than on hashing a request.
class DigestContext {
 public:
  explicit DigestContext(const char* algorithm)
      : algorithm_(EVP_MD_fetch(nullptr, algorithm, nullptr)), context_(EVP_MD_CTX_new()) {
    if (algorithm_ == nullptr || context_ == nullptr) {
      throw std::runtime_error(std::string("OpenSSL does not offer ") + algorithm);
    }
  }
  ~DigestContext() {
    EVP_MD_CTX_free(context_);
    EVP_MD_free(algorithm_);
  }
  DigestContext(const DigestContext&) = delete;
  DigestContext& operator=(const DigestContext&) = delete;

  void begin() { EVP_DigestInit_ex2(context_, algorithm_, nullptr); }
  void add(ByteView bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  void end(std::byte* digest) {
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(digest), &size);
  }

 private:
  EVP_MD* algorithm_;
  EVP_MD_CTX* context_;
};

DigestContext& sha256_context() {
  thread_local DigestContext context("SHA256");
  return context;
}

}  // namespace

Sha256Digest sha256(ByteView bytes) {
  Sha256Digest digest;
  DigestContext& context = sha256_context();
  context.begin();
  context.add(bytes);
  context.end(digest.data());
  return digest;
}

class Sha256::State {
 public:
  State() : context_("SHA256") {
    pending_.reserve(kPendingBytes);
    context_.begin();
  }

  void add(ByteView bytes) {
    if (pending_.size() + bytes.size() > kPendingBytes) flush();
    if (bytes.size() >= kPendingBytes) {
      context_.add(bytes);
    } else {
      pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    }
  }
  Sha256Digest finish() {
    flush();
    Sha256Digest digest;
    context_.end(digest.data());
    context_.begin();
    return digest;
  }

 private:
  // A call into OpenSSL costs as much as hashing some hundred bytes.
  static constexpr std::size_t kPendingBytes = 4096;

  void flush() {
    context_.add(pending_);
    pending_.clear();
  }

  DigestContext context_;
  std::vector<std::byte> pending_;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(ByteView bytes) { state_->add(bytes); }
Sha256Digest Sha256::finish() { return state_->finish(); }

Sha256Digest hmac_sha256(ByteView key, ByteView message) {
  constexpr std::size_t kBlock = 64;
  std::array<std::byte, kBlock> padded{};
  if (key.size() > kBlock) {
    const Sha256Digest hashed = sha256(key);
    std::ranges::copy(hashed, padded.begin());
  } else {
    std::ranges::copy(key, padded.begin());
  }
  const auto keyed = [&](std::byte pad, ByteView text) {
    std::array<std::byte, kBlock> block = padded;
    for (std::byte& b : block)
      b ^= pad;
    Sha256Digest digest;
    DigestContext& context = sha256_context();
    context.begin();
    context.add(block);
    context.add(text);
    context.end(digest.data());
    return digest;
  };
  const Sha256Digest inner = keyed(std::byte{0x36}, message);
  return keyed(std::byte{0x5c}, inner);
}

std::string md5_base64(ByteView bytes) {
  thread_local DigestContext context("MD5");
  std::array<std::byte, 16> digest;
  context.begin();
  context.add(bytes);
  context.end(digest.data());
  return base64_encode(digest);
}

}  // namespace millrace
