#include "tests/dataset/version_contents.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/random.h"
#include "dataset/manifest_cursor.h"
#include "dataset/manifest_store.h"
#include "dataset/version_reader.h"

namespace millrace {
namespace {

Status add_version_keys(const RequestContext& context, const VersionReader& reader,
                        VersionContents& contents) {
  for (std::uint32_t n = 0; n < reader.manifest().objects(); ++n) {
    MR_ASSIGN_OR_RETURN(const ManifestObject object, reader.manifest().object(n));
    MR_RETURN_IF_ERROR(reader.check_object(context, object));
    contents.keys.insert(object.key.value());
  }
  return {};
}

Status add_version_files(const RequestContext& context, const VersionReader& reader,
                         VersionContents& contents) {
  VersionWindow window(reader);
  ManifestCursor cursor(reader.manifest());
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) return {};
    if (item->entry.kind() != EntryKind::kFile) continue;
    std::string bytes(item->entry.size(), '\0');
    MR_ASSIGN_OR_RETURN(
        const std::size_t size,
        window.read_at(context, item->entry, 0,
                       MutableByteView(reinterpret_cast<std::byte*>(bytes.data()), bytes.size())));
    const bool hashed = item->entry.hash().kind == HashKind::kSha256;
    if (size != bytes.size() ||
        (hashed && item->entry.hash() != ContentHash::of_content(sha256(as_bytes(bytes))))) {
      return {StatusCode::kCorruption, fmt::format("'{}' has other bytes", item->path)};
    }
    contents.files.emplace(item->path, std::move(bytes));
  }
}

}  // namespace

Result<VersionContents> read_version_contents(const RequestContext& context, ObjectStore& store,
                                              const VersionEntry& entry,
                                              const std::string& directory) {
  const std::string pages = fmt::format("{}/{}", directory, system_random().token());
  VersionContents contents;
  contents.keys.insert(entry.facts->layout.manifest_key);
  const auto read = [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<Manifest> manifest,
                        ManifestStore(store, pages).open_whole(context, entry.facts->layout));
    const VersionReader reader(store, *manifest, entry.ref);
    MR_RETURN_IF_ERROR(add_version_keys(context, reader, contents));
    return add_version_files(context, reader, contents);
  };
  const Status status = read();
  std::error_code ignored;
  std::filesystem::remove_all(pages, ignored);
  if (!status.ok()) return failure(status.with_context(entry.ref.text()));
  return contents;
}

}  // namespace millrace
