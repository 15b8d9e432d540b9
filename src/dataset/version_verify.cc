#include "dataset/version_verify.h"

#include <atomic>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "dataset/version_batches.h"

namespace millrace {
namespace {

constexpr std::size_t kVerifyPieceBytes = kMiB;

// What is wrong with a file, as against a store that could not be asked.
bool is_finding(StatusCode code) {
  return code == StatusCode::kPreconditionFailed || code == StatusCode::kCorruption ||
         code == StatusCode::kNotFound;
}

class Verification {
 public:
  Verification(const VersionReader& reader, const VerifyOptions& options,
               const std::function<void(const VerifyProblem&)>& report)
      : reader_(reader), options_(options), report_(report) {}

  Status look_at(const RequestContext& context, VersionWindow& window, const VersionItem& item) {
    ++files_;
    Status status = compare(context, window, item);
    if (status.ok()) return {};
    if (!is_finding(status.code())) return status;
    ++problems_;
    MutexLock lock(mutex_);
    report_({.path = item.path, .reason = status.message()});
    return {};
  }

  VerifyTotals totals() const {
    return {.files = files_,
            .read_files = read_files_,
            .read_bytes = read_bytes_,
            .compared_files = compared_files_,
            .problems = problems_};
  }

 private:
  Status compare(const RequestContext& context, VersionWindow& window, const VersionItem& item) {
    MR_ASSIGN_OR_RETURN(const auto extents, reader_.manifest().extents(item.entry));
    std::vector<ManifestObject> objects;
    bool readable = item.entry.hash().kind == HashKind::kSha256;
    for (const Extent& extent : extents) {
      MR_ASSIGN_OR_RETURN(ManifestObject object, reader_.manifest().object_of(item.entry, extent));
      readable = readable || object.checksums != nullptr;
      objects.push_back(std::move(object));
    }
    if (readable) return read_again(context, window, item);
    ++compared_files_;
    for (const ManifestObject& object : objects)
      MR_RETURN_IF_ERROR(reader_.check_object(context, object));
    return {};
  }

  Status read_again(const RequestContext& context, VersionWindow& window, const VersionItem& item) {
    thread_local std::vector<std::byte> buffer(kVerifyPieceBytes);
    ++read_files_;
    Sha256 hash;
    MR_RETURN_IF_ERROR(read_version_file(context, window, item.entry, buffer,
                                         [&](std::uint64_t, ByteView piece) -> Status {
                                           hash.add(piece);
                                           read_bytes_ += piece.size();
                                           options_.read(piece.size());
                                           return {};
                                         }));
    const ContentHash& known = item.entry.hash();
    if (known.kind != HashKind::kSha256 || known == ContentHash::of_content(hash.finish()))
      return {};
    return {StatusCode::kCorruption, "its content has another SHA-256"};
  }

  const VersionReader& reader_;
  const VerifyOptions& options_;
  const std::function<void(const VerifyProblem&)>& report_;
  std::atomic<std::uint64_t> files_ = 0;
  std::atomic<std::uint64_t> read_files_ = 0;
  std::atomic<std::uint64_t> read_bytes_ = 0;
  std::atomic<std::uint64_t> compared_files_ = 0;
  std::atomic<std::uint64_t> problems_ = 0;
  Mutex mutex_;
};

// Of what is left to be seen, each is as likely to be among those still wanted: a sample of exactly
// the size that was asked for, in one pass.
VersionBatches::Choose choose_sample(std::uint64_t files, std::optional<std::uint64_t> sample,
                                     Random& random) {
  return [left = files, wanted = sample.value_or(files), all = !sample.has_value(),
          &random](const ManifestEntry& entry) mutable {
    if (entry.kind() != EntryKind::kFile) return false;
    if (all) return true;
    const bool chosen = left > 0 && random.next() % left < wanted;
    if (left > 0) --left;
    if (chosen) --wanted;
    return chosen;
  };
}

}  // namespace

Result<VerifyTotals> verify_version(const RequestContext& context, const VersionReader& reader,
                                    const VerifyOptions& options, Random& random,
                                    const std::function<void(const VerifyProblem&)>& report) {
  Verification verification(reader, options, report);
  VersionBatches batches(reader.manifest(),
                         choose_sample(reader.manifest().totals().files, options.sample, random));
  MR_RETURN_IF_ERROR(for_each_version_item(
      context, reader, options.parallel, batches,
      [&](const RequestContext& part, VersionWindow& window, const VersionItem& item) {
        return verification.look_at(part, window, item);
      }));
  return verification.totals();
}

}  // namespace millrace
