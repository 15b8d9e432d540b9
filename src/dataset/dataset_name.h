#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace millrace {

// A name is 1 to 8 components of [A-Za-z0-9._-], joined by '/'. It becomes one component of keys,
// and a file store keeps a component as a file name: hence the limit of the whole.
inline constexpr std::size_t kNameComponentsMax = 8;
inline constexpr std::size_t kNameComponentBytesMax = 128;
inline constexpr std::size_t kDatasetNameBytesMax = 255;

// kInvalidArgument, with the rule that is broken, when `text` is no single component. `what` is
// "version", "alias" or "dataset".
Status check_name_component(std::string_view text, std::string_view what);

// The name of a dataset: "imagenet", "internal/user-logs".
class DatasetName {
 public:
  // kInvalidArgument says which rule `text` breaks. Also for what lies under ".millrace", where the
  // registry itself lives.
  static Result<DatasetName> parse(std::string_view text);
  // The reverse of key_component().
  static Result<DatasetName> from_key_component(std::string_view component);

  const std::string& text() const { return text_; }
  // As one component of a key: '/' is written ',', which no name has.
  std::string key_component() const;
  // The names that are a beginning of this one, by components: "a", "a/b" for "a/b/c".
  std::vector<DatasetName> proper_prefixes() const;

  auto operator<=>(const DatasetName&) const = default;

 private:
  explicit DatasetName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// A name of one component. `Tag::kWhat` names the kind of thing in messages.
template <class Tag>
class ComponentName {
 public:
  static Result<ComponentName> parse(std::string_view text) {
    MR_RETURN_IF_ERROR(check_name_component(text, Tag::kWhat));
    return ComponentName(std::string(text));
  }

  const std::string& text() const { return text_; }

  auto operator<=>(const ComponentName&) const = default;

 private:
  explicit ComponentName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

struct VersionNameTag {
  static constexpr std::string_view kWhat = "version";
};
struct AliasNameTag {
  static constexpr std::string_view kWhat = "alias";
};
// Versions and aliases of one dataset share one space of names: no text is both.
using VersionName = ComponentName<VersionNameTag>;
using AliasName = ComponentName<AliasNameTag>;

}  // namespace millrace
