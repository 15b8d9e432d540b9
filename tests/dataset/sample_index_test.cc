// Sample indexes of archives, from their shards to what a loader asks.

#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "dataset/registration.h"
#include "dataset/sample_index_store.h"
#include "platform/file.h"
#include "tests/dataset/publish_world.h"
#include "tests/dataset/tar_archive.h"
#include "tests/servers/child_process.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ArchiveMember member_of(std::string path, std::string content) {
  return {.member = {.path = std::move(path), .size = content.size()}, .content = content};
}

// Shards in a store, registered with an index.
class SampleIndexTest : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) {
    shards_[name] = bytes;
    ASSERT_TRUE(
        world.memory->put(world.context, ObjectKey("raw/" + name), Slice::copy_of(bytes), {}));
  }
  Result<PublishReport> register_indexed(std::string_view ref) {
    return register_version(world.context, world.environment("state"), {.prefix = "raw"},
                            ref_of(ref), {.parallel = 3, .index = true});
  }
  std::unique_ptr<SampleIndex> open(std::string_view ref) {
    const auto entry = world.registry.version(world.context, ref_of(ref)).value();
    auto index = SampleIndexStore(*world.memory).open(world.context, entry.facts->content_digest);
    EXPECT_TRUE(index) << index.error().to_string();
    return *std::move(index);
  }
  // "key: field=content ..." for all samples of a version, as the index leads to them.
  std::vector<std::string> samples(std::string_view ref) {
    const auto index = open(ref);
    const auto manifest = world.manifest(ref);
    std::vector<std::string> found;
    for (std::uint64_t sample = 0; sample < index->samples(); ++sample) {
      const SamplePlace place = index->locate(sample);
      const SampleBlock block = index->block(world.context, place.block).value();
      const SampleBlock::Sample& at = block.samples.at(place.at);
      const std::string& shard =
          shards_.at(manifest->path_of(index->table().shards[place.shard].entry).value());
      std::string text = at.key + ":";
      for (std::size_t n = 0; n < block.member_count(at); ++n) {
        const SampleBlock::Member& member = block.members[at.first_member + n];
        text += fmt::format(" {}={}", block.shapes[at.shape][n],
                            shard.substr(member.offset, member.size));
      }
      found.push_back(std::move(text));
    }
    return found;
  }
  std::uint64_t bytes_read() {
    std::uint64_t bytes = 0;
    for (const RecordedRequest& call : world.recording->requests()) {
      if (call.operation == StoreOperation::kGetRange && call.key.starts_with("raw/")) {
        bytes += call.range ? call.range->length : 0;
      }
    }
    return bytes;
  }

  PublishWorld world;
  std::map<std::string, std::string> shards_;
};

TEST_F(SampleIndexTest, FindsSamplesAsWebDatasetDoes) {
  put("b.tar", archive_of({member_of("2.txt", "two")}));
  put("a.tar", archive_of({{.member = {.path = "d", .kind = TarKind::kDirectory}, .content = ""},
                           member_of("d/1.jpg", "one"),
                           member_of("README", "belongs to no sample"),
                           member_of("d/1.seg.PNG", "mask"),
                           member_of("d.x/1.cls", "another directory"),
                           member_of("d/1.txt", "not next to its like"),
                           member_of("d/.hidden", "none")}));
  put("empty.tar", archive_of({}));
  put("note.txt", "no shard");
  const auto report = register_indexed("d@v1");
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->indexed_samples, 4u);
  EXPECT_EQ(report->entry->facts->sample_count, 4u);
  EXPECT_THAT(samples("d@v1"),
              ElementsAre("d/1: jpg=one seg.PNG=mask", "d.x/1: cls=another directory",
                          "d/1: txt=not next to its like", "2: txt=two"));
  const auto index = open("d@v1");
  EXPECT_EQ(index->table().shards.size(), 3u);
  EXPECT_EQ(index->first_sample(1), 3u);
  EXPECT_EQ(index->first_sample(3), 4u);
}

// Hashing reads all of a shard: the index is made on the way, and is the same as one made alone.
TEST_F(SampleIndexTest, AHashedShardIsReadOnce) {
  std::vector<ArchiveMember> members;
  // Headers on both sides of what is read at once, and one across it.
  for (std::size_t n = 0; n < 40; ++n)
    members.push_back(member_of(fmt::format("{:08}.bin", n), publish_bytes(300'000 + n, n)));
  put("a.tar", archive_of(members) + "behind the end of the archive");
  put("empty.tar", "");
  put("sub/b.tar", archive_of({member_of("x.txt", "one"), member_of("x.cls", "1")}));
  put("note.txt", "no shard");
  std::uint64_t stored = 0;
  for (const auto& [name, bytes] : shards_)
    stored += bytes.size();
  const auto report =
      register_version(world.context, world.environment("state"), {.prefix = "raw"}, ref_of("d@v1"),
                       {.hash = true, .parallel = 3, .index = true});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->indexed_samples, 41u);
  EXPECT_EQ(bytes_read(), stored);
  const auto manifest = world.manifest("d@v1");
  const std::string& a = shards_.at("a.tar");
  EXPECT_EQ(manifest->entry(*manifest->resolve("a.tar").value()).value().hash(),
            ContentHash::of_content(sha256(as_bytes(a))));
  const VersionReader reader(*world.memory, *manifest, ref_of("d@v1"));
  const auto alone = build_sample_index(world.context, reader, {.scratch = world.state.root()});
  ASSERT_TRUE(alone) << alone.error().to_string();
  // Refused if it were another one.
  EXPECT_TRUE(SampleIndexStore(*world.memory).put(world.context, **alone).ok());
  EXPECT_EQ(samples("d@v1").back(), "x: txt=one cls=1");
}

TEST_F(SampleIndexTest, LargeShardsAreManyBlocks) {
  constexpr std::size_t kSamples = 2 * kSampleBlockSamplesMax + 17;
  std::vector<ArchiveMember> members;
  for (std::size_t n = 0; n < kSamples; ++n)
    members.push_back(member_of(fmt::format("{:08}.txt", n), std::to_string(n)));
  put("a.tar", archive_of(members, TarTimes::kSeconds));
  put("b.tar", archive_of({member_of("x.txt", "last")}));
  ASSERT_TRUE(register_indexed("d@v1"));
  const auto index = open("d@v1");
  EXPECT_EQ(index->table().blocks.size(), 4u);
  EXPECT_EQ(index->samples(), kSamples + 1);
  EXPECT_EQ(index->locate(kSamples - 1), (SamplePlace{.shard = 0, .block = 2, .at = 16}));
  EXPECT_EQ(index->locate(kSamples), (SamplePlace{.shard = 1, .block = 3, .at = 0}));
  const SampleBlock block = index->block(world.context, 1).value();
  EXPECT_EQ(block.samples[5].key, fmt::format("{:08}", kSampleBlockSamplesMax + 5));
}

TEST_F(SampleIndexTest, SkipsLargeMembers) {
  std::vector<ArchiveMember> members;
  for (int n = 0; n < 4; ++n) {
    members.push_back(member_of(fmt::format("{}.mp4", n), std::string(8 * kMiB, 'v')));
    members.push_back(member_of(fmt::format("{}.txt", n), "label"));
  }
  put("a.tar", archive_of(members));
  ASSERT_TRUE(register_indexed("d@v1"));
  EXPECT_EQ(open("d@v1")->samples(), 4u);
  EXPECT_LT(bytes_read(), 2 * kMiB) << "of 32 MiB";
}

TEST_F(SampleIndexTest, DamageIsNamedWithShardAndOffset) {
  const std::string good =
      archive_of({member_of("1.txt", "one"), member_of("2.txt", "two")}, TarTimes::kSeconds);
  std::string flipped = good;
  flipped[1024 + 3] ^= 1;
  for (const std::string& bad : {flipped, good.substr(0, 1024 + 100), good.substr(0, 1536 + 1)}) {
    put("sub/bad.tar", bad);
    const auto refused = register_indexed("d@v1");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), StatusCode::kCorruption);
    EXPECT_THAT(refused.error().to_string(), HasSubstr("d@v1: shard 'sub/bad.tar'"));
    EXPECT_THAT(refused.error().to_string(), HasSubstr("byte 1024"));
  }
  put("sub/bad.tar",
      archive_of({member_of("0.txt", ""), member_of("1.txt", "one"), member_of("1.TXT", "two")},
                 TarTimes::kSeconds));
  const auto twice = register_indexed("d@v1");
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().to_string(), HasSubstr("'1' at byte 512"));
  EXPECT_TRUE(world.keys(std::string(kIndexesPrefix)).empty());
}

TEST_F(SampleIndexTest, WithoutShardsThereIsNothingToIndex) {
  put("a.tar.gz", "compressed");
  const auto refused = register_indexed("d@v1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kInvalidArgument);
}

TEST_F(SampleIndexTest, IsMadeOnceForOneContent) {
  put("a.tar", archive_of({member_of("1.txt", "one")}));
  ASSERT_TRUE(register_indexed("d@v1"));
  const std::uint64_t once = bytes_read();
  const auto second = register_indexed("d@v2");
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(second->entry->facts->sample_count, 1u);
  EXPECT_EQ(bytes_read(), once) << "it was looked up";
  const std::vector<std::string> keys = world.keys(std::string(kIndexesPrefix));
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(indexed_content(keys[0]), second->entry->facts->content_digest);
  EXPECT_EQ(indexed_content(std::string(kIndexesPrefix) + "abc/webdataset"), std::nullopt);
  EXPECT_EQ(indexed_content(keys[0].substr(0, keys[0].rfind('/'))), std::nullopt);
  EXPECT_EQ(indexed_content("elsewhere"), std::nullopt);
}

TEST_F(SampleIndexTest, OfTwoThatMakeItAtOnceBothSucceedIfTheyAgree) {
  put("a.tar", archive_of({member_of("1.txt", "one")}));
  ASSERT_TRUE(register_indexed("d@v1"));
  const auto manifest = world.manifest("d@v1");
  const VersionReader reader(*world.memory, *manifest, ref_of("d@v1"));
  const auto built = build_sample_index(world.context, reader, {.scratch = world.state.root()});
  ASSERT_TRUE(built) << built.error().to_string();
  SampleIndexStore indexes(*world.memory);
  EXPECT_TRUE(indexes.put(world.context, **built).ok());
  // Another index under the same name: of one sample more.
  const std::string key = world.keys(std::string(kIndexesPrefix)).at(0);
  SampleIndexTable other = (*built)->table();
  other.blocks[0].checksum ^= 1;
  std::string bytes(other.stored_bytes(), 'x');
  bytes += as_text(encode_sample_tables(other));
  ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key), Slice::copy_of(bytes), {}));
  EXPECT_EQ(indexes.put(world.context, **built).code(), StatusCode::kConflict);
}

TEST_F(SampleIndexTest, ADamagedIndexIsNoticed) {
  put("a.tar", archive_of({member_of("1.txt", "one"), member_of("2.txt", "two")}));
  ASSERT_TRUE(register_indexed("d@v1"));
  const std::string key = world.keys(std::string(kIndexesPrefix)).at(0);
  const std::string good(
      world.memory->get(world.context, {.key = ObjectKey(key)}).value().data.text());
  const auto entry = world.registry.version(world.context, ref_of("d@v1")).value();
  for (std::size_t at = 0; at < good.size() * 8; ++at) {
    std::string bad = good;
    bad[at / 8] = static_cast<char>(bad[at / 8] ^ 1 << at % 8);
    ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key), Slice::copy_of(bad), {}));
    const auto index =
        SampleIndexStore(*world.memory).open(world.context, entry.facts->content_digest);
    EXPECT_TRUE(!index || !(*index)->block(world.context, 0)) << at;
  }
  ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key),
                                Slice::copy_of(good.substr(0, good.size() - 1)), {}));
  EXPECT_FALSE(SampleIndexStore(*world.memory).open(world.context, entry.facts->content_digest));
}

TEST_F(SampleIndexTest, ATreeIsIndexedWhenItIsPublished) {
  const std::string large = archive_of({member_of("1.bin", std::string(300'000, 'l'))});
  const std::string small = archive_of({member_of("2.txt", "packed"), member_of("3.txt", "too")});
  world.tree.write("large.tar", large);
  world.tree.write("sub/small.tar", small);
  shards_ = {{"large.tar", large}, {"sub/small.tar", small}};
  PublishOptions options = world.options();
  options.index = true;
  const auto report = world.publish("d@v1", options);
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->entry->facts->sample_count, 3u);
  EXPECT_EQ(samples("d@v1").back(), "3: txt=too");
}

TEST_F(SampleIndexTest, ReadsWhatTarWrites) {
  // Too long for the name field of any format.
  const std::string long_name = std::string(90, 'n') + "/" + std::string(60, 'n');
  for (int n = 0; n < 300; ++n) {
    const std::string stem = fmt::format("t/{}{:04}", n % 7 == 0 ? long_name : "", n);
    world.tree.write(stem + ".jpg", std::string(static_cast<std::size_t>(n * 13), 'j'));
    world.tree.write(stem + ".cls", std::to_string(n));
  }
  for (const std::string format : {"ustar", "pax", "gnu"}) {
    const std::string path = world.state.path(format + ".tar");
    const auto made = testing::run_command(
        {"tar", "--format=" + format, "--sort=name", "-C", world.tree.root(), "-cf", path, "t"},
        {});
    ASSERT_EQ(made.status, 0) << made.output;
    put(format + ".tar", read_file(path).value());
  }
  const auto report = register_indexed("d@v1");
  ASSERT_TRUE(report) << report.error().to_string();
  const std::vector<std::string> found = samples("d@v1");
  ASSERT_EQ(found.size(), 900u);
  for (int n = 0; n < 300; ++n) {
    const std::string stem = fmt::format("t/{}{:04}", n % 7 == 0 ? long_name : "", n);
    const std::string text = fmt::format("{}: cls={} jpg={}", stem, n,
                                         std::string(static_cast<std::size_t>(n * 13), 'j'));
    EXPECT_EQ(std::ranges::count(found, text), 3) << stem;
  }
}

TEST_F(SampleIndexTest, ASampleTakesAFewBytes) {
  // Content is left out: only the places count.
  std::mt19937_64 random(1);
  SampleBlockWriter writer;
  std::uint64_t at = 0;
  for (std::size_t n = 0; n < kSampleBlockSamplesMax; ++n) {
    const std::uint64_t size = 30'000 + random() % 200'000;
    const std::uint64_t next = at + 512 + tar_padded(size);
    ASSERT_TRUE(writer
                    .add(fmt::format("train/{:09}", 1'000'000 + n), {"jpg", "cls"},
                         {{.header_offset = at, .offset = at + 512, .size = size},
                          {.header_offset = next, .offset = next + 512, .size = 1 + n % 3}})
                    .ok());
    at = next + 1024;
  }
  const std::vector<std::byte> raw = encode_sample_block(writer.take());
  RecordProperty("raw_bytes_per_sample",
                 fmt::format("{:.2f}", static_cast<double>(raw.size()) / kSampleBlockSamplesMax));
  EXPECT_LT(raw.size(), 16 * kSampleBlockSamplesMax) << "before it is compressed";
}

}  // namespace
}  // namespace millrace
