#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/status.h"
#include "dataset/dataset_name.h"

namespace millrace {

// One version of one dataset, as people write it: "imagenet@v2". Where a version is expected an
// alias may stand: Registry::resolve() follows it.
struct VersionRef {
  DatasetName dataset;
  VersionName version;

  // kInvalidArgument says what to write instead.
  static Result<VersionRef> parse(std::string_view text);
  std::string text() const { return dataset.text() + "@" + version.text(); }

  auto operator<=>(const VersionRef&) const = default;
};

}  // namespace millrace
