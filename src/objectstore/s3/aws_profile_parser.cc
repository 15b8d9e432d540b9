#include "objectstore/s3/aws_profile_parser.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::s3 {
namespace {

constexpr std::string_view kSpace = " \t\r";

bool is_space(char c) { return kSpace.find(c) != std::string_view::npos; }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Cuts a comment: '#' or ';' after white space. Without the white space it is part of the value.
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if ((text[i] == '#' || text[i] == ';') && is_space(text[i - 1])) return text.substr(0, i);
  }
  return text;
}

std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front()) {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

class Parser {
 public:
  Parser(AwsFileKind kind, const std::string& file, AwsProfiles& profiles)
      : kind_(kind), file_(file), profiles_(profiles) {}

  Status line(std::string_view text);
  // "[profile default]" beats "[default]", wherever it stands: so it is merged last.
  void finish();

 private:
  Status section(std::string_view text);
  Status setting(std::string_view text);
  Status indented(std::string_view text);
  void open(std::string_view name);
  Status error(std::string_view what) const {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}:{}: {}", file_, line_, what));
  }

  const AwsFileKind kind_;
  const std::string& file_;
  AwsProfiles& profiles_;
  AwsSection prefixed_default_;
  int line_ = 0;
  bool in_section_ = false;
  AwsSection* section_ = nullptr;  // Null inside a section that is skipped.
  std::string name_;               // The last setting's name: what an indented line belongs to.
};

Status Parser::line(std::string_view text) {
  ++line_;
  const std::string_view content = trimmed(text);
  if (content.empty() || content.front() == '#' || content.front() == ';') return {};
  if (content.find('\0') != std::string_view::npos)
    return error("a NUL byte: is this a text file?");
  if (content.front() == '[' && !is_space(text.front())) return section(content);
  if (!in_section_) return error("expected a section such as [default] before any setting");
  if (is_space(text.front())) return indented(content);
  return setting(content);
}

Status Parser::section(std::string_view text) {
  const auto end = text.find(']');
  if (end == std::string_view::npos) return error("a section must end with ']'");
  const std::string_view after = trimmed(text.substr(end + 1));
  if (!after.empty() && after.front() != '#' && after.front() != ';') {
    return error("only a comment may follow ']'");
  }
  const std::string_view name = trimmed(text.substr(1, end - 1));
  if (name.empty()) return error("a section needs a name");
  in_section_ = true;
  name_.clear();
  open(name);
  return {};
}

void Parser::open(std::string_view name) {
  section_ = nullptr;
  const auto space = name.find_first_of(kSpace);
  const std::string_view kind = name.substr(0, space);
  const bool has_kind = space != std::string_view::npos;
  if (kind_ == AwsFileKind::kCredentials) {
    if (!has_kind || kind != "profile") section_ = &profiles_.profiles[std::string(unquoted(name))];
    return;
  }
  if (!has_kind) {
    if (name == "default") section_ = &profiles_.profiles["default"];
    return;
  }
  const std::string rest(unquoted(trimmed(name.substr(space))));
  if (kind == "profile") {
    section_ = rest == "default" ? &prefixed_default_ : &profiles_.profiles[rest];
  } else if (kind == "services") {
    section_ = &profiles_.services[rest];
  }
}

Status Parser::setting(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return error("expected 'name = value'");
  const std::string_view name = trimmed(text.substr(0, equals));
  if (name.empty()) return error("expected a name before '='");
  name_ = lowered(name);
  if (section_ == nullptr) return {};
  // The comment is looked for before trimming, so that "name = # nothing" is an empty value.
  const std::string_view value = trimmed(without_comment(text.substr(equals + 1)));
  section_->set(name_, {.value = std::string(value), .nested = {}, .file = file_, .line = line_});
  return {};
}

Status Parser::indented(std::string_view text) {
  if (name_.empty()) return error("an indented line must follow a setting");
  if (section_ == nullptr) return {};
  AwsSetting setting = *section_->find(name_);
  if (setting.value.empty()) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) return error("expected 'name = value' under a setting");
    const std::string name = lowered(trimmed(text.substr(0, equals)));
    if (name.empty()) return error("expected a name before '='");
    setting.nested[name] = trimmed(without_comment(text.substr(equals + 1)));
  } else {
    setting.value += '\n';
    setting.value += text;
  }
  section_->set(name_, std::move(setting));
  return {};
}

void Parser::finish() {
  if (!prefixed_default_.all().empty()) profiles_.profiles["default"] = prefixed_default_;
}

}  // namespace

Status parse_aws_file(std::string_view text, AwsFileKind kind, const std::string& file,
                      AwsProfiles& profiles) {
  // Editors on Windows put a byte order mark in front.
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Parser parser(kind, file, profiles);
  while (!text.empty()) {
    const auto end = text.find('\n');
    MR_RETURN_IF_ERROR(parser.line(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  parser.finish();
  return {};
}

}  // namespace millrace::s3
