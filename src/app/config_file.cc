#include "app/config_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace millrace {
namespace {

// Thrown out of the parser by the handler, caught in parse_config(): yaml-cpp's callbacks have no
// other way to stop, and stopping early is what keeps hostile nesting from growing the stack.
struct Refusal {
  int line;
  std::string sentence;
};

// Takes the parser's events without building a tree.
class FlatMapping final : public YAML::EventHandler {
 public:
  std::vector<ConfigEntry> take() { return std::move(entries_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (depth_ == 0) return;  // An empty file sets nothing.
    refuse_anchor(mark, anchor);
    if (name_is_next_) refuse(mark, "a name is missing before ':'");
    // The mark is where the parser noticed, often on the next line.
    throw Refusal{entries_.back().line,
                  fmt::format("'{}' has no value: give one, or remove the line", name_)};
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    refuse(mark, "aliases (*name) are not accepted: write the value itself");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    // "?" is a plain scalar and "!" a quoted one; anything else was written by hand.
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags (!name) are not accepted");
    if (depth_ == 0) refuse(mark, "expected lines of the form 'name: value'");
    if (!name_is_next_) {
      entries_.back().value = value;
      name_is_next_ = true;
      return;
    }
    const auto same = std::ranges::find(entries_, value, &ConfigEntry::name);
    if (same != entries_.end()) {
      refuse(mark,
             fmt::format("'{}' is set a second time: line {} sets it already", value, same->line));
    }
    name_ = value;
    entries_.push_back({value, "", mark.line + 1});
    name_is_next_ = false;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    refuse(mark, depth_ == 0 ? "expected lines of the form 'name: value', not a list"
                             : fmt::format("'{}' takes one value, not a list", name_));
  }
  void OnSequenceEnd() override {}

  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    refuse_anchor(mark, anchor);
    if (depth_ > 0) refuse(mark, fmt::format("'{}' takes one value, not a mapping", name_));
    ++depth_;
  }
  void OnMapEnd() override { --depth_; }

 private:
  [[noreturn]] static void refuse(const YAML::Mark& mark, std::string sentence) {
    throw Refusal{mark.line + 1, std::move(sentence)};
  }
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark, "anchors (&name) are not accepted");
  }

  std::vector<ConfigEntry> entries_;
  std::string name_;
  bool name_is_next_ = true;
  int depth_ = 0;
};

std::unexpected<Status> refuse_file(const std::string& file, int line, std::string_view sentence) {
  return failure(StatusCode::kInvalidArgument, fmt::format("{}:{}: {}", file, line, sentence));
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& file) {
  if (text.size() > kConfigFileBytesMax) {
    return refuse_file(file, 1, "the file is larger than 1 MiB, which no config file needs");
  }
  const auto nul = text.find('\0');
  if (nul != std::string_view::npos) {
    const auto line = std::ranges::count(text.substr(0, nul), '\n') + 1;
    return refuse_file(file, static_cast<int>(line), "a NUL byte: this is not a text file");
  }
  std::istringstream stream{std::string(text)};
  FlatMapping mapping;
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(mapping);
    if (parser) return refuse_file(file, 1, "more than one document ('---'): keep one");
  } catch (const Refusal& refusal) {
    return refuse_file(file, refusal.line, refusal.sentence);
  } catch (const YAML::Exception& error) {
    return refuse_file(file, error.mark.line + 1, fmt::format("not valid YAML: {}", error.msg));
  }
  return mapping.take();
}

Result<std::vector<ConfigEntry>> read_config_file(const std::string& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    const StatusCode code = absent            ? StatusCode::kNotFound
                            : errno == EACCES ? StatusCode::kPermissionDenied
                                              : StatusCode::kIoError;
    return failure(code, fmt::format("could not read the config file '{}': {}", file,
                                     std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  }
  // One byte more than is allowed tells "exactly at the limit" from "too large".
  std::string text(kConfigFileBytesMax + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (stream.gcount() == 0 && !stream.eof())) {
    return failure(StatusCode::kIoError,
                   fmt::format("could not read the config file '{}': is it a directory?", file));
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_config(text, file);
}

}  // namespace millrace
