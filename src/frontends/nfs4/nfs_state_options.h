#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/clock.h"

namespace millrace {

// How long clients may be silent, and how much of them is remembered.
struct NfsStateOptions {
  // Long, because Linux gives an idle delegation back after two thirds of it.
  Duration lease = std::chrono::hours(1);
  // After the lease a client is gone: it keeps its state until somebody needs the room or conflicts
  // with it, and loses it after this.
  Duration courtesy = std::chrono::hours(24);

  std::size_t clients_max = 10'000;
  std::size_t unconfirmed_clients_max = 10'000;
  std::size_t sessions_per_client_max = 64;
  std::size_t sessions_max = 20'000;
  // A slot takes about 40 bytes. Above this sessions get fewer than they ask for.
  std::uint32_t slots_max = 256 * 1024;
  std::uint64_t reply_bytes_max = 32 * kMiB;
  // An open takes about 200 bytes, its owner's name not counted; a lock about 100.
  // Of opens, and as many of locks.
  std::size_t owners_per_client_max = 4096;
  std::size_t opens_per_client_max = 100'000;
  std::size_t opens_max = 400'000;
  std::size_t locks_max = 400'000;
};

}  // namespace millrace
