#include "service/path_glob.h"

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::size_t kGlobBytesMax = 4096;

std::size_t byte_of(char c) { return static_cast<unsigned char>(c); }

// The first name of a path, which it is taken from.
std::string_view take_name(std::string_view& path) {
  const std::size_t slash = path.find('/');
  const std::string_view name = path.substr(0, slash);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  return name;
}

}  // namespace

std::unexpected<Status> PathGlob::wrong(std::string_view why) const {
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'{}' is no pattern for paths: {}", text_.substr(0, 200), why));
}

Result<PathGlob> PathGlob::parse(std::string_view text) {
  PathGlob glob(text);
  if (text.empty()) return glob.wrong("it is empty");
  if (text.size() > kGlobBytesMax) return glob.wrong("it is too long");
  if (text.front() == '/') return glob.wrong("paths begin below the version, without '/'");
  if (text.back() == '/') return glob.wrong("it ends with '/'; add '**' for all that is below");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view name = take_name(rest);
    if (name.empty()) return glob.wrong("it has an empty name between two '/'");
    MR_ASSIGN_OR_RETURN(Name parsed, glob.parse_name(name));
    glob.names_.push_back(std::move(parsed));
  }
  if (glob.names_.back().any_depth) {
    // All below a directory, but not the directory itself.
    glob.names_.push_back({.tokens = {Token{.any_number = true}}});
  }
  return glob;
}

Result<PathGlob::Name> PathGlob::parse_name(std::string_view name) const {
  if (name == "**") return Name{.any_depth = true};
  Name parsed;
  for (std::size_t at = 0; at < name.size();) {
    Token token;
    switch (const char c = name[at++]) {
      case '*':
        token.any_number = true;
        break;
      case '?':
        token.bytes.set();
        break;
      case '[': {
        MR_ASSIGN_OR_RETURN(token.bytes, parse_set(name, at));
        break;
      }
      case '\\':
        if (at == name.size()) return wrong("nothing follows the last '\\'");
        token.bytes.set(byte_of(name[at++]));
        break;
      default:
        token.bytes.set(byte_of(c));
    }
    parsed.tokens.push_back(token);
  }
  return parsed;
}

Result<std::bitset<256>> PathGlob::parse_set(std::string_view name, std::size_t& at) const {
  std::bitset<256> bytes;
  const bool negated = at < name.size() && (name[at] == '!' || name[at] == '^');
  if (negated) ++at;
  // A ']' that comes first is one of the bytes.
  for (bool first = true; at < name.size() && (first || name[at] != ']'); first = false) {
    const auto take = [&]() -> std::size_t {
      if (name[at] == '\\' && at + 1 < name.size()) ++at;
      return byte_of(name[at++]);
    };
    const std::size_t low = take();
    std::size_t high = low;
    if (at + 1 < name.size() && name[at] == '-' && name[at + 1] != ']') {
      ++at;
      high = take();
    }
    if (low > high) return wrong("a range in '[...]' runs backwards");
    for (std::size_t byte = low; byte <= high; ++byte)
      bytes.set(byte);
  }
  if (at >= name.size()) return wrong("a '[' has no ']'; write '\\[' for the byte itself");
  ++at;
  return negated ? ~bytes : bytes;
}

// Both loops go back to the last star alone: what an earlier one could take, that one can as well.
bool PathGlob::name_matches(const std::vector<Token>& tokens, std::string_view name) {
  std::size_t token = 0;
  std::size_t at = 0;
  std::size_t star = tokens.size();
  std::size_t star_at = 0;
  while (at < name.size()) {
    if (token < tokens.size() && tokens[token].any_number) {
      star = token++;
      star_at = at;
    } else if (token < tokens.size() && tokens[token].bytes.test(byte_of(name[at]))) {
      ++token;
      ++at;
    } else if (star < tokens.size()) {
      token = star + 1;
      at = ++star_at;
    } else {
      return false;
    }
  }
  while (token < tokens.size() && tokens[token].any_number)
    ++token;
  return token == tokens.size();
}

bool PathGlob::matches(std::string_view path) const {
  std::size_t name = 0;
  std::size_t star = names_.size();
  std::string_view rest = path;
  std::string_view star_rest;
  while (!rest.empty()) {
    if (name < names_.size() && names_[name].any_depth) {
      star = name++;
      star_rest = rest;
      continue;
    }
    std::string_view after = rest;
    if (name < names_.size() && name_matches(names_[name].tokens, take_name(after))) {
      ++name;
      rest = after;
    } else if (star < names_.size()) {
      name = star + 1;
      take_name(star_rest);
      rest = star_rest;
    } else {
      return false;
    }
  }
  while (name < names_.size() && names_[name].any_depth)
    ++name;
  return name == names_.size();
}

}  // namespace millrace
