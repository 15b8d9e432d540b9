#include "dataset/version_reader.h"

#include "dataset/version_source.h"
#include "dataset/version_verify.h"
#include "tests/dataset/version_world.h"

namespace millrace {
namespace {

struct VerifyOutcome {
  VerifyTotals totals = {};
  std::map<std::string, std::string> problems = {};
};

VerifyOutcome verify_all(StoredVersion& version, VerifyOptions options = {}) {
  VerifyOutcome outcome;
  SeededRandom random(7);
  const VersionReader reader = version.reader();
  const auto totals = verify_version(version.world.context, reader, options, random,
                                     [&](const VerifyProblem& problem) {
                                       outcome.problems.emplace(problem.path, problem.reason);
                                     });
  EXPECT_TRUE(totals.has_value()) << totals.error().to_string();
  if (totals) outcome.totals = *totals;
  return outcome;
}

TEST(VersionReader, ReadsAnyRangeOfAnyFile) {
  const ScratchTree tree;
  fill_tree(tree, 1);
  StoredVersion version(tree.root(), {.file_bytes_max = 200'000, .target_bytes = 400'000});
  const VersionReader reader = version.reader({.window_bytes = 2 * kUnitBytes});
  std::mt19937_64 random(1);
  VersionWindow window(reader);
  for (int n = 0; n < 1000; ++n) {
    const auto index = static_cast<EntryIndex>(random() % version.manifest->entries());
    const ManifestEntry entry = version.manifest->entry(index).value();
    if (entry.kind() != EntryKind::kFile) continue;
    const std::string path = version.manifest->path_of(index).value();
    const std::string content = read_bytes(tree.path(path));
    const std::uint64_t offset = random() % (content.size() + 10);
    std::string into(random() % 100'000, '\0');
    const auto count = window.read_at(version.world.context, entry, offset,
                                      std::as_writable_bytes(std::span(into)));
    ASSERT_TRUE(count.has_value()) << count.error().to_string();
    const std::string expected = offset < content.size() ? content.substr(offset, into.size()) : "";
    ASSERT_EQ(into.substr(0, *count), expected) << path << " at " << offset;
  }
  tree.set_mode("nothing", 0755);
}

TEST(VersionReader, IsASource) {
  const ScratchTree tree;
  fill_tree(tree, 2);
  StoredVersion version(tree.root(), {.file_bytes_max = 200'000, .target_bytes = 400'000});
  const VersionReader reader = version.reader();
  VersionSource source(reader);
  const auto again = scan_all(source);
  const auto first = scan_all(*DirectorySource::open_root(tree.root()).value());
  ASSERT_EQ(again->entries().size(), first->entries().size());
  for (const auto& [path, entry] : first->entries()) {
    SourceEntry found = again->at(path);
    if (entry.kind == EntryKind::kFile) {
      ASSERT_EQ(read_source(source, found).value(), read_bytes(tree.path(path))) << path;
    }
    found.token = entry.token;
    ASSERT_EQ(found, entry) << path;
  }
  const auto stranger = source.open(version.world.context, {.path = "x", .size = 1, .token = "no"});
  EXPECT_EQ(stranger.error().code(), StatusCode::kInvalidArgument);
  tree.set_mode("nothing", 0755);
}

TEST(VersionVerify, FindsNothingWhereNothingIsWrong) {
  const ScratchTree tree;
  fill_tree(tree, 3);
  StoredVersion version(tree.root(), {.file_bytes_max = 200'000, .target_bytes = 400'000});
  const VerifyOutcome outcome = verify_all(version);
  EXPECT_TRUE(outcome.problems.empty());
  EXPECT_EQ(outcome.totals.files, version.manifest->totals().files);
  EXPECT_EQ(outcome.totals.read_files, outcome.totals.files);
  EXPECT_EQ(outcome.totals.read_bytes, version.manifest->totals().logical_bytes);
  tree.set_mode("nothing", 0755);
}

TEST(VersionVerify, TakesExactlyTheSampleThatWasAskedFor) {
  const ScratchTree tree;
  for (int n = 0; n < 50; ++n)
    tree.write(std::to_string(n), std::to_string(n));
  StoredVersion version(tree.root(), {});
  for (const std::uint64_t sample : {0U, 1U, 7U, 50U, 90U}) {
    EXPECT_EQ(verify_all(version, {.sample = sample}).totals.files,
              std::min<std::uint64_t>(sample, 50));
  }
}

// An object that the store changed without a new identity: only the checksums of units notice, and
// a second version of the same key only its identity.
TEST(VersionVerify, ListsWhatIsWrong) {
  const ScratchTree tree;
  fill_tree(tree, 4);
  StoredVersion version(tree.root(), {.file_bytes_max = 200'000, .target_bytes = 400'000});
  version.damage(std::string(StoredVersion::kPrefix) + "large.bin", 1000);
  const VerifyOutcome outcome = verify_all(version);
  ASSERT_EQ(outcome.problems.size(), 1U);
  EXPECT_EQ(outcome.totals.problems, 1U);
  const std::string& reason = outcome.problems.at("large.bin");
  EXPECT_NE(reason.find("was replaced"), std::string::npos) << reason;
  EXPECT_NE(reason.find("a@v1"), std::string::npos);
  tree.set_mode("nothing", 0755);
}

// One file of three units in one object, with what the manifest knows of it.
class OneFile {
 public:
  OneFile(const ContentHash& hash, bool checksums, const std::string& stored) {
    const ObjectInfo info =
        world.memory->put(world.context, ObjectKey("x/file"), Slice::copy_of(stored), {}).value();
    auto builder =
        ManifestBuilder::create({.path = folder.file("manifest"), .prefix = "x/"}).value();
    const UnitChecksums units = unit_checksums_of(content());
    const std::uint32_t object =
        builder
            ->add_object({.key = info.key,
                          .identity = info.identity,
                          .size = content().size(),
                          .foreign = true,
                          .checksums = checksums ? std::span(units) : std::span<std::uint32_t>()})
            .value();
    EXPECT_TRUE(builder
                    ->add({.path = "file",
                           .size = content().size(),
                           .hash = hash,
                           .extents = {{.object = object,
                                        .stored_bytes = content().size(),
                                        .logical_bytes = content().size()}}})
                    .ok());
    EXPECT_TRUE(builder->finish().has_value());
    manifest = Manifest::open(folder.file("manifest")).value();
  }

  static const std::string& content() {
    static const std::string text(3 * kUnitBytes - 100, 'c');
    return text;
  }
  static std::string damaged() {
    std::string text = content();
    text[kUnitBytes + 5] = 'x';
    return text;
  }
  Result<VerifyTotals> verify(std::vector<std::string>& reasons) {
    SeededRandom random(1);
    const VersionReader reader(*world.recording, *manifest, ref_of("a@v1"), {}, world.clock);
    return verify_version(world.context, reader, {}, random,
                          [&](const VerifyProblem& problem) { reasons.push_back(problem.reason); });
  }

  RegistryWorld world;
  ManifestFolder folder;
  std::unique_ptr<Manifest> manifest;
};

TEST(VersionVerify, HoldsUnitsAgainstTheirChecksums) {
  OneFile file(ContentHash::of_identity(ObjectIdentity("other")), true, OneFile::damaged());
  std::vector<std::string> reasons;
  EXPECT_EQ(file.verify(reasons)->read_files, 1U);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("bytes 65536 to 131072"), std::string::npos) << reasons[0];
  EXPECT_NE(reasons[0].find("x/file"), std::string::npos);
  EXPECT_NE(reasons[0].find("a@v1"), std::string::npos);
}

TEST(VersionVerify, HoldsContentAgainstItsHash) {
  const ContentHash hash = ContentHash::of_content(sha256(as_bytes(OneFile::content())));
  OneFile file(hash, false, OneFile::damaged());
  std::vector<std::string> reasons;
  ASSERT_TRUE(file.verify(reasons).has_value());
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("SHA-256"), std::string::npos);
}

TEST(VersionVerify, ComparesIdentityAndSizeWhereThereIsNoHash) {
  OneFile file(ContentHash::of_identity(ObjectIdentity("other")), false, OneFile::content());
  std::vector<std::string> reasons;
  const auto totals = file.verify(reasons);
  ASSERT_TRUE(totals.has_value());
  EXPECT_EQ(totals->compared_files, 1U);
  EXPECT_EQ(totals->read_files, 0U);
  EXPECT_TRUE(reasons.empty());
  EXPECT_EQ(file.world.recording->count(StoreOperation::kGetRange), 0U);
  file.world.write("x/file", OneFile::damaged());
  EXPECT_TRUE(file.verify(reasons).has_value());
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("x/file"), std::string::npos);
}

}  // namespace
}  // namespace millrace
