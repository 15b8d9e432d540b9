#include "app/registry_documents.h"

#include "app/times.h"
#include "dataset/log_record_fields.h"

namespace millrace {
namespace {

Json optional_text(const std::optional<VersionName>& name) {
  return name ? Json(name->text()) : Json(nullptr);
}

void add_facts(Json& document, const VersionFacts& facts) {
  document["origin"] = version_origin_name(facts.origin);
  document["source"] = facts.source;
  document["created"] = format_time(facts.created);
  document["published"] = format_time(facts.published);
  document["publisher"] = writer_document(facts.publisher);
  document["content_digest"] = record_digest(facts.content_digest);
  document["layout_digest"] = record_digest(facts.layout.layout_digest);
  document["repacked"] = facts.repacked ? Json(format_time(facts.repacked->since)) : Json(nullptr);
  document["files"] = facts.totals.files;
  document["directories"] = facts.totals.directories;
  document["symlinks"] = facts.totals.symlinks;
  document["bytes"] = facts.totals.bytes;
  document["stored_bytes"] = facts.layout.stored_bytes;
  document["manifest_bytes"] = facts.layout.manifest_bytes;
  document["sample_count"] = facts.sample_count ? Json(*facts.sample_count) : Json(nullptr);
  document["notes"] = facts.annotation.notes;
  document["labels"] = Json(facts.annotation.labels);
  Json parents = Json::array();
  for (const VersionRef& parent : facts.layout.parents)
    parents.push_back(parent.text());
  document["parents"] = std::move(parents);
}

}  // namespace

Json writer_document(const WriterIdentity& who) {
  return {{"user", who.user}, {"host", who.host}, {"pid", who.pid}};
}

Json version_document(const VersionEntry& entry) {
  Json document = {{"ref", entry.ref.text()},
                   {"dataset", entry.ref.dataset.text()},
                   {"version", entry.ref.version.text()},
                   {"state", version_state_name(entry.state())},
                   {"since", format_time(entry.since)},
                   {"who", writer_document(entry.who)},
                   {"reason", entry.reason}};
  if (entry.facts) add_facts(document, *entry.facts);
  if (entry.removal) {
    document["restorable_until"] = format_time(entry.removal->restorable_until());
  }
  return document;
}

Json alias_document(const AliasEntry& entry) {
  return {{"dataset", entry.dataset.text()},        {"alias", entry.alias.text()},
          {"event", alias_event_name(entry.event)}, {"time", format_time(entry.time)},
          {"who", writer_document(entry.who)},      {"from", optional_text(entry.previous)},
          {"to", optional_text(entry.target)}};
}

Json run_document(const RunEntry& entry, WallTime now) {
  Json uses = Json::array();
  for (const RunUse& use : entry.description.uses) {
    uses.push_back(
        {{"ref", use.ref.text()}, {"content_digest", record_digest(use.content_digest)}});
  }
  Json observed = Json::array();
  for (const RunRead& read : entry.observed.reads) {
    observed.push_back({{"version", read.version},
                        {"read_bytes", read.read_bytes},
                        {"reads", read.reads},
                        {"fetches", read.fetches},
                        {"fetched_bytes", read.fetched_bytes},
                        {"handed_out_files", read.handed_out_files}});
  }
  Json failures = Json::array();
  for (const RunFailure& failed : entry.observed.failures) {
    failures.push_back({{"dataset", failed.dataset},
                        {"sample", failed.sample},
                        {"key", failed.key},
                        {"action", failed.action},
                        {"error", failed.error},
                        {"times", failed.times}});
  }
  return {{"run", entry.id.value()},
          {"name", entry.description.name},
          {"state", run_state(entry, now)},
          {"uses", std::move(uses)},
          {"who", writer_document(entry.who)},
          {"git_commit", entry.description.git_commit},
          {"command", entry.description.command_line},
          {"started", format_time(entry.started)},
          {"heartbeat", format_time(entry.heartbeat)},
          {"ended", entry.ended ? Json(format_time(*entry.ended)) : Json(nullptr)},
          {"exit_code", entry.exit_code ? Json(*entry.exit_code) : Json(nullptr)},
          {"observed", std::move(observed)},
          {"failures", std::move(failures)}};
}

std::string_view run_state(const RunEntry& entry, WallTime now) {
  if (entry.ended) return "ended";
  return entry.live(now) ? "running" : "lost";
}

}  // namespace millrace
