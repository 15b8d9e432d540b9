#include "frontends/nfs4/nfs_stateid.h"

#include <array>
#include <cstring>

#include "base/bytes.h"

namespace millrace {
namespace {

constexpr int kStateKindShift = 28;

void put_word(NfsStateid& stateid, std::size_t word, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i)
    stateid.other[4 * word + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

std::uint32_t word_of(const NfsStateid& stateid, std::size_t word) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<std::uint32_t>(stateid.other[4 * word + i]);
  return value;
}

}  // namespace

NfsStateid make_stateid(const NfsStateidParts& parts, std::uint32_t seqid) {
  NfsStateid stateid{.seqid = seqid, .other = {}};
  put_word(
      stateid, 0,
      static_cast<std::uint32_t>(parts.kind) << kStateKindShift | (parts.mark & kStateMarkMask));
  put_word(stateid, 1, parts.client);
  put_word(stateid, 2, parts.number);
  return stateid;
}

std::optional<NfsStateidParts> parse_stateid(const NfsStateid& stateid) {
  const std::uint32_t head = word_of(stateid, 0);
  const std::uint32_t kind = head >> kStateKindShift;
  if (kind < static_cast<std::uint32_t>(NfsStateKind::kOpen) ||
      kind > static_cast<std::uint32_t>(NfsStateKind::kDelegation)) {
    return std::nullopt;
  }
  return NfsStateidParts{.kind = static_cast<NfsStateKind>(kind),
                         .mark = head & kStateMarkMask,
                         .client = word_of(stateid, 1),
                         .number = word_of(stateid, 2)};
}

NfsStateid bypass_stateid() {
  NfsStateid stateid{.seqid = UINT32_MAX, .other = {}};
  stateid.other.fill(std::byte{0xff});
  return stateid;
}

NfsStatus compare_seqid(std::uint32_t given, std::uint32_t newest, bool zero_is_newest) {
  if (given == newest || (zero_is_newest && given == 0)) return NfsStatus::kOk;
  // They wrap around: what is less than half the way behind is old.
  return static_cast<std::int32_t>(given - newest) < 0 ? NfsStatus::kOldStateid
                                                       : NfsStatus::kBadStateid;
}

std::uint32_t next_seqid(std::uint32_t seqid) { return seqid == UINT32_MAX ? 1 : seqid + 1; }

std::uint32_t NfsDelegations::checksum(NfsClientId client, NodeNumber node) const {
  const std::array<std::uint64_t, 2> message{client.value(), node.value()};
  return static_cast<std::uint32_t>(siphash(key_, std::as_bytes(std::span(message)))) &
         kStateMarkMask;
}

NfsStateid NfsDelegations::stateid(NfsClientId client, NodeNumber node) const {
  return make_stateid({.kind = NfsStateKind::kDelegation,
                       .mark = checksum(client, node),
                       .client = static_cast<std::uint32_t>(node.value() >> 32),
                       .number = static_cast<std::uint32_t>(node.value())},
                      1);
}

NfsStatus NfsDelegations::check(NfsClientId client, const NfsStateid& stateid) const {
  const std::optional<NfsStateidParts> parts = parse_stateid(stateid);
  if (!parts || parts->kind != NfsStateKind::kDelegation || stateid.seqid > 1 ||
      parts->mark != checksum(client, parts->node())) {
    return NfsStatus::kBadStateid;
  }
  return NfsStatus::kOk;
}

}  // namespace millrace
