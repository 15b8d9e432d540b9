#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "dataset/entry_order.h"
#include "dataset/frame_format.h"
#include "dataset/frame_pages.h"
#include "dataset/manifest_builder.h"
#include "dataset/manifest_cursor.h"
#include "fuzz/fuzz_input.h"
#include "platform/file.h"

namespace {

using namespace millrace;

constexpr std::size_t kTableChecksumAt = 72;
constexpr std::size_t kHeaderChecksumAt = 12;
constexpr std::size_t kTableOffsetAt = 152 + 8 * 8;

const std::string& fuzz_directory() {
  static const std::string path = [] {
    std::string pattern = "/tmp/manifest-fuzz-XXXXXX";
    const char* const made = ::mkdtemp(pattern.data());
    fuzz_require(made != nullptr);
    std::atexit([] { (void)::rmdir(fuzz_directory().c_str()); });
    return std::string(made);
  }();
  return path;
}

// A small manifest with everything in it.
std::string small_manifest() {
  const std::string path = fuzz_directory() + "/small";
  const auto builder =
      ManifestBuilder::create({.path = path, .prefix = "p/", .prefix_store = "s3://own"}).value();
  const std::uint32_t checksums[] = {1, 2};
  const std::uint32_t object = builder
                                   ->add_object({.key = ObjectKey("k"),
                                                 .identity = ObjectIdentity("i"),
                                                 .size = 70'000,
                                                 .foreign = false,
                                                 .checksums = checksums})
                                   .value();
  const Extent extent{.object = object, .offset = 5, .stored_bytes = 9, .logical_bytes = 9};
  for (int i = 0; i < 40; ++i) {
    fuzz_require(
        builder
            ->add({.path = "d/f" + std::to_string(i), .mode = 0644, .size = 9, .extents = {extent}})
            .ok());
  }
  fuzz_require(builder->add({.path = "two", .size = 18, .extents = {extent, extent}}).ok());
  fuzz_require(
      builder->add({.path = "l", .kind = EntryKind::kSymlink, .symlink_target = "d"}).ok());
  const ContentHash etag =
      ContentHash::of_identity(ObjectIdentity("0123456789abcdef0123456789abcdef"));
  fuzz_require(builder
                   ->add({.path = "d/e/own",
                          .size = 7,
                          .hash = etag,
                          .extents = {{.object = kOwnObject,
                                       .codec = ExtentCodec::kNone,
                                       .offset = 0,
                                       .stored_bytes = 7,
                                       .logical_bytes = 7}}})
                   .ok());
  const std::uint32_t far = builder
                                ->add_object({.key = ObjectKey("k"),
                                              .identity = ObjectIdentity("i"),
                                              .size = 9,
                                              .foreign = true,
                                              .store = "s3://far"})
                                .value();
  const Extent elsewhere{.object = far, .stored_bytes = 9, .logical_bytes = 9};
  fuzz_require(builder->add({.path = "far", .size = 9, .extents = {elsewhere}}).ok());
  fuzz_require(builder->finish().has_value());
  std::string bytes = read_file(path).value();
  ::unlink(path.c_str());
  return bytes;
}

// Checksums are what a fuzzer does not find by itself.
void seal_manifest(std::string& file) {
  auto* const bytes = reinterpret_cast<std::byte*>(file.data());
  const auto table = load_little_endian<std::uint64_t>(bytes + kTableOffsetAt);
  if (table <= file.size() && table % kManifestPageBytes == 0) {
    for (std::uint64_t page = 1; page < table / kManifestPageBytes; ++page) {
      const std::uint64_t at = table + page * sizeof(std::uint32_t);
      if (at + sizeof(std::uint32_t) > file.size()) break;
      store_little_endian(bytes + at,
                          crc32c({bytes + page * kManifestPageBytes, kManifestPageBytes}));
    }
    store_little_endian(bytes + kTableChecksumAt, crc32c(as_bytes(file).subspan(table)));
  }
  std::string header = file.substr(0, kManifestPageBytes);
  header.erase(kHeaderChecksumAt, sizeof(std::uint32_t));
  store_little_endian(bytes + kHeaderChecksumAt, crc32c(as_bytes(header)));
}

void ask_everything(const Manifest& manifest) {
  for (EntryIndex index = 0; index < manifest.entries(); ++index) {
    const auto entry = manifest.entry(index);
    if (!entry) continue;
    const auto path = manifest.path_of(index);
    // No path leads out of the version, whatever the file says.
    fuzz_require(!path || !entry_path_fault(*path));
    if (path) (void)manifest.resolve(*path);
    (void)manifest.symlink_target(*entry);
    if (const auto children = manifest.children(*entry)) {
      ChildCursor cursor(manifest, *children);
      for (auto child = cursor.next(); child && *child; child = cursor.next())
        (void)manifest.find(index, (*child)->name);
    }
    if (const auto extents = manifest.extents(*entry)) {
      std::uint64_t bytes = 0;
      for (const Extent& extent : *extents) {
        bytes += extent.logical_bytes;
        const auto object = manifest.object_of(*entry, extent);
        fuzz_require(!object || extent.offset + extent.stored_bytes <= object->size);
        // What is ours to delete is in our store.
        fuzz_require(!object || object->foreign || object->store.empty());
      }
      fuzz_require(entry->kind() != EntryKind::kFile || bytes == entry->size());
    }
  }
  ManifestCursor cursor(manifest);
  for (auto item = cursor.next(); item && *item;)
    item = cursor.next();
}

void open_frame_index(std::string_view text) {
  const auto index = decode_frame_index(as_bytes(text), text.size() + 1000);
  if (!index) return;
  fuzz_require(as_text(encode_frame_index(*index)) == text);
}

}  // namespace

// A byte that says what to do (1: an index of frames, else a manifest; 2: leave checksums wrong),
// then, for a manifest, changes to a small one: page (1), place in it (2), value (1).
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string small = small_manifest();
  static const std::string path = fuzz_directory() + "/m";
  if (size < 1) return 0;
  if (data[0] % 2 == 1) {
    open_frame_index(fuzz_text(data + 1, size - 1));
    return 0;
  }
  std::string file = small;
  for (std::size_t at = 1; at + 4 <= size; at += 4) {
    const std::size_t page = data[at] % (small.size() / kManifestPageBytes);
    // Most of a page is filled up with zeros: the beginning is what matters.
    const std::size_t place = (data[at + 1] | data[at + 2] << 8) % 8192;
    file[page * kManifestPageBytes + place] = static_cast<char>(data[at + 3]);
  }
  if (data[0] / 2 % 2 == 0) seal_manifest(file);
  {
    const File out = File::open(path, O_WRONLY | O_CREAT | O_TRUNC).value();
    fuzz_require(out.write_at(0, as_bytes(file)).ok());
  }
  const auto manifest = Manifest::open(path);
  ::unlink(path.c_str());
  if (manifest) {
    ask_everything(**manifest);
  } else {
    fuzz_require(manifest.error() == StatusCode::kCorruption ||
                 manifest.error() == StatusCode::kUnsupported);
  }
  return 0;
}
