#include "platform/sector_cipher.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/hex.h"
#include "base/little_endian.h"
#include "base/mutex.h"
#include "platform/digest.h"
#include "platform/file.h"

namespace millrace {
namespace {

// XTS needs a whole block; what is shorter is at most one per object.
constexpr std::size_t kCipherBlockBytes = 16;

struct CipherDeleter {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, CipherDeleter>;

const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// Each use has a key of its own.
void derive(const SecretKey& key, std::string_view use, std::vector<std::byte>& into) {
  const std::string message = fmt::format("millrace sector cipher 1: {}", use);
  const Sha256Digest derived = hmac_sha256(key.bytes(), as_bytes(message));
  into.insert(into.end(), derived.begin(), derived.end());
}

// A 128-bit number that no other sector has.
SectorCipher::Name tweak_of(const SectorCipher::Name& name, std::uint64_t sector) {
  SectorCipher::Name tweak = name;
  store_little_endian(tweak.data(), load_little_endian<std::uint64_t>(name.data()) + sector);
  return tweak;
}

Status cipher_failure() { return {StatusCode::kInternal, "OpenSSL failed to run a cipher"}; }

}  // namespace

// ---- Keys

SecretKey::SecretKey(ByteView bytes) { std::ranges::copy(bytes, bytes_.begin()); }

SecretKey::~SecretKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Result<SecretKey> SecretKey::parse(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  const std::size_t end = text.find_last_not_of(kSpace) + 1;
  Result<std::vector<std::byte>> bytes =
      from_hex(text.substr(begin, end > begin ? end - begin : 0));
  if (!bytes || bytes->size() != kBytes) {
    return failure(StatusCode::kInvalidArgument,
                   "a key is 64 hexadecimal digits (make one with: openssl rand -hex 32)");
  }
  SecretKey key(*bytes);
  OPENSSL_cleanse(bytes->data(), bytes->size());
  return key;
}

Result<SecretKey> SecretKey::load(const std::string& path) {
  MR_ASSIGN_OR_RETURN(const File file, File::open(path, O_RDONLY));
  MR_ASSIGN_OR_RETURN(const struct stat facts, file.stat());
  if ((facts.st_mode & 077U) != 0) {
    return failure(StatusCode::kPermissionDenied,
                   fmt::format("others may read the key file {}: chmod 600 it", path));
  }
  std::array<std::byte, 256> bytes{};
  MR_ASSIGN_OR_RETURN(const std::size_t size, file.read_at(0, bytes));
  Result<SecretKey> key = size == kBytes ? SecretKey(ByteView(bytes).first(kBytes))
                                         : parse(as_text(ByteView(bytes).first(size)));
  OPENSSL_cleanse(bytes.data(), bytes.size());
  if (!key) return failure(key.error().with_context(path));
  return key;
}

// ---- Contexts

// Contexts that have the key already: setting it costs more than a small read.
class SectorCipher::Contexts {
 public:
  static Result<std::unique_ptr<Contexts>> make(const char* algorithm, ByteView key,
                                                bool encrypts) {
    std::unique_ptr<EVP_CIPHER, CipherDeleter> cipher(
        EVP_CIPHER_fetch(nullptr, algorithm, nullptr));
    CipherContext first(EVP_CIPHER_CTX_new());
    if (!cipher || !first ||
        EVP_CipherInit_ex2(first.get(), cipher.get(), raw(key.data()), nullptr, encrypts ? 1 : 0,
                           nullptr) != 1) {
      return failure(StatusCode::kUnsupported, fmt::format("OpenSSL does not offer {}", algorithm));
    }
    EVP_CIPHER_CTX_set_padding(first.get(), 0);
    return std::make_unique<Contexts>(std::move(first));
  }
  explicit Contexts(CipherContext first) : first_(std::move(first)) {}

  // Null when there is no memory.
  CipherContext take() {
    {
      MutexLock lock(mutex_);
      if (!idle_.empty()) {
        CipherContext context = std::move(idle_.back());
        idle_.pop_back();
        return context;
      }
    }
    CipherContext context(EVP_CIPHER_CTX_new());
    if (context && EVP_CIPHER_CTX_copy(context.get(), first_.get()) != 1) context.reset();
    return context;
  }

  void give_back(CipherContext context) {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(context));
  }

 private:
  const CipherContext first_;  // Only ever copied.
  Mutex mutex_;
  std::vector<CipherContext> idle_ MR_GUARDED_BY(mutex_);
};

// ---- The cipher

SectorCipher::SectorCipher(std::unique_ptr<Contexts> encrypting,
                           std::unique_ptr<Contexts> decrypting, std::unique_ptr<Contexts> tails,
                           std::string key_check)
    : encrypting_(std::move(encrypting)),
      decrypting_(std::move(decrypting)),
      tails_(std::move(tails)),
      key_check_(std::move(key_check)) {}

SectorCipher::~SectorCipher() = default;

Result<std::unique_ptr<SectorCipher>> SectorCipher::make(const SecretKey& key) {
  std::vector<std::byte> derived;
  derive(key, "data", derived);
  derive(key, "tweak", derived);
  derive(key, "tail", derived);
  derive(key, "check", derived);
  const ByteView keys(derived);
  auto encrypting = Contexts::make("AES-256-XTS", keys.first(64), true);
  auto decrypting = Contexts::make("AES-256-XTS", keys.first(64), false);
  auto tails = Contexts::make("AES-256-ECB", keys.subspan(64, 32), true);
  std::string key_check = to_hex(keys.subspan(96, 16));
  OPENSSL_cleanse(derived.data(), derived.size());
  for (const auto* contexts : {&encrypting, &decrypting, &tails}) {
    if (!*contexts) return failure(contexts->error());
  }
  return std::unique_ptr<SectorCipher>(new SectorCipher(
      *std::move(encrypting), *std::move(decrypting), *std::move(tails), std::move(key_check)));
}

Status SectorCipher::encrypt(const Name& name, std::uint64_t offset, ByteView from,
                             MutableByteView into) {
  return run(*encrypting_, name, offset, from, into);
}

Status SectorCipher::decrypt(const Name& name, std::uint64_t offset, ByteView from,
                             MutableByteView into) {
  return run(*decrypting_, name, offset, from, into);
}

Status SectorCipher::run(Contexts& contexts, const Name& name, std::uint64_t offset, ByteView from,
                         MutableByteView into) {
  assert(offset % kSectorBytes == 0 && from.size() == into.size());
  const std::size_t rest = from.size() % kSectorBytes;
  const std::size_t whole = from.size() - (rest < kCipherBlockBytes ? rest : 0);
  const std::uint64_t sector = offset / kSectorBytes;
  if (whole > 0) {
    MR_RETURN_IF_ERROR(run_sectors(contexts, name, sector, from.first(whole), into.first(whole)));
  }
  if (whole == from.size()) return {};
  return hide_tail(name, sector + whole / kSectorBytes, from.subspan(whole), into.subspan(whole));
}

Status SectorCipher::run_sectors(Contexts& contexts, const Name& name, std::uint64_t sector,
                                 ByteView from, MutableByteView into) {
  CipherContext context = contexts.take();
  bool done = context != nullptr;
  for (std::size_t at = 0; done && at < from.size(); at += kSectorBytes, ++sector) {
    const Name tweak = tweak_of(name, sector);
    const std::size_t length = std::min(from.size() - at, kSectorBytes);
    int produced = 0;
    done =
        EVP_CipherInit_ex2(context.get(), nullptr, nullptr, raw(tweak.data()), -1, nullptr) == 1 &&
        EVP_CipherUpdate(context.get(), raw(into.data() + at), &produced, raw(from.data() + at),
                         static_cast<int>(length)) == 1;
  }
  if (!done) return cipher_failure();
  contexts.give_back(std::move(context));
  return {};
}

Status SectorCipher::hide_tail(const Name& name, std::uint64_t sector, ByteView from,
                               MutableByteView into) {
  const Name tweak = tweak_of(name, sector);
  Name mask{};  // Nothing else is hidden by it.
  int produced = 0;
  CipherContext context = tails_->take();
  if (!context || EVP_CipherUpdate(context.get(), raw(mask.data()), &produced, raw(tweak.data()),
                                   static_cast<int>(tweak.size())) != 1) {
    return cipher_failure();
  }
  tails_->give_back(std::move(context));
  for (std::size_t i = 0; i < from.size(); ++i)
    into[i] = from[i] ^ mask[i];
  return {};
}

}  // namespace millrace
