#include "dataset/dataset_name.h"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::string_view kRegistryFolder = ".millrace";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// Names come from command lines and stores: what is shown of them is short and printable.
std::string shown_dataset_name(std::string_view text) {
  std::string shown(text.substr(0, 64));
  std::ranges::replace_if(shown, [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return text.size() > shown.size() ? shown + "..." : shown;
}

Status bad_dataset_name(std::string_view text, std::string_view what, std::string_view why) {
  return {StatusCode::kInvalidArgument,
          fmt::format("'{}' is no name of a {}: {}", shown_dataset_name(text), what, why)};
}

}  // namespace

Status check_name_component(std::string_view text, std::string_view what) {
  if (text.empty()) return bad_dataset_name(text, what, "it is empty");
  if (text == "." || text == "..")
    return bad_dataset_name(text, what, "'.' and '..' mean directories");
  if (text.size() > kNameComponentBytesMax) {
    return bad_dataset_name(text, what,
                            fmt::format("a component has at most {} characters, this one has {}",
                                        kNameComponentBytesMax, text.size()));
  }
  const auto wrong = std::ranges::find_if_not(text, is_name_character);
  if (wrong == text.end()) return {};
  return bad_dataset_name(text, what,
                          fmt::format("use letters, digits, '.', '_' and '-', not '{}'",
                                      shown_dataset_name(std::string_view(wrong, 1))));
}

Result<DatasetName> DatasetName::parse(std::string_view text) {
  constexpr std::string_view kDataset = "dataset";
  if (text.size() > kDatasetNameBytesMax) {
    return failure(bad_dataset_name(
        text, kDataset, fmt::format("a name has at most {} characters", kDatasetNameBytesMax)));
  }
  std::size_t components = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++components) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view component = text.substr(begin, end - begin);
    if (component.empty()) {
      return failure(
          bad_dataset_name(text, kDataset, "there is nothing before, after or between its '/'"));
    }
    MR_RETURN_IF_ERROR(check_name_component(component, kDataset));
    if (begin == 0 && component == kRegistryFolder) {
      return failure(bad_dataset_name(text, kDataset, "the registry itself lives in '.millrace'"));
    }
    begin = end + 1;
  }
  if (components > kNameComponentsMax) {
    return failure(bad_dataset_name(text, kDataset,
                                    fmt::format("a name has at most {} components, this one has {}",
                                                kNameComponentsMax, components)));
  }
  return DatasetName(std::string(text));
}

Result<DatasetName> DatasetName::from_key_component(std::string_view component) {
  if (component.contains('/'))
    return failure(bad_dataset_name(component, "dataset", "it has a '/'"));
  std::string text(component);
  std::ranges::replace(text, ',', '/');
  return parse(text);
}

std::string DatasetName::key_component() const {
  std::string component = text_;
  std::ranges::replace(component, '/', ',');
  return component;
}

std::vector<DatasetName> DatasetName::proper_prefixes() const {
  std::vector<DatasetName> prefixes;
  for (std::size_t at = text_.find('/'); at != std::string::npos; at = text_.find('/', at + 1))
    prefixes.push_back(DatasetName(text_.substr(0, at)));
  return prefixes;
}

}  // namespace millrace
