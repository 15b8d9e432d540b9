// The second half of ProxyConnection: the answer on its way to the client.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/servers/fault_proxy_connection.h"

namespace millrace::testing {
namespace {

constexpr std::chrono::milliseconds kFlushTimeout(2000);

bool cuts_body(Fault fault) {
  return fault == Fault::kResetInsideBody || fault == Fault::kTruncateBody ||
         fault == Fault::kStallInsideBody || fault == Fault::kShortLength;
}

// "bytes 0-99/1000" becomes "bytes 1-100/1000"; empty when the value has another form.
std::string shifted_range(std::string_view value) {
  unsigned long long first = 0;
  unsigned long long last = 0;
  int consumed = 0;
  const std::string text(value);
  if (std::sscanf(text.c_str(), "bytes %llu-%llu%n", &first, &last, &consumed) != 2) return {};
  return fmt::format("bytes {}-{}{}", first + 1, last + 1,
                     text.substr(static_cast<std::size_t>(consumed)));
}

std::string other_etag(std::string_view value) {
  std::string changed(value);
  for (char& c : changed) {
    if (c >= '0' && c <= '8') {
      ++c;
    } else if (c == '9') {
      c = '0';
    }
  }
  // An ETag without a digit is possible, if hardly ever seen.
  if (changed == value) changed = "\"0\"";
  return changed;
}

}  // namespace

// Applies the faults that live in the head. False when the head has no place for them.
bool ProxyConnection::change_head(Exchange& exchange) {
  const bool range = exchange.fault == Fault::kWrongContentRange;
  const std::string_view name = range ? "content-range" : "etag";
  const auto value = find_header(exchange.response_head, name);
  const std::string changed = !value ? "" : range ? shifted_range(*value) : other_etag(*value);
  if (changed.empty()) return false;
  exchange.response_head = with_header(exchange.response_head, name, changed);
  return true;
}

bool ProxyConnection::deliver(Exchange& exchange) {
  BodyReader body = BodyReader::of_response(exchange.response_head, exchange.request.method);
  const Fault fault = exchange.fault;
  const bool in_body = cuts_body(fault) || fault == Fault::kFlipResponseBit;
  const bool in_header = fault == Fault::kWrongContentRange || fault == Fault::kChangedEtag;
  // A flip in the request has been counted on its way up.
  if (fault != Fault::kNone && fault != Fault::kFlipRequestBit) {
    if ((in_body && body.empty()) || (in_header && !change_head(exchange))) {
      ledger_.fault_without_effect();
      exchange.fault = Fault::kNone;
    } else {
      ledger_.fault_took_effect(fault);
    }
  }
  const bool close = wants_close(exchange.response_head) || body.ends_with_connection();
  if (exchange.fault == Fault::kResetInsideHead) {
    (void)client_.send(
        std::string_view(exchange.response_head).substr(0, exchange.response_head.size() / 2));
    client_.flush(kFlushTimeout);
    client_.reset();
    server_.close();
    return false;
  }
  if (cuts_body(exchange.fault)) return deliver_cut(exchange, body) && !close;

  std::uint64_t rate = exchange.settings.bandwidth_bytes_per_second;
  BodyChange change;
  if (exchange.fault == Fault::kDrip) rate = exchange.settings.drip_bytes_per_second;
  if (exchange.fault == Fault::kFlipResponseBit) {
    change.kind = BodyChange::Kind::kFlip;
    if (body.length()) change.at = flip_offset(exchange.request.sequence, *body.length());
  }
  // One packet for the head and a body that is already here.
  const bool more = rate == 0 && !body.empty() && !server_.buffered().empty();
  if (more ? !client_.send(exchange.response_head, more)
           : !send_paced(exchange.response_head, rate)) {
    return false;
  }
  if (relay_response(body, change, rate) != Relayed::kComplete) return false;
  if (exchange.fault == Fault::kLongBody) return client_.send(std::string(512, '#'));
  if (exchange.fault == Fault::kResetAfterBody) {
    client_.flush(kFlushTimeout);
    client_.reset();
    return false;
  }
  return !close;
}

bool ProxyConnection::deliver_cut(const Exchange& exchange, BodyReader& body) {
  std::string head = exchange.response_head;
  const bool lies = exchange.fault == Fault::kShortLength;
  if (lies && body.length()) {
    head = with_header(head, "content-length", fmt::format("{}", *body.length() / 2));
  }
  const std::uint64_t rate = exchange.settings.bandwidth_bytes_per_second;
  if (!send_paced(head, rate)) return false;
  bool keep = false;
  if (lies && body.chunked()) {
    keep = deliver_short_chunks(body);
  } else {
    BodyChange change{.kind = BodyChange::Kind::kCut, .at = std::nullopt};
    if (body.length()) change.at = *body.length() / 2;
    keep = relay_response(body, change, rate) == Relayed::kCut && lies;
  }
  // The rest of the answer is still to come on this connection; nobody wants it.
  server_.close();
  if (exchange.fault == Fault::kStallInsideBody) return stall();
  if (exchange.fault == Fault::kResetInsideBody) {
    client_.flush(kFlushTimeout);
    client_.reset();
  }
  return keep;
}

// Half of the first chunk, and the end of the body right after it.
bool ProxyConnection::deliver_short_chunks(BodyReader& body) {
  for (;;) {
    BodyReader::Piece piece;
    const auto step = body.next(server_, &piece);
    if (step == BodyReader::Step::kBroken) return false;
    if (step == BodyReader::Step::kDone) return client_.send("0\r\n\r\n");
    if (step == BodyReader::Step::kNeedInput && !server_.fill()) return false;
    if (step != BodyReader::Step::kPiece) continue;
    const std::size_t half = piece.bytes.size() / 2;
    if (piece.payload) {
      ledger_.add_bytes_down(half);
      const std::string_view kept(piece.bytes.data(), half);
      return client_.send(half == 0 ? std::string("0\r\n\r\n")
                                    : fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", half, kept));
    }
    body.consume(server_, piece.bytes.size());
  }
}

ProxyConnection::Relayed ProxyConnection::relay_response(BodyReader& body, const BodyChange& change,
                                                         std::uint64_t rate) {
  const bool cut = change.kind == BodyChange::Kind::kCut;
  const bool flip = change.kind == BodyChange::Kind::kFlip;
  const bool untouched = !cut && !flip && rate == 0;
  std::optional<std::uint64_t> at = change.at;
  std::uint64_t passed = 0;
  for (;;) {
    BodyReader::Piece piece;
    const auto step = body.next(server_, &piece);
    if (step == BodyReader::Step::kDone) return Relayed::kComplete;
    if (step == BodyReader::Step::kBroken) return Relayed::kFailed;
    if (step == BodyReader::Step::kNeedInput) {
      if (untouched && body.run_left() >= kSpliceBytesMin) {
        const std::size_t count = server_.splice_to(client_, body.run_left());
        body.skip(count);
        ledger_.add_bytes_down(count);
        if (count > 0) continue;
      }
      if (server_.fill()) continue;
      if (body.ends_with_connection()) return Relayed::kComplete;
      ledger_.upstream_failed();
      client_.reset();
      return Relayed::kFailed;
    }
    auto bytes = piece.bytes;
    if (piece.payload) {
      if (!at) at = bytes.size() / 2;
      bytes = bytes.first(Pacer::piece(bytes.size(), rate));
      if (cut) bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), *at - passed));
      if (flip && *at >= passed && *at - passed < bytes.size()) {
        bytes[static_cast<std::size_t>(*at - passed)] ^= 1;
      }
      ledger_.add_bytes_down(bytes.size());
      passed += bytes.size();
    }
    if (!client_.send({bytes.data(), bytes.size()})) return Relayed::kFailed;
    body.consume(server_, bytes.size());
    if (cut && at && passed == *at) return Relayed::kCut;
    if (!down_.wait(bytes.size(), rate, client_.fd(), stop_fd_)) return Relayed::kFailed;
  }
}

bool ProxyConnection::send_paced(std::string_view bytes, std::uint64_t rate) {
  while (!bytes.empty()) {
    const std::size_t count = Pacer::piece(bytes.size(), rate);
    if (!client_.send(bytes.substr(0, count))) return false;
    if (!down_.wait(count, rate, client_.fd(), stop_fd_)) return false;
    bytes.remove_prefix(count);
  }
  return true;
}

}  // namespace millrace::testing
