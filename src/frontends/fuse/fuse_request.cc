#include "frontends/fuse/fuse_request.h"

#include <fmt/format.h>

namespace millrace {

Result<FuseRequest> FuseRequest::parse(ByteView bytes) {
  fuse_in_header header{};
  if (bytes.size() < sizeof(header)) {
    return failure(StatusCode::kCorruption,
                   fmt::format("a FUSE request of {} bytes has no header", bytes.size()));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.len != bytes.size()) {
    return failure(
        StatusCode::kCorruption,
        fmt::format("a FUSE request of {} bytes says that it has {}", bytes.size(), header.len));
  }
  return FuseRequest(header, bytes.subspan(sizeof(header)));
}

Status FuseRequest::too_short() const {
  return {StatusCode::kCorruption,
          fmt::format("FUSE request {} is too short at {} bytes", header_.opcode, header_.len)};
}

Result<std::string_view> FuseRequest::name(std::size_t offset) const {
  if (body_.size() < offset) return failure(too_short());
  const ByteView rest = body_.subspan(offset);
  const auto* const text = reinterpret_cast<const char*>(rest.data());
  const std::size_t length = ::strnlen(text, rest.size());
  if (length == rest.size()) {
    return failure(StatusCode::kCorruption,
                   fmt::format("FUSE request {} has a name without an end", header_.opcode));
  }
  return std::string_view(text, length);
}

}  // namespace millrace
