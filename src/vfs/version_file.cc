#include "vfs/version_file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/current_request.h"
#include "base/log.h"
#include "vfs/gathered_read.h"
#include "vfs/pinned_object.h"

namespace millrace {
namespace {

// The parts that a range of the file needs, each cut to it.
std::vector<FilePart> cut(const std::vector<FilePart>& parts, ByteRange range) {
  std::vector<FilePart> needed;
  for (const FilePart& part : parts) {
    const std::uint64_t begin = std::max(part.file_offset, range.offset);
    const std::uint64_t end = std::min(part.file_offset + part.bytes.length, range.end());
    if (begin >= end) continue;
    needed.push_back({.file_offset = begin,
                      .object = part.object,
                      .bytes = {part.bytes.offset + (begin - part.file_offset), end - begin},
                      .number = part.number});
  }
  return needed;
}

}  // namespace

VersionFile::VersionFile(std::shared_ptr<VersionTree> tree, ManifestEntry entry,
                         std::shared_ptr<const Caller> opener)
    : tree_(std::move(tree)),
      entry_(entry),
      accounts_(tree_->reads().observer, tree_->ref().text(), std::move(opener)) {}

void VersionFile::read(const RequestContext& context, ByteRange range, Completion<Slice> done) {
  if (range.offset >= entry_.size()) {
    done.complete(Slice());
    return;
  }
  range.length = std::min(range.length, entry_.size() - range.offset);
  std::shared_ptr<ReadAccount> account = accounts_.of(context);
  const auto request = std::make_shared<const Request>(
      Request{.context = account ? context.with_account(account) : context,
              .range = range,
              .account = std::move(account)});
  read_from(tree_->objects(), request, std::move(done), true);
}

Result<std::vector<FilePart>> VersionFile::parts_in(const VersionObjects& objects) const {
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, objects.manifest().entry(entry_.index()));
  return objects.parts(entry);
}

void VersionFile::read_from(const Objects& objects, const RequestPtr& request,
                            Completion<Slice> done, bool may_renew) {
  const CurrentRequest current(request->context);
  const Result<std::vector<FilePart>> parts = parts_in(*objects);
  if (!parts) {
    failed(objects, request, std::move(done), parts.error(), may_renew);
    return;
  }
  Completion<Slice> answered(
      inline_executor(), [self = shared_from_this(), objects, request, may_renew,
                          done = std::move(done)](Result<Slice> result) mutable {
        if (!result) {
          self->failed(objects, request, std::move(done), result.error(), may_renew);
          return;
        }
        if (request->account) request->account->add_read(result->size());
        done.complete(std::move(result));
      });
  const std::vector<FilePart> needed = cut(*parts, request->range);
  if (needed.size() == 1) {
    tree_->reads().cache.read(request->context, needed.front().object, needed.front().bytes,
                              std::move(answered));
  } else {
    GatheredRead::start(tree_->reads(), request->context, needed, request->range,
                        std::move(answered));
  }
  if (request->context.has_plan()) return;
  for (const FilePart& part : needed)
    note_read(objects, request, part);
}

void VersionFile::note_read(const Objects& objects, const RequestPtr& request,
                            const FilePart& part) {
  const std::uint64_t bytes = objects->note_read(part);
  if (bytes == 0) return;
  // Where there is much to do already, a guess can be left out.
  static_cast<void>(tree_->reads().work.submit([objects, request, number = part.number, bytes] {
    objects->expect_behind(request->context, number, bytes);
  }));
}

void VersionFile::failed(const Objects& objects, const RequestPtr& request, Completion<Slice> done,
                         Status why, bool may_renew) {
  if (!is_gone(why)) {
    done.complete(failure(std::move(why)));
    return;
  }
  tree_->reads().work.resume([self = shared_from_this(), objects, request, may_renew,
                              why = std::move(why), done = std::move(done)]() mutable {
    if (may_renew) {
      Result<Objects> newer = self->tree_->newer_than(request->context, objects);
      if (!newer) {
        done.complete(failure(std::move(newer).error()));
        return;
      }
      if (*newer != nullptr) {
        self->read_from(*newer, request, std::move(done), false);
        return;
      }
    }
    self->report(*objects, request->range, why);
    done.complete(failure(gone(why.with_context(self->tree_->name()))));
  });
}

void VersionFile::report(const VersionObjects& objects, ByteRange range, const Status& why) {
  if (reported_.exchange(true)) return;
  const Result<std::string> path = objects.manifest().path_of(entry_.index());
  std::vector<std::string> keys;
  if (const Result<std::vector<FilePart>> parts = parts_in(objects)) {
    for (const FilePart& part : cut(*parts, range))
      keys.push_back(part.object.key().value());
  }
  log_error("an object of a version was changed or deleted in the store",
            {{"dataset", tree_->ref().dataset.text()},
             {"version", tree_->ref().version.text()},
             {"key", fmt::format("{}", fmt::join(keys, " "))},
             {"path", path ? *path : "?"},
             {"error", why.to_string()}});
}

Result<std::unique_ptr<CompleteObject>> VersionFile::complete(const RequestContext& context) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const std::vector<FilePart> parts, parts_in(*tree_->objects()));
  if (parts.size() != 1 || parts.front().bytes.offset != 0 ||
      parts.front().bytes.length != parts.front().object.size()) {
    return failure(StatusCode::kNotFound, "the file is not exactly one object");
  }
  return tree_->reads().cache.open_complete(context, parts.front().object);
}

void VersionFile::count_handed_out(const RequestContext& context) {
  if (const auto account = accounts_.of(context)) account->add_handed_out(entry_.size());
}

Result<std::string> VersionFile::cached(const RequestContext& context) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const std::vector<FilePart> parts, parts_in(*tree_->objects()));
  std::uint64_t bytes = 0;
  for (const FilePart& part : parts) {
    MR_ASSIGN_OR_RETURN(const std::uint64_t there,
                        tree_->reads().cache.cached_bytes(context, part.object, part.bytes));
    bytes += there;
  }
  return cached_word(bytes, entry_.size());
}

}  // namespace millrace
