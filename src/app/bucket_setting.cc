#include "app/bucket_setting.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/file_name.h"

namespace millrace {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

Result<BucketSetting> parse_bucket(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' is not accepted: expected NAME=URL, as in "
                               "train=s3://bucket/prefix,other=file:///directory, or none",
                               text));
  }
  BucketSetting bucket{.name = std::string(text.substr(0, equals)), .url = {}};
  if (const auto fault = file_name_fault(bucket.name)) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' cannot be the name of a directory: {}", bucket.name, *fault));
  }
  MR_ASSIGN_OR_RETURN(bucket.url, parse_store_url(text.substr(equals + 1)));
  return bucket;
}

}  // namespace

Result<std::vector<BucketSetting>> parse_bucket_settings(std::string_view text) {
  std::vector<BucketSetting> buckets;
  if (without_blanks(text) == "none") return buckets;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    MR_ASSIGN_OR_RETURN(BucketSetting bucket,
                        parse_bucket(without_blanks(text.substr(begin, end - begin))));
    if (std::ranges::find(buckets, bucket.name, &BucketSetting::name) != buckets.end()) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("the name '{}' is given twice", bucket.name));
    }
    if (buckets.size() == kBucketSettingsMax) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("there are more than {} buckets", kBucketSettingsMax));
    }
    buckets.push_back(std::move(bucket));
    begin = end + 1;
  }
  return buckets;
}

}  // namespace millrace
