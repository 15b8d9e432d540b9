#include "dataset/garbage_alive.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/little_endian.h"
#include "platform/digest.h"

namespace millrace {

AliveKeys::Digest AliveKeys::digest_of_key(std::string_view key) {
  const Sha256Digest full = sha256(as_bytes(key));
  Digest half{};
  std::copy_n(full.begin(), half.size(), half.begin());
  return half;
}

bool AliveKeys::in_pass(const Digest& digest) const {
  return load_little_endian<std::uint64_t>(digest.data()) % passes_ == pass_;
}

void AliveKeys::add(std::string_view key) {
  const Digest digest = digest_of_key(key);
  if (in_pass(digest)) digests_.push_back(digest);
}

void AliveKeys::seal() {
  std::ranges::sort(digests_);
  const auto twice = std::ranges::unique(digests_);
  digests_.erase(twice.begin(), twice.end());
}

bool AliveKeys::is_dead(std::string_view key) const {
  const Digest digest = digest_of_key(key);
  return in_pass(digest) && !std::ranges::binary_search(digests_, digest);
}

}  // namespace millrace
