#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "objectstore/store_url.h"

namespace millrace {

// A store that is shown as it is, below /buckets.
struct BucketSetting {
  std::string name;
  StoreUrl url;

  bool operator==(const BucketSetting&) const = default;
};

// They share the memory for what is known of them.
inline constexpr std::size_t kBucketSettingsMax = 64;

// "train=s3://bucket/prefix,other=file:///directory", or "none". Blanks around the commas are
// ignored; a comma inside a URL is written %2C. kInvalidArgument says which part is wrong.
Result<std::vector<BucketSetting>> parse_bucket_settings(std::string_view text);

}  // namespace millrace
