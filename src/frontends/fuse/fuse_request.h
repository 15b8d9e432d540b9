#pragma once

#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/status.h"
#include "frontends/fuse/fuse_kernel.h"

namespace millrace {

// One request as the kernel sent it. The bytes live as long as the buffer that it was read into.
class FuseRequest {
 public:
  // kCorruption when the bytes are not one whole request.
  static Result<FuseRequest> parse(ByteView bytes);

  const fuse_in_header& header() const { return header_; }

  // What stands before any name. kCorruption when the request is too short for it.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  Result<T> body() const {
    if (body_.size() < sizeof(T)) return failure(too_short());
    T value;
    std::memcpy(&value, body_.data(), sizeof(T));
    return value;
  }
  // The name behind `offset` bytes of body, without its NUL.
  Result<std::string_view> name(std::size_t offset = 0) const;

 private:
  FuseRequest(const fuse_in_header& header, ByteView body) : header_(header), body_(body) {}
  Status too_short() const;

  fuse_in_header header_;
  ByteView body_;
};

}  // namespace millrace
