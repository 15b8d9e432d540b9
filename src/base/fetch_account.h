#pragma once

#include <cstdint>

namespace millrace {

// Who pays for what a request makes others fetch. It may be charged after the request was answered,
// since what is fetched ahead comes later. Safe from any thread, and short: it runs where answers
// of stores are handled.
class FetchAccount {
 public:
  virtual ~FetchAccount() = default;
  // The store has answered a request, with so many bytes, because of one with this account.
  virtual void add_fetched(std::uint64_t bytes) = 0;
};

}  // namespace millrace
