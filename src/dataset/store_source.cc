#include "dataset/store_source.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "dataset/source_listing.h"
#include "dataset/source_work.h"

namespace millrace {
namespace {

class StoredSourceFile final : public SourceFile {
 public:
  StoredSourceFile(ObjectStore& store, ObjectKey key, const SourceEntry& scanned)
      : store_(store), key_(std::move(key)), size_(scanned.size), identity_(scanned.token) {}

  Result<std::size_t> read_at(const RequestContext& context, std::uint64_t offset,
                              MutableByteView into) override {
    if (offset >= size_ || into.empty()) return 0;
    const std::uint64_t length = std::min<std::uint64_t>(into.size(), size_ - offset);
    const auto answer = store_.get(context, {.key = key_,
                                             .range = ByteRange{.offset = offset, .length = length},
                                             .identity = identity_});
    if (!answer) {
      const StatusCode code = answer.error().code();
      // Nothing that was there can be out of range, but for an object that is shorter now.
      if (code == StatusCode::kPreconditionFailed || code == StatusCode::kNotFound ||
          code == StatusCode::kInvalidArgument) {
        changed_ = true;
        return failure(source_changed(key_.value(), answer.error().message()));
      }
      return failure(answer.error());
    }
    // A store that does not honour the condition still says what it delivered.
    if (answer->info.identity != identity_ || answer->info.size != size_ ||
        answer->data.size() != length) {
      changed_ = true;
      return failure(source_changed(key_.value(),
                                    fmt::format("its identity was {} and is {}", identity_.value(),
                                                answer->info.identity.value())));
    }
    std::memcpy(into.data(), answer->data.data(), length);
    was_read_ = true;
    return length;
  }

  Result<bool> unchanged(const RequestContext& context) override {
    if (changed_) return false;
    // Reads are conditional, so what they gave is right without another request.
    if (was_read_) return true;
    const auto info = store_.head(context, key_);
    if (!info && info.error().code() == StatusCode::kNotFound) return false;
    if (!info) return failure(info.error());
    return info->identity == identity_ && info->size == size_;
  }

 private:
  ObjectStore& store_;
  const ObjectKey key_;
  const std::uint64_t size_;
  const ObjectIdentity identity_;
  bool was_read_ = false;
  bool changed_ = false;
};

}  // namespace

StoreSource::StoreSource(ObjectStore& store, std::string prefix, StoreSourceOptions options,
                         Clock& clock)
    : store_(store),
      prefix_(prefix.empty() || prefix.ends_with('/') ? std::move(prefix) : prefix + '/'),
      options_(options),
      clock_(clock) {}

std::string StoreSource::describe() const {
  return prefix_.empty() ? store_.describe()
                         : fmt::format("'{}' in {}", prefix_, store_.describe());
}

Status StoreSource::scan(const RequestContext& context, SourceSink& sink) {
  SourceSplit split(store_, prefix_, options_.ranges_max, options_.page_entries_max);
  auto ranges = split.run(context, options_.threads);
  if (!ranges) return ranges.error().with_context(describe());
  SourceWork<SourceKeyRange> work(ranges->size());
  for (SourceKeyRange& range : *ranges)
    work.add(std::move(range));
  const Status status = work.run("list", options_.threads, [&](const SourceKeyRange& range) {
    return SourceListing(context, clock_, store_, prefix_, options_.page_entries_max, sink)
        .run(range);
  });
  return status.with_context(describe());
}

Result<std::unique_ptr<SourceFile>> StoreSource::open(const RequestContext& context,
                                                      const SourceEntry& entry) {
  MR_RETURN_IF_ERROR(context.check(clock_));
  return std::make_unique<StoredSourceFile>(store_, key_of(entry), entry);
}

}  // namespace millrace
