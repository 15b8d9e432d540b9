#include "dataset/registry_facts.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/utf8.h"

namespace millrace {

namespace {

constexpr std::array<std::string_view, 5> kVersionStateNames = {"reserved", "aborted", "published",
                                                                "removed", "purged"};
constexpr std::array<std::string_view, 10> kVersionEventNames = {
    "reserved", "aborted",  "published", "annotated", "relayout",
    "removed",  "restored", "purged",    "repacking", "repack_aborted"};
constexpr std::array<std::string_view, 3> kVersionOriginNames = {"published", "registered",
                                                                 "promoted"};

template <class Enum>
std::optional<Enum> enum_from_name(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

Status check_fact_text(std::string_view what, std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} has {} bytes, at most {} are allowed", what, text.size(), bytes_max)};
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text.substr(at));
    if (length == 0) {
      return {StatusCode::kInvalidArgument, fmt::format("{} is not UTF-8 at byte {}", what, at)};
    }
    at += length;
  }
  return {};
}

}  // namespace

std::string_view version_state_name(VersionState state) {
  return kVersionStateNames[static_cast<std::size_t>(state)];
}

std::string_view version_event_name(VersionEvent event) {
  return kVersionEventNames[static_cast<std::size_t>(event)];
}

std::optional<VersionEvent> version_event_from_name(std::string_view name) {
  return enum_from_name<VersionEvent>(kVersionEventNames, name);
}

VersionState state_after(VersionEvent event) {
  switch (event) {
    case VersionEvent::kReserved:
      return VersionState::kReserved;
    case VersionEvent::kAborted:
      return VersionState::kAborted;
    case VersionEvent::kPublished:
    case VersionEvent::kAnnotated:
    case VersionEvent::kRelayout:
    case VersionEvent::kRestored:
    case VersionEvent::kRepacking:
    case VersionEvent::kRepackAborted:
      return VersionState::kPublished;
    case VersionEvent::kRemoved:
      return VersionState::kRemoved;
    case VersionEvent::kPurged:
      break;
  }
  return VersionState::kPurged;
}

std::string_view version_origin_name(VersionOrigin origin) {
  return kVersionOriginNames[static_cast<std::size_t>(origin)];
}

std::optional<VersionOrigin> version_origin_from_name(std::string_view name) {
  return enum_from_name<VersionOrigin>(kVersionOriginNames, name);
}

Status check_annotation(const VersionAnnotation& annotation) {
  MR_RETURN_IF_ERROR(check_fact_text("the text of the notes", annotation.notes, kNotesBytesMax));
  if (annotation.labels.size() > kLabelsMax) {
    return {StatusCode::kInvalidArgument, fmt::format("a version has at most {} labels, not {}",
                                                      kLabelsMax, annotation.labels.size())};
  }
  for (const auto& [name, value] : annotation.labels) {
    if (name.empty()) return {StatusCode::kInvalidArgument, "the name of a label is empty"};
    MR_RETURN_IF_ERROR(check_fact_text("the name of a label", name, kLabelNameBytesMax));
    MR_RETURN_IF_ERROR(
        check_fact_text(fmt::format("the label '{}'", name), value, kLabelValueBytesMax));
  }
  return {};
}

Status check_facts(const VersionFacts& facts) {
  MR_RETURN_IF_ERROR(check_annotation(facts.annotation));
  if (facts.source.size() > kSourceBytesMax) {
    return {StatusCode::kInvalidArgument,
            fmt::format("the source has {} bytes, at most {} are allowed", facts.source.size(),
                        kSourceBytesMax)};
  }
  if (facts.layout.parents.size() <= kParentsMax) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("a version shares objects with at most {} others, not {}", kParentsMax,
                      facts.layout.parents.size())};
}

}  // namespace millrace
