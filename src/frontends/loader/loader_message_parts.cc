// What the messages of loaders are made of: docs/formats/loader_socket.md.

#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/little_endian.h"
#include "frontends/loader/loader_message.h"
#include "platform/digest_text.h"

namespace millrace {
namespace {

static_assert(sizeof(PlacedSample) == 4 * sizeof(std::uint64_t));
static_assert(sizeof(PlannedSample) == 4 * sizeof(std::uint64_t));
static_assert(sizeof(LostPlace) == 4 * sizeof(std::uint64_t));
static_assert(sizeof(SampleStretch) == 2 * sizeof(std::uint64_t));

std::unexpected<Status> bad_part(std::string_view what) {
  return failure(StatusCode::kCorruption, fmt::format("a message of a loader: {}", what));
}

LoaderJson parse_part(ByteView bytes) { return LoaderJson::parse(as_text(bytes), nullptr, false); }

std::string dump_part(const LoaderJson& json) {
  return json.dump(-1, ' ', false, LoaderJson::error_handler_t::replace);
}

// Fields that are missing or of another kind are what is given here: who needs more looks.
std::string text_of(const LoaderJson& json, std::string_view name) {
  const auto at = json.is_object() ? json.find(name) : json.end();
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}
std::uint64_t number_of(const LoaderJson& json, std::string_view name) {
  const auto at = json.is_object() ? json.find(name) : json.end();
  return at != json.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}
bool truth_of(const LoaderJson& json, std::string_view name) {
  const auto at = json.is_object() ? json.find(name) : json.end();
  return at != json.end() && at->is_boolean() && at->get<bool>();
}

Result<SourceFacts> decode_source_facts(const LoaderJson& json, ByteView& stretches) {
  SourceFacts facts{.version = text_of(json, "version"),
                    .reader = text_of(json, "reader"),
                    .samples = number_of(json, "samples"),
                    .bytes = number_of(json, "bytes")};
  const auto digest = parse_sha256(text_of(json, "content"));
  if (!digest) return bad_part("a dataset has no digest");
  facts.content_digest = *digest;
  if (const auto classes = json.find("classes"); classes != json.end() && classes->is_array()) {
    for (const LoaderJson& name : *classes) {
      if (!name.is_string()) return bad_part("a class has no name");
      facts.classes.push_back(name.get<std::string>());
    }
  }
  const std::uint64_t count = number_of(json, "stretches");
  if (count > stretches.size() / sizeof(SampleStretch)) return bad_part("its stretches are cut");
  facts.stretches.resize(count);
  std::memcpy(facts.stretches.data(), stretches.data(), count * sizeof(SampleStretch));
  stretches = stretches.subspan(count * sizeof(SampleStretch));
  std::uint64_t samples = 0;
  for (const SampleStretch& stretch : facts.stretches) {
    if (stretch.samples > facts.samples - samples) return bad_part("its stretches do not add up");
    samples += stretch.samples;
  }
  if (samples != facts.samples || samples == 0) return bad_part("its stretches do not add up");
  return facts;
}

LoaderJson encode_failure(const SampleFailure& failed) {
  return {{"position", failed.place.position},
          {"source", failed.place.source},
          {"sample", failed.place.sample},
          {"seed", failed.place.seed},
          {"key", failed.key},
          {"error", encode_status(failed.why)}};
}

SampleFailure decode_failure(const LoaderJson& json) {
  const auto why = json.is_object() ? json.find("error") : json.end();
  return {.place = {.position = number_of(json, "position"),
                    .source = number_of(json, "source"),
                    .sample = number_of(json, "sample"),
                    .seed = number_of(json, "seed")},
          .key = text_of(json, "key"),
          .why = decode_status(why == json.end() ? LoaderJson() : *why)};
}

// Of a type that has no padding and means the same on both sides, which are of one release.
template <class Record>
Result<std::vector<Record>> decode_records(ByteView bytes) {
  static_assert(std::has_unique_object_representations_v<Record>);
  if (bytes.size() % sizeof(Record) != 0) return bad_part("its samples are cut");
  std::vector<Record> records(bytes.size() / sizeof(Record));
  if (!records.empty()) std::memcpy(records.data(), bytes.data(), bytes.size());
  return records;
}

}  // namespace

std::string encode_choices(const std::vector<SourceChoice>& choices) {
  LoaderJson all = LoaderJson::array();
  for (const SourceChoice& choice : choices) {
    all.push_back({{"name", choice.name},
                   {"reader", choice.reader},
                   {"directory", choice.directory},
                   {"allow_pickle", choice.options.allow_pickle},
                   {"verify_hashes", choice.options.verify_hashes},
                   {"content", choice.content ? to_hex(*choice.content) : ""}});
  }
  return dump_part(all);
}

Result<std::vector<SourceChoice>> decode_choices(ByteView bytes) {
  const LoaderJson json = parse_part(bytes);
  if (!json.is_array() || json.empty()) return bad_part("it names no datasets");
  std::vector<SourceChoice> choices;
  for (const LoaderJson& each : json) {
    choices.push_back({.name = text_of(each, "name"),
                       .reader = text_of(each, "reader"),
                       .directory = text_of(each, "directory"),
                       .options = {.allow_pickle = truth_of(each, "allow_pickle"),
                                   .verify_hashes = truth_of(each, "verify_hashes")},
                       .content = parse_sha256(text_of(each, "content"))});
    if (choices.back().name.empty()) return bad_part("a dataset has no name");
  }
  return choices;
}

std::string encode_facts(const std::vector<SourceFacts>& sources) {
  LoaderJson all = LoaderJson::array();
  for (const SourceFacts& facts : sources) {
    all.push_back({{"version", facts.version},
                   {"content", to_hex(facts.content_digest)},
                   {"reader", facts.reader},
                   {"samples", facts.samples},
                   {"bytes", facts.bytes},
                   {"classes", facts.classes},
                   {"stretches", facts.stretches.size()}});
  }
  const std::string text = dump_part(all);
  std::string encoded(sizeof(std::uint64_t), '\0');
  store_little_endian(std::as_writable_bytes(std::span(encoded)).data(),
                      std::uint64_t{text.size()});
  encoded += text;
  for (const SourceFacts& facts : sources)
    encoded += as_text(std::as_bytes(std::span(facts.stretches)));
  return encoded;
}

Result<std::vector<SourceFacts>> decode_facts(ByteView bytes) {
  if (bytes.size() < sizeof(std::uint64_t)) return bad_part("it has no facts");
  const auto text_bytes = load_little_endian<std::uint64_t>(bytes.data());
  bytes = bytes.subspan(sizeof(std::uint64_t));
  if (text_bytes > bytes.size()) return bad_part("its facts are cut");
  const LoaderJson json = parse_part(bytes.first(text_bytes));
  ByteView stretches = bytes.subspan(text_bytes);
  if (!json.is_array()) return bad_part("its facts are no list");
  std::vector<SourceFacts> sources;
  for (const LoaderJson& each : json) {
    if (!each.is_object()) return bad_part("its facts are no objects");
    MR_ASSIGN_OR_RETURN(SourceFacts facts, decode_source_facts(each, stretches));
    sources.push_back(std::move(facts));
  }
  return sources;
}

ByteView encode_places(std::span<const PlacedSample> places) { return std::as_bytes(places); }

Result<std::vector<PlacedSample>> decode_places(ByteView bytes) {
  return decode_records<PlacedSample>(bytes);
}

ByteView encode_planned(std::span<const PlannedSample> samples) { return std::as_bytes(samples); }

Result<std::vector<PlannedSample>> decode_planned(ByteView bytes) {
  return decode_records<PlannedSample>(bytes);
}

ByteView encode_lost(std::span<const LostPlace> lost) { return std::as_bytes(lost); }

Result<std::vector<LostPlace>> decode_lost(ByteView bytes) {
  return decode_records<LostPlace>(bytes);
}

std::string encode_failures(const std::vector<SampleFailure>& failures) {
  LoaderJson all = LoaderJson::array();
  for (const SampleFailure& failed : failures)
    all.push_back(encode_failure(failed));
  return dump_part(all);
}

Result<std::vector<SampleFailure>> decode_failures(ByteView bytes) {
  const LoaderJson json = parse_part(bytes);
  if (!json.is_array() || json.empty()) return bad_part("it has no failures");
  std::vector<SampleFailure> failures;
  for (const LoaderJson& each : json)
    failures.push_back(decode_failure(each));
  return failures;
}

std::string encode_losses(const std::vector<SampleLoss>& losses) {
  LoaderJson all = LoaderJson::array();
  for (const SampleLoss& loss : losses) {
    LoaderJson& each = all.emplace_back(encode_failure(loss.failure));
    each["epoch"] = loss.epoch;
    each["action"] = fault_action_name(loss.action);
  }
  return dump_part(all);
}

Result<std::vector<SampleLoss>> decode_losses(ByteView bytes) {
  const LoaderJson json = parse_part(bytes);
  if (!json.is_array()) return bad_part("its losses are no list");
  std::vector<SampleLoss> losses;
  for (const LoaderJson& each : json) {
    const auto action = parse_fault_action(text_of(each, "action"));
    if (!action) return bad_part(action.error().message());
    losses.push_back(
        {.epoch = number_of(each, "epoch"), .failure = decode_failure(each), .action = *action});
  }
  return losses;
}

LoaderJson encode_status(const Status& status) {
  return {{"code", static_cast<unsigned>(status.code())}, {"message", status.message()}};
}

Status decode_status(const LoaderJson& json) {
  const std::uint64_t code = number_of(json, "code");
  const bool known = code > 0 && code <= static_cast<std::uint64_t>(StatusCode::kInternal);
  return {known ? static_cast<StatusCode>(code) : StatusCode::kInternal, text_of(json, "message")};
}

}  // namespace millrace
