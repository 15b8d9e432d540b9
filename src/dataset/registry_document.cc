#include "dataset/registry_document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/time_format.h"

namespace millrace {

namespace {

constexpr double kBytesPerGb = 1e9;
constexpr std::string_view kDocumentFields = "path, size_gb, sample_count, created, notes";

// Thrown out of the parser by the handler and caught in parse_registry_document(): the parser's
// callbacks have no other way to stop, and stopping early bounds what hostile nesting costs.
struct DocumentRefusal {
  int line;
  std::string sentence;
};

// A text as a whole number or decimal; nothing when there is anything else in it.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<WallTime> document_time(const std::string& text) {
  constexpr std::size_t kDateBytes = 10;
  const auto time = parse_iso8601(text.size() == kDateBytes ? text + "T00:00:00Z" : text);
  return time ? std::optional(*time) : std::nullopt;
}

// Takes the parser's events without building a tree. The mappings inside each other are:
//   0 the document, 1 "datasets", 2 a dataset, 3 "versions", 4 a version.
class RegistryDocumentReader final : public YAML::EventHandler {
 public:
  std::vector<DocumentedVersion> take() { return std::move(versions_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (levels_.empty()) return;  // An empty file has no versions.
    refuse_anchor(mark, anchor);
    if (at_key()) refuse(mark.line, "a name is missing before ':'");
    levels_.back().key.reset();  // Nothing is said: as if the line were not there.
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    refuse(mark.line, "aliases (*name) are not accepted: write the value itself");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark.line, "tags (!name) are not accepted");
    }
    if (levels_.empty()) refuse(mark.line, "expected 'datasets:' and the datasets below it");
    if (at_key()) {
      take_key(mark, value);
      return;
    }
    if (levels_.size() <= kVersionLevel) {
      refuse(mark.line, fmt::format("'{}' takes a mapping, not one value", *levels_.back().key));
    }
    take_field(mark, *levels_.back().key, value);
    levels_.back().key.reset();
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    refuse(mark.line, "lists are not accepted: a registry is mappings and values");
  }
  void OnSequenceEnd() override {}

  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    refuse_anchor(mark, anchor);
    if (!levels_.empty() && at_key()) refuse(mark.line, "a mapping cannot be a name");
    if (levels_.size() > kVersionLevel) {
      refuse(mark.line, fmt::format("'{}' takes one value, not a mapping", *levels_.back().key));
    }
    levels_.emplace_back();
  }
  void OnMapEnd() override {
    levels_.pop_back();
    if (!levels_.empty()) levels_.back().key.reset();
  }

 private:
  static constexpr std::size_t kVersionLevel = 4;

  struct Level {
    std::optional<std::string> key = {};  // Whose value comes next.
    std::map<std::string, int> lines = {};
  };

  [[noreturn]] static void refuse(int line, std::string sentence) {
    throw DocumentRefusal{line + 1, std::move(sentence)};
  }
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark.line, "anchors (&name) are not accepted");
  }

  bool at_key() const { return !levels_.back().key; }

  // The status of a name that somebody else judges, as a refusal of this line.
  template <class T>
  static T judged(int line, Result<T> result) {
    if (!result) refuse(line, result.error().message());
    return std::move(*result);
  }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    Level& level = levels_.back();
    const auto [same, is_new] = level.lines.emplace(key, mark.line + 1);
    if (!is_new) {
      refuse(mark.line, fmt::format("'{}' stands here a second time: line {} has it already", key,
                                    same->second));
    }
    const std::size_t depth = levels_.size() - 1;
    if (depth == 0 && key != "datasets") {
      refuse(mark.line, fmt::format("expected 'datasets', not '{}'", key));
    } else if (depth == 1) {
      dataset_ = judged(mark.line, DatasetName::parse(key));
    } else if (depth == 2 && key != "versions") {
      refuse(mark.line, fmt::format("expected 'versions', not '{}'", key));
    } else if (depth == 3) {
      versions_.push_back(
          {.ref = {*dataset_, judged(mark.line, VersionName::parse(key))}, .line = mark.line + 1});
    }
    level.key = key;
  }

  void take_field(const YAML::Mark& mark, const std::string& name, const std::string& value) {
    DocumentedVersion& version = versions_.back();
    if (name == "path") {
      version.path = value;
    } else if (name == "notes") {
      version.notes = value;
    } else if (name == "size_gb") {
      version.size_gb = whole_number<double>(value);
      // NaN and infinity are numbers to the parser.
      if (!version.size_gb || !std::isfinite(*version.size_gb) || *version.size_gb < 0) {
        refuse(mark.line, fmt::format("size_gb is a number such as 180 or 0.5, not '{}'", value));
      }
    } else if (name == "sample_count") {
      version.sample_count = whole_number<std::uint64_t>(value);
      if (!version.sample_count) {
        refuse(mark.line, fmt::format("sample_count is a whole number, not '{}'", value));
      }
    } else if (name == "created") {
      version.created = document_time(value);
      if (!version.created) {
        refuse(mark.line, fmt::format("created is a date such as 2026-01-15, not '{}'", value));
      }
    } else {
      refuse(mark.line, fmt::format("unknown field '{}': expected {}", name, kDocumentFields));
    }
  }

  std::vector<Level> levels_;
  std::optional<DatasetName> dataset_;
  std::vector<DocumentedVersion> versions_;
};

std::unexpected<Status> refuse_document(const std::string& file, int line,
                                        std::string_view sentence) {
  return failure(StatusCode::kInvalidArgument, fmt::format("{}:{}: {}", file, line, sentence));
}

// A double-quoted scalar, which can hold any text. Control characters are escaped, all else stands
// as it is.
std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// Plain where every reader of YAML takes it for a text: letters first, as in most names and URLs.
// Else "1.10", "2026-03-01" or "no" would become numbers, dates and booleans elsewhere.
std::string plain_or_quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:";
  constexpr std::array<std::string_view, 9> kWords = {"null", "true", "false", "yes", "no",
                                                      "on",   "off",  "y",     "n"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const bool letter_first = !lower.empty() && lower.front() >= 'a' && lower.front() <= 'z';
  const bool plain = letter_first && text.find_first_not_of(kPlain) == std::string_view::npos &&
                     !text.ends_with(':') && std::ranges::find(kWords, lower) == kWords.end();
  return plain ? std::string(text) : yaml_quoted(text);
}

}  // namespace

DocumentedVersion document_version(const VersionEntry& entry, std::string path) {
  const VersionFacts& facts = *entry.facts;
  DocumentedVersion version{.ref = entry.ref,
                            .path = std::move(path),
                            .size_gb = static_cast<double>(facts.totals.bytes) / kBytesPerGb,
                            .sample_count = facts.sample_count,
                            .created = facts.created};
  if (!facts.annotation.notes.empty()) version.notes = facts.annotation.notes;
  return version;
}

Result<std::vector<DocumentedVersion>> parse_registry_document(std::string_view text,
                                                               const std::string& file) {
  if (text.size() > kRegistryDocumentBytesMax) {
    return refuse_document(file, 1, "the file is larger than 64 MiB");
  }
  const auto nul = text.find('\0');
  if (nul != std::string_view::npos) {
    const auto line = std::ranges::count(text.substr(0, nul), '\n') + 1;
    return refuse_document(file, static_cast<int>(line), "a NUL byte: this is not a text file");
  }
  std::istringstream stream{std::string(text)};
  RegistryDocumentReader reader;
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(reader);
    if (parser) return refuse_document(file, 1, "more than one document ('---'): keep one");
  } catch (const DocumentRefusal& refusal) {
    return refuse_document(file, refusal.line, refusal.sentence);
  } catch (const YAML::Exception& error) {
    return refuse_document(file, error.mark.line + 1, fmt::format("not valid YAML: {}", error.msg));
  }
  return reader.take();
}

std::string format_size_gb(double size_gb) {
  std::string text = fmt::format("{:.3f}", size_gb);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string write_registry_document(std::span<const DocumentedVersion> versions) {
  if (versions.empty()) return "datasets: {}\n";
  std::string text = "datasets:\n";
  const DatasetName* dataset = nullptr;
  for (const DocumentedVersion& version : versions) {
    if (dataset == nullptr || *dataset != version.ref.dataset) {
      text += fmt::format("  {}:\n    versions:\n", plain_or_quoted(version.ref.dataset.text()));
    }
    dataset = &version.ref.dataset;
    text += fmt::format("      {}:\n", plain_or_quoted(version.ref.version.text()));
    text += fmt::format("        path: {}\n", plain_or_quoted(version.path));
    if (version.size_gb) {
      text += fmt::format("        size_gb: {}\n", format_size_gb(*version.size_gb));
    }
    if (version.sample_count) {
      text += fmt::format("        sample_count: {}\n", *version.sample_count);
    }
    if (version.created) {
      text += fmt::format("        created: {}\n", format_iso8601(*version.created).substr(0, 10));
    }
    if (version.notes) text += fmt::format("        notes: {}\n", yaml_quoted(*version.notes));
  }
  return text;
}

}  // namespace millrace
