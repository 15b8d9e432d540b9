#include "dataset/version_log_payload.h"

#include "dataset/log_record_fields.h"

namespace millrace {

namespace {

using Json = nlohmann::json;

Json version_layout_payload(const VersionLayout& layout) {
  Json parents = Json::array();
  for (const VersionRef& parent : layout.parents)
    parents.push_back(parent.text());
  return {{"digest", record_digest(layout.layout_digest)}, {"manifest", layout.manifest_key},
          {"manifest_bytes", layout.manifest_bytes},       {"index_bytes", layout.index_bytes},
          {"stored_bytes", layout.stored_bytes},           {"parents", std::move(parents)}};
}

VersionLayout read_version_layout(LogRecordFields fields) {
  VersionLayout layout{.layout_digest = fields.digest("digest"),
                       .manifest_key = fields.text("manifest"),
                       .manifest_bytes = fields.number("manifest_bytes"),
                       .index_bytes = fields.number("index_bytes"),
                       .stored_bytes = fields.number("stored_bytes")};
  for (const std::string& text : fields.text_list("parents")) {
    if (auto parent = VersionRef::parse(text)) {
      layout.parents.push_back(std::move(*parent));
    } else {
      fields.refuse("parents", "has an entry that is no NAME@VERSION");
    }
  }
  return layout;
}

Json version_repack_payload(const VersionWork& repack) {
  return {{"nonce", repack.nonce}, {"since", record_time(repack.since)}};
}

VersionWork read_version_repack(LogRecordFields fields) {
  return {.nonce = fields.nonce("nonce"), .since = fields.time("since")};
}

Json version_facts_payload(const VersionFacts& facts) {
  Json payload = {{"origin", version_origin_name(facts.origin)},
                  {"content_digest", record_digest(facts.content_digest)},
                  {"layout", version_layout_payload(facts.layout)},
                  {"totals",
                   {{"files", facts.totals.files},
                    {"directories", facts.totals.directories},
                    {"symlinks", facts.totals.symlinks},
                    {"bytes", facts.totals.bytes}}},
                  {"created", record_time(facts.created)},
                  {"notes", facts.annotation.notes},
                  {"labels", Json(facts.annotation.labels)},
                  {"source", facts.source},
                  {"reservation", facts.reservation},
                  {"published", record_time(facts.published)},
                  {"publisher",
                   {{"user", facts.publisher.user},
                    {"host", facts.publisher.host},
                    {"pid", facts.publisher.pid}}}};
  if (facts.sample_count) payload["sample_count"] = *facts.sample_count;
  if (facts.resumed) payload["resumed"] = true;
  if (facts.repacking) payload["repacking"] = version_repack_payload(*facts.repacking);
  if (facts.repacked) payload["repacked"] = version_repack_payload(*facts.repacked);
  return payload;
}

VersionFacts read_version_facts(LogRecordFields fields) {
  VersionFacts facts;
  if (const auto origin = version_origin_from_name(fields.text("origin"))) {
    facts.origin = *origin;
  } else {
    fields.refuse("origin", "is none that this program knows");
  }
  facts.content_digest = fields.digest("content_digest");
  facts.layout = read_version_layout(fields.object("layout"));
  LogRecordFields totals = fields.object("totals");
  facts.totals = {.files = totals.number("files"),
                  .directories = totals.number("directories"),
                  .symlinks = totals.number("symlinks"),
                  .bytes = totals.number("bytes")};
  if (fields.has("sample_count")) facts.sample_count = fields.number("sample_count");
  facts.created = fields.time("created");
  facts.annotation = {.notes = fields.text("notes"), .labels = fields.text_map("labels")};
  facts.source = fields.text("source");
  facts.reservation = fields.nonce("reservation");
  facts.published = fields.time("published");
  LogRecordFields publisher = fields.object("publisher");
  facts.publisher = {.user = publisher.text("user"),
                     .host = publisher.text("host"),
                     .pid = publisher.number("pid")};
  if (fields.has("resumed")) facts.resumed = fields.flag("resumed");
  if (fields.has("repacking")) facts.repacking = read_version_repack(fields.object("repacking"));
  if (fields.has("repacked")) facts.repacked = read_version_repack(fields.object("repacked"));
  return facts;
}

bool event_has_removal(VersionEvent event) {
  return event == VersionEvent::kRemoved || event == VersionEvent::kPurged;
}

}  // namespace

nlohmann::json version_payload(const VersionEntry& entry) {
  Json payload = {{"reason", entry.reason}};
  if (entry.facts) payload["facts"] = version_facts_payload(*entry.facts);
  if (entry.removal) {
    const auto retention = std::chrono::floor<std::chrono::seconds>(entry.removal->retention);
    payload["removal"] = {{"removed", record_time(entry.removal->removed)},
                          {"retention_seconds", static_cast<std::uint64_t>(retention.count())}};
  }
  return payload;
}

Status read_version_payload(const LogRecord& record, VersionEntry& entry) {
  Status status;
  LogRecordFields fields(record.payload, record.key, status);
  entry.reason = fields.text("reason");
  if (entry.event != VersionEvent::kReserved && entry.event != VersionEvent::kAborted)
    entry.facts = read_version_facts(fields.object("facts"));
  if (event_has_removal(entry.event)) {
    LogRecordFields removal = fields.object("removal");
    entry.removal = {.removed = removal.time("removed"),
                     .retention = removal.seconds("retention_seconds")};
  }
  return status;
}

}  // namespace millrace
