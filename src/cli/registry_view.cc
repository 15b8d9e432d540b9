#include "cli/registry_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time_format.h"
#include "cli/times.h"
#include "dataset/log_record_fields.h"

namespace millrace::cli {
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
          {"exit_code", entry.exit_code ? Json(*entry.exit_code) : Json(nullptr)}};
}

std::string_view run_state(const RunEntry& entry, WallTime now) {
  if (entry.ended) return "ended";
  return entry.live(now) ? "running" : "lost";
}

std::string who_text(const WriterIdentity& who) { return fmt::format("{}@{}", who.user, who.host); }

std::string date_text(WallTime time) { return format_iso8601(time).substr(0, 10); }

std::string count_text(std::uint64_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

Status print_table(Output& output, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    MR_RETURN_IF_ERROR(output.line(line));
  }
  return {};
}

ReadableListing readable_entries(std::vector<VersionListing> listings) {
  ReadableListing readable;
  for (VersionListing& listing : listings) {
    if (listing.entry) {
      readable.entries.push_back(std::move(*listing.entry));
    } else if (readable.damage.ok()) {
      readable.damage = listing.entry.error().with_context(listing.ref.text());
    }
  }
  return readable;
}

}  // namespace millrace::cli
