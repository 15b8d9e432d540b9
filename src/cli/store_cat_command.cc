#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/object_reader.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

struct CatOptions {
  std::string url;
  std::string range;
  std::string offset;
  std::string length;
};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::unexpected<Status> refuse_range(std::string_view text) {
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("--range '{}' is not accepted: expected first-last in bytes, both "
                             "included, as in 0-1023, or 1024- for the rest",
                             text));
}

// What was asked for, before the size is known.
Result<ByteRange> parse_range(const CatOptions& options) {
  constexpr std::uint64_t kToTheEnd = std::numeric_limits<std::uint64_t>::max();
  ByteRange range{0, kToTheEnd};
  if (!options.range.empty()) {
    const std::string_view text = options.range;
    const auto dash = text.find('-');
    if (dash == std::string_view::npos) return refuse_range(text);
    const auto first = parse_number(text.substr(0, dash));
    const auto last = parse_number(text.substr(dash + 1));
    const bool open_end = dash + 1 == text.size();
    if (!first || (!last && !open_end) || (last && *last < *first)) return refuse_range(text);
    range.offset = *first;
    if (last && *last - *first < kToTheEnd) range.length = *last - *first + 1;
  }
  if (!options.offset.empty()) {
    MR_ASSIGN_OR_RETURN(range.offset, parse_size(options.offset));
  }
  if (!options.length.empty()) {
    MR_ASSIGN_OR_RETURN(range.length, parse_size(options.length));
  }
  return range;
}

Result<int> cat_object(Session& session, const CatOptions& options) {
  MR_ASSIGN_OR_RETURN(ByteRange range, parse_range(options));
  if (session.output().json()) {
    return failure(StatusCode::kInvalidArgument,
                   "cat writes the object's bytes and nothing else: leave out --json");
  }
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(options.url));
  MR_ASSIGN_OR_RETURN(const auto store, session.store(location.store));
  MR_ASSIGN_OR_RETURN(const ObjectInfo info, store->head(session.request(), location.object_key()));
  if (range.offset > info.size) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} has {} bytes: there is nothing at {}", location.to_string(),
                               info.size, range.offset));
  }
  range.length = std::min(range.length, info.size - range.offset);
  MR_RETURN_IF_ERROR(
      read_object(session, session.context(), *store, info, range,
                  [&](const Slice& data) { return session.output().write(data.bytes()); }));
  return 0;
}

}  // namespace

void register_store_cat(CommandLine& line, CLI::App& store) {
  auto options = std::make_shared<CatOptions>();
  CLI::App* const command = store.add_subcommand("cat", "Write an object to standard output");
  command->add_option("url", options->url, "The object: a URL, or a path inside --store")
      ->type_name("URL")
      ->required();
  CLI::Option* const range =
      command->add_option("--range", options->range, "Only these bytes, the last one included")
          ->type_name("FIRST-LAST");
  command->add_option("--offset", options->offset, "Start here, as in 4096 or 1MiB")
      ->type_name("SIZE")
      ->excludes(range);
  command->add_option("--length", options->length, "At most so many bytes")
      ->type_name("SIZE")
      ->excludes(range);
  line.runs(command, [options](Session& session) { return cat_object(session, *options); });
}

}  // namespace millrace::cli
