#include "frontends/nfs4/nfs_export.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/file_name.h"

namespace millrace {
namespace {

constexpr std::array<std::string_view, 3> kSquashNames = {"none", "root", "all"};

Status refuse_export(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

Status set_clients(NfsExport& into, std::string_view text) {
  into.clients.clear();
  for (const std::string_view part : parts_of(text, '+')) {
    if (into.clients.size() == kNfsExportClientsMax) {
      return refuse_export(
          fmt::format("{} has more than {} networks", into.path, kNfsExportClientsMax));
    }
    MR_ASSIGN_OR_RETURN(const NetworkRange range, NetworkRange::parse(part));
    into.clients.push_back(range);
  }
  return {};
}

Status set_squash(NfsExport& into, std::string_view text) {
  const auto* const found = std::ranges::find(kSquashNames, text);
  if (found == kSquashNames.end()) {
    return refuse_export(
        fmt::format("squash={} is not accepted: expected none, root or all", text));
  }
  into.squash = static_cast<NfsSquash>(found - kSquashNames.begin());
  return {};
}

Result<std::uint32_t> parse_user_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::unexpected(refuse_export(fmt::format("'{}' is no user or group number", text)));
  }
  return number;
}

Status set_anonymous(NfsExport& into, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return refuse_export(fmt::format("anon={} is not accepted: expected UID:GID", text));
  }
  MR_ASSIGN_OR_RETURN(into.anonymous_uid, parse_user_number(text.substr(0, colon)));
  MR_ASSIGN_OR_RETURN(into.anonymous_gid, parse_user_number(text.substr(colon + 1)));
  return {};
}

Status set_flavours(NfsExport& into, std::string_view text) {
  into.allows_sys = into.allows_none = false;
  into.transport = RpcTransport::kPlain;
  for (const std::string_view flavour : parts_of(text, '+')) {
    if (flavour == "sys") {
      into.allows_sys = true;
    } else if (flavour == "none") {
      into.allows_none = true;
    } else if (flavour == rpc_transport_name(RpcTransport::kTls)) {
      into.transport = std::max(into.transport, RpcTransport::kTls);
    } else if (flavour == rpc_transport_name(RpcTransport::kMutualTls)) {
      into.transport = RpcTransport::kMutualTls;
    } else {
      return refuse_export(fmt::format(
          "sec={} is not accepted: expected sys, none, tls and mtls, joined by '+'", text));
    }
  }
  // TLS says how, not who: without another word the callers are those of AUTH_SYS.
  if (!into.allows_none) into.allows_sys = true;
  return {};
}

Status set_option(NfsExport& into, std::string_view option) {
  const std::size_t equals = std::min(option.find('='), option.size());
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = equals == option.size() ? "" : option.substr(equals + 1);
  if (name == "ro" && equals == option.size()) return {};
  if (name == "clients") return set_clients(into, value);
  if (name == "squash") return set_squash(into, value);
  if (name == "anon") return set_anonymous(into, value);
  if (name == "sec") return set_flavours(into, value);
  return refuse_export(
      fmt::format("'{}' is no option of an export: there are ro, clients=NETWORK+..., squash="
                  "none|root|all, anon=UID:GID and sec=sys|none|tls|mtls",
                  option));
}

bool is_inside(std::string_view path, std::string_view other) {
  return path == other || (path.starts_with(other) && path.substr(other.size()).starts_with('/'));
}

}  // namespace

std::string_view nfs_squash_name(NfsSquash squash) {
  return kSquashNames[static_cast<std::size_t>(squash)];
}

Status check_nfs_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() == 1) {
    return refuse_export(
        fmt::format("'{}' is no path of an export: expected one such as /datasets", path));
  }
  if (path.size() > kNfsPathBytesMax) {
    return refuse_export(
        fmt::format("a path of {} bytes is longer than {}", path.size(), kNfsPathBytesMax));
  }
  for (const std::string_view name : parts_of(path.substr(1), '/')) {
    if (const auto fault = file_name_fault(name)) {
      return refuse_export(fmt::format("'{}' in {}: {}", name, path, *fault));
    }
  }
  if (path.find_first_of(",;=") != std::string_view::npos) {
    return refuse_export(
        fmt::format("a path cannot have a ',', a ';' or a '=' in it, as '{}' has: what clients may "
                    "do is said apart from it (export add PATH --sec tls)",
                    path));
  }
  return {};
}

Result<NfsExport> NfsExport::parse(std::string_view text) {
  const std::vector<std::string_view> parts = parts_of(text, ',');
  const std::size_t equals = std::min(parts[0].find('='), parts[0].size());
  NfsExport result;
  result.path = parts[0].substr(0, equals);
  result.source = equals == parts[0].size() ? result.path : parts[0].substr(equals + 1);
  MR_RETURN_IF_ERROR(check_nfs_path(result.path));
  if (result.source != "/") MR_RETURN_IF_ERROR(check_nfs_path(result.source));
  for (const std::string_view option : parts | std::views::drop(1))
    MR_RETURN_IF_ERROR(set_option(result, option));
  return result;
}

std::string NfsExport::to_string() const {
  const NfsExport defaults;
  std::string text = path;
  if (source != path) text += "=" + source;
  if (!clients.empty()) {
    std::vector<std::string> names;
    for (const NetworkRange& range : clients)
      names.push_back(range.to_string());
    text += fmt::format(",clients={}", fmt::join(names, "+"));
  }
  if (squash != defaults.squash) {
    text += fmt::format(",squash={}", nfs_squash_name(squash));
  }
  if (anonymous_uid != defaults.anonymous_uid || anonymous_gid != defaults.anonymous_gid) {
    text += fmt::format(",anon={}:{}", anonymous_uid, anonymous_gid);
  }
  if (!allows_sys || allows_none || transport != defaults.transport) {
    std::vector<std::string_view> flavours;
    if (allows_sys) flavours.emplace_back("sys");
    if (allows_none) flavours.emplace_back("none");
    if (transport != defaults.transport) flavours.emplace_back(rpc_transport_name(transport));
    text += fmt::format(",sec={}", fmt::join(flavours, "+"));
  }
  return text;
}

std::uint32_t NfsExport::id() const {
  const std::uint32_t hash = crc32c(as_bytes(path));
  return hash == 0 ? 1 : hash;
}

bool NfsExport::allows(const NetworkAddress& client) const {
  return clients.empty() || std::ranges::any_of(clients, [&](const NetworkRange& range) {
           return range.contains(client);
         });
}

Credentials NfsExport::squashed(Credentials caller) const {
  if (squash == NfsSquash::kAll || (squash == NfsSquash::kRoot && caller.uid == 0)) {
    return {.uid = anonymous_uid, .gid = anonymous_gid, .groups = {}};
  }
  if (squash == NfsSquash::kNone) return caller;
  if (caller.gid == 0) caller.gid = anonymous_gid;
  std::ranges::replace(caller.groups, 0U, anonymous_gid);
  return caller;
}

Status check_nfs_transport(const NfsExport& exported, RpcTransport offered) {
  if (exported.transport <= offered) return {};
  return refuse_export(fmt::format(
      "{} asks for sec={}: set {} for that", exported.path, rpc_transport_name(exported.transport),
      offered == RpcTransport::kPlain ? "nfs_tls_certificate and nfs_tls_key"
                                      : "nfs_tls_client_ca"));
}

Status check_nfs_exports(const std::vector<NfsExport>& exports) {
  if (exports.size() > kNfsExportsMax) {
    return refuse_export(fmt::format("there are more than {} exports", kNfsExportsMax));
  }
  for (std::size_t i = 0; i < exports.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const NfsExport& a = exports[i];
      const NfsExport& b = exports[j];
      if (is_inside(a.path, b.path) || is_inside(b.path, a.path)) {
        return refuse_export(
            fmt::format("{} and {} cannot both be exported: one holds the other", b.path, a.path));
      }
      if (a.id() == b.id()) {
        return refuse_export(
            fmt::format("{} and {} happen to have the same number in file handles: rename one",
                        b.path, a.path));
      }
    }
  }
  return {};
}

Result<std::vector<NfsExport>> parse_nfs_exports(std::string_view text) {
  std::vector<NfsExport> exports;
  if (trimmed(text) == "none") return exports;
  for (const std::string_view part : parts_of(text, ';')) {
    MR_ASSIGN_OR_RETURN(NfsExport parsed, NfsExport::parse(part));
    exports.push_back(std::move(parsed));
    if (exports.size() > kNfsExportsMax) break;
  }
  MR_RETURN_IF_ERROR(check_nfs_exports(exports));
  return exports;
}

}  // namespace millrace
