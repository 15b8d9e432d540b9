#include "objectstore/memory_object_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "objectstore/paused_call.h"

namespace millrace {

// Collects pieces and stores them whole. Counted by the store so that tests see what is left open.
class MemoryUpload final : public Upload {
 public:
  MemoryUpload(MemoryObjectStore& store, ObjectKey key, PutOptions options)
      : store_(store), key_(std::move(key)), options_(std::move(options)) {
    ++store_.open_uploads_;
  }
  ~MemoryUpload() override { close(); }

  Status write(const RequestContext& context, Slice data) override {
    MR_RETURN_IF_ERROR(check_open());
    MR_RETURN_IF_ERROR(store_.begin(context));
    bytes_.append(data.text());
    return {};
  }

  Result<ObjectInfo> finish(const RequestContext& context) override {
    MR_RETURN_IF_ERROR(check_open());
    MR_RETURN_IF_ERROR(store_.begin(context));
    const auto condition =
        store_.options_.ignore_upload_conditions ? WriteCondition::none() : options_.condition;
    auto stored = store_.store(key_, Slice::copy_of(bytes_), options_.metadata, condition);
    if (stored) close();
    return stored;
  }

  Status abort(const RequestContext& context) override {
    MR_RETURN_IF_ERROR(store_.begin(context));
    close();
    return {};
  }

 private:
  Status check_open() const {
    if (open_) return {};
    return {StatusCode::kInvalidArgument, "the upload is already finished or aborted"};
  }
  void close() {
    if (std::exchange(open_, false)) --store_.open_uploads_;
    bytes_.clear();
  }

  MemoryObjectStore& store_;
  const ObjectKey key_;
  const PutOptions options_;
  std::string bytes_;
  bool open_ = true;
};

namespace {

// The least string that is greater than all that begin with `prefix`; empty when there is none.
std::string after_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF)
    prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

// The folded entry that `key` belongs to, empty when it stands for itself.
std::string folded_prefix(const ListRequest& request, const std::string& key) {
  if (!request.fold_directories) return {};
  const std::size_t slash = key.find('/', request.prefix.size());
  return slash == std::string::npos ? std::string() : key.substr(0, slash + 1);
}

}  // namespace

MemoryObjectStore::MemoryObjectStore(Clock& clock, Executor& executor,
                                     MemoryObjectStoreOptions options)
    : clock_(clock), executor_(executor), options_(std::move(options)) {}

MemoryObjectStore::~MemoryObjectStore() = default;

Status MemoryObjectStore::begin(const RequestContext& context) {
  if (options_.latency == Duration::zero()) return context.check(clock_);
  MR_RETURN_IF_ERROR(context.check(clock_));
  return pause_thread(clock_, context, clock_.now() + options_.latency);
}

Status MemoryObjectStore::not_found(const ObjectKey& key) const {
  return {StatusCode::kNotFound, fmt::format("no object '{}' in {}", key.value(), describe())};
}

void MemoryObjectStore::get_range(const RequestContext& context, GetRequest request,
                                  Completion<GetResult> done) {
  if (Status status = context.check(clock_); !status.ok()) {
    done.complete(failure(std::move(status)));
    return;
  }
  if (options_.latency == Duration::zero()) {
    done.complete(read(request));
    return;
  }
  pause_call(clock_, executor_, context, clock_.now() + options_.latency,
             [this, request = std::move(request), done = std::move(done)](Status status) mutable {
               if (!status.ok()) {
                 done.complete(failure(std::move(status)));
               } else {
                 done.complete(read(request));
               }
             });
}

Result<GetResult> MemoryObjectStore::read(const GetRequest& request) const {
  MR_RETURN_IF_ERROR(validate_key(request.key));
  if (request.range && request.range->empty()) {
    return failure(StatusCode::kInvalidArgument, "a range of length 0 holds nothing to read");
  }
  MutexLock lock(mutex_);
  const auto found = objects_.find(request.key.value());
  if (found == objects_.end()) return failure(not_found(request.key));
  const Object& object = found->second;
  if (request.identity && *request.identity != object.info.identity) {
    return failure(
        StatusCode::kPreconditionFailed,
        fmt::format("'{}' in {} has changed: it is now {}, not {}", request.key.value(), describe(),
                    object.info.identity.value(), request.identity->value()));
  }
  GetResult result{object.data, object.info};
  result.info.metadata.clear();
  if (!request.range) {
    if (object.info.size > request.bytes_max) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("'{}' has {} bytes, more than the {} that the caller takes",
                                 request.key.value(), object.info.size, request.bytes_max));
    }
    return result;
  }
  if (request.range->offset >= object.info.size) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("the range starts at byte {} of '{}', which has {}",
                               request.range->offset, request.key.value(), object.info.size));
  }
  result.data = object.data.part(request.range->offset, request.range->length);
  return result;
}

Result<ObjectInfo> MemoryObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(begin(context));
  MutexLock lock(mutex_);
  const auto found = objects_.find(key.value());
  if (found == objects_.end()) return failure(not_found(key));
  return found->second.info;
}

Result<ListPage> MemoryObjectStore::list(const RequestContext& context,
                                         const ListRequest& request) {
  if (request.entries_max == 0) {
    return failure(StatusCode::kInvalidArgument, "a page of 0 entries would never end");
  }
  MR_RETURN_IF_ERROR(begin(context));
  ListPage page;
  if (options_.hide_new_keys_from_list) return page;

  MutexLock lock(mutex_);
  auto next = objects_.lower_bound(request.prefix);
  // A continuation is the last entry of the page before; one that ends in '/' and was folded stands
  // for all the keys under it, which the first letter tells.
  if (!request.continuation.empty()) {
    const std::string last = request.continuation.substr(1);
    if (request.continuation[0] == 'k') {
      next = objects_.upper_bound(last);
    } else if (request.continuation[0] == 'p') {
      next = objects_.lower_bound(after_prefix(last));
    } else {
      return failure(StatusCode::kInvalidArgument, "the continuation is not one of this store");
    }
  } else if (request.start_after >= request.prefix && !request.start_after.empty()) {
    next = objects_.upper_bound(request.start_after);
  }

  std::uint32_t entries = 0;
  std::string last;
  while (next != objects_.end() && next->first.starts_with(request.prefix)) {
    if (entries == request.entries_max) {
      page.continuation = last;
      break;
    }
    ++entries;
    if (std::string folded = folded_prefix(request, next->first); !folded.empty()) {
      last = "p" + folded;
      next = objects_.lower_bound(after_prefix(folded));
      page.prefixes.push_back(std::move(folded));
    } else {
      last = "k" + next->first;
      page.objects.push_back(next->second.info);
      page.objects.back().metadata.clear();
      ++next;
    }
  }
  return page;
}

Result<ObjectInfo> MemoryObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                          Slice data, const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(validate_metadata(options.metadata));
  MR_RETURN_IF_ERROR(begin(context));
  // A copy, because the caller's slice may keep a much larger buffer alive.
  return store(key, Slice::copy_of(data.bytes()), options.metadata, options.condition);
}

Status MemoryObjectStore::check_condition(const ObjectKey& key,
                                          const WriteCondition& condition) const {
  if (condition.kind == WriteCondition::Kind::kNone || options_.ignore_conditions) return {};
  if (options_.refuse_conditions) {
    return {StatusCode::kUnsupported, fmt::format("{} knows no conditional writes", describe())};
  }
  const auto found = objects_.find(key.value());
  if (condition.kind == WriteCondition::Kind::kIfAbsent) {
    if (found == objects_.end()) return {};
    return {StatusCode::kPreconditionFailed,
            fmt::format("'{}' exists already in {}", key.value(), describe())};
  }
  if (options_.ignore_identity_conditions) return {};
  if (found != objects_.end() && found->second.info.identity == condition.identity) return {};
  return {StatusCode::kPreconditionFailed,
          fmt::format("'{}' in {} is {}, not {}", key.value(), describe(),
                      found == objects_.end() ? "absent" : found->second.info.identity.value(),
                      condition.identity.value())};
}

Result<ObjectInfo> MemoryObjectStore::store(const ObjectKey& key, Slice data,
                                            ObjectMetadata metadata,
                                            const WriteCondition& condition) {
  const std::uint32_t checksum = crc32c(data.bytes());
  MutexLock lock(mutex_);
  MR_RETURN_IF_ERROR(check_condition(key, condition));
  Object object;
  object.info.key = key;
  object.info.size = data.size();
  object.info.identity = ObjectIdentity(fmt::format("{:08x}-{}", checksum, ++writes_));
  object.info.modified = clock_.wall_now();
  if (!options_.drop_metadata) object.info.metadata = std::move(metadata);
  object.data = std::move(data);
  ObjectInfo info = object.info;
  objects_.insert_or_assign(key.value(), std::move(object));
  return info;
}

Result<std::unique_ptr<Upload>> MemoryObjectStore::start_upload(const RequestContext& context,
                                                                const ObjectKey& key,
                                                                const PutOptions& options) {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(validate_metadata(options.metadata));
  MR_RETURN_IF_ERROR(begin(context));
  return std::make_unique<MemoryUpload>(*this, key, options);
}

Result<ObjectInfo> MemoryObjectStore::copy(const RequestContext& context, const ObjectInfo& source,
                                           const ObjectKey& target) {
  MR_RETURN_IF_ERROR(validate_key(source.key));
  MR_RETURN_IF_ERROR(validate_key(target));
  MR_RETURN_IF_ERROR(begin(context));
  if (options_.refuse_copy) {
    return failure(StatusCode::kUnsupported, fmt::format("{} cannot copy", describe()));
  }
  Object from;
  {
    MutexLock lock(mutex_);
    const auto found = objects_.find(source.key.value());
    if (found == objects_.end()) return failure(not_found(source.key));
    from = found->second;
  }
  if (!source.identity.value().empty() && source.identity != from.info.identity) {
    return failure(StatusCode::kPreconditionFailed,
                   fmt::format("'{}' in {} has changed before it could be copied",
                               source.key.value(), describe()));
  }
  return store(target, from.data, from.info.metadata, WriteCondition::none());
}

Status MemoryObjectStore::remove(const RequestContext& context, std::span<const ObjectKey> keys) {
  for (const ObjectKey& key : keys)
    MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(begin(context));
  MutexLock lock(mutex_);
  for (const ObjectKey& key : keys)
    objects_.erase(key.value());
  return {};
}

std::string MemoryObjectStore::describe() const { return options_.name + "://"; }

std::size_t MemoryObjectStore::object_count() const {
  MutexLock lock(mutex_);
  return objects_.size();
}

}  // namespace millrace
