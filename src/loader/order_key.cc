#include "loader/order_key.h"

#include <array>

#include "base/little_endian.h"
#include "loader/keyed_permutation.h"

namespace millrace {

std::uint64_t order_key(const OrderSeed& seed, std::uint64_t epoch, std::string_view purpose) {
  std::array<std::byte, 16> numbers{};
  store_little_endian(numbers.data(), seed.seed);
  store_little_endian(numbers.data() + 8, epoch);
  Sha256 hash;
  hash.add(as_bytes("millrace loader 1\n"));
  hash.add(seed.content_digest);
  hash.add(numbers);
  hash.add(as_bytes(purpose));  // Last, since it has no fixed length.
  return load_little_endian<std::uint64_t>(hash.finish().data());
}

std::uint64_t sample_seed(std::uint64_t key, std::uint64_t position) {
  return subkey(key, position);
}

}  // namespace millrace
