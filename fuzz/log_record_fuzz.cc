#include <string>

#include <nlohmann/json.hpp>

#include "dataset/alias_log.h"
#include "dataset/run_record.h"
#include "dataset/version_log.h"
#include "dataset/version_log_payload.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace millrace;

constexpr const char* kFuzzedKey = "logs/one/00000007.json";

void require_damage(const Status& status) {
  fuzz_require(status == StatusCode::kCorruption);
  fuzz_require(status.message().find(kFuzzedKey) != std::string::npos);
}

// What reads a payload takes anything; what it takes as a version it writes the same way again.
void read_payload(LogRecord record) {
  const VersionRef ref = VersionRef::parse("a@v1").value();
  for (const char* kind : {"reserved", "published", "purged"}) {
    record.kind = kind;
    const auto entry = decode_version_entry(ref, record);
    if (!entry) {
      require_damage(entry.error());
      continue;
    }
    if (entry->removal) fuzz_require(entry->removal->restorable_until() >= entry->removal->removed);
    LogRecord written = record;
    written.payload = version_payload(*entry);
    const auto again = decode_version_entry(ref, written);
    fuzz_require(again.has_value() && version_payload(*again) == written.payload);
  }
  for (const char* kind : {"set", "withdrawn"}) {
    record.kind = kind;
    const auto alias = decode_alias_entry(ref.dataset, AliasName::parse("x").value(), record);
    if (!alias) require_damage(alias.error());
  }
  if (const auto run = read_run_payload(record)) {
    heartbeat_is_fresh(record.time, run->heartbeat_period, WallTime());
  } else {
    require_damage(run.error());
  }
  if (const auto end = read_run_end_payload(record); !end) require_damage(end.error());
}

}  // namespace

// A byte that says whether the rest is a record or a payload, to which a right record is made:
// checksums are what a fuzzer does not find by itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text = fuzz_text(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto record = decode_log_record(text, kFuzzedKey);
    if (record) {
      read_payload(*record);
    } else {
      fuzz_require(record.error() == StatusCode::kCorruption ||
                   record.error() == StatusCode::kUnsupported);
    }
    return 0;
  }
  auto payload = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!payload.is_object()) return 0;
  const LogRecord record{.key = kFuzzedKey,
                         .kind = "reserved",
                         .number = 7,
                         .nonce = std::string(32, '0'),
                         .payload = std::move(payload)};
  const auto encoded = encode_log_record(record);
  if (!encoded) return 0;
  // Only a payload of too many levels is written and not read.
  if (const auto read = decode_log_record(*encoded, kFuzzedKey)) read_payload(*read);
  return 0;
}
