#include "app/nfs_setting.h"

#include <charconv>

#include <fmt/format.h>

#include "frontends/nfs4/nfs_protocol.h"
#include "platform/network_range.h"

namespace millrace {

std::string NfsSetting::to_string() const {
  if (address.contains(':')) return fmt::format("[{}]:{}", address, port);
  return fmt::format("{}:{}", address, port);
}

Result<std::optional<NfsSetting>> parse_nfs_setting(std::string_view text) {
  if (text == "none") return std::nullopt;
  const auto refuse = [text] {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' is not accepted: expected ADDRESS or ADDRESS:PORT, as in "
                               "0.0.0.0:2049 or [::]:2049, or none",
                               text));
  };
  std::string_view address = text;
  std::string_view port;
  const std::size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return refuse();
    address = text.substr(1, end - 1);
    if (end + 1 < text.size() && text[end + 1] != ':') return refuse();
    port = end + 1 < text.size() ? text.substr(end + 2) : "";
    if (end + 1 < text.size() && port.empty()) return refuse();
  } else if (colon != std::string_view::npos && text.find(':') == colon) {
    address = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return refuse();
  }
  NfsSetting setting{.address = std::string(address), .port = kNfsPort};
  if (!NetworkAddress::parse(address)) return refuse();
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), setting.port);
    if (error != std::errc() || end != port.data() + port.size()) return refuse();
  }
  return setting;
}

}  // namespace millrace
