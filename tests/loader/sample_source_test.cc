// Samples of versions, as loaders see them: files, groups of files, and tar shards.

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "dataset/registration.h"
#include "dataset/sample_index_store.h"
#include "loader/files_source.h"
#include "loader/sample_readers.h"
#include "loader/store_sample_files.h"
#include "tests/dataset/publish_world.h"
#include "tests/dataset/tar_archive.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Published trees and registered shards, read through a source.
class SampleSourceTest : public ::testing::Test {
 protected:
  // A version that was published or registered, opened for reading.
  struct Opened {
    std::unique_ptr<Manifest> manifest = {};
    std::unique_ptr<VersionReader> reader = {};
    std::unique_ptr<StoreSampleFiles> files = {};
    Result<std::unique_ptr<SampleSource>> source = {};
  };
  Opened open(std::string_view ref, std::string_view reader, const std::string& directory = "") {
    Opened opened{.manifest = world.manifest(ref)};
    opened.reader = std::make_unique<VersionReader>(*world.memory, *opened.manifest, ref_of(ref));
    opened.files = std::make_unique<StoreSampleFiles>(*opened.reader);
    opened.source = open_samples(world.context, {.files = *opened.files, .store = *world.memory},
                                 reader, directory);
    return opened;
  }
  // "key: field=content ..." of each sample; numbers are shown as numbers.
  std::vector<std::string> samples(const Opened& opened) {
    std::vector<std::string> found;
    EXPECT_TRUE(opened.source) << opened.source.error().to_string();
    if (!opened.source) return found;
    SampleSource& source = **opened.source;
    std::uint64_t in_stretches = 0;
    for (const SampleStretch& stretch : source.stretches())
      in_stretches += stretch.samples;
    EXPECT_EQ(in_stretches, source.samples());
    for (std::uint64_t n = 0; n < source.samples(); ++n) {
      std::string text = source.locate(world.context, n).value().key + ":";
      const auto values = read_sample(world.context, *opened.files, source, n);
      EXPECT_TRUE(values) << values.error().to_string();
      if (!values) continue;
      for (const SampleValue& value : *values) {
        text += fmt::format(" {}=", value.name);
        if (value.type == "int64") {
          text += fmt::format("{}", static_cast<std::int64_t>(
                                        load_little_endian<std::uint64_t>(value.bytes.data())));
        } else {
          text += value.bytes.text();
        }
      }
      found.push_back(text);
    }
    return found;
  }

  PublishWorld world;
};

TEST_F(SampleSourceTest, FilesHaveTheClassOfTheirDirectory) {
  world.tree.write("train/cat/a.jpg", "A");
  world.tree.write("train/cat/more/b.jpg", "B");
  world.tree.write("train/dog/c.jpg", "C");
  world.tree.write("train/dog/.hidden", "no");
  world.tree.write("train/empty.jpg", "");
  world.tree.write("other/d.jpg", "D");
  ASSERT_TRUE(world.publish("pets@v1"));
  EXPECT_THAT(
      samples(open("pets@v1", "files", "train")),
      ElementsAre("train/empty.jpg: data= label=-1", "train/cat/a.jpg: data=A label=0",
                  "train/dog/c.jpg: data=C label=1", "train/cat/more/b.jpg: data=B label=0"));
  EXPECT_EQ(samples(open("pets@v1", "auto")).size(), 5U);
  const Opened train = open("pets@v1", "files", "train");
  EXPECT_THAT(dynamic_cast<FilesSource&>(**train.source).classes(), ElementsAre("cat", "dog"));
}

TEST_F(SampleSourceTest, FilesOfOneBaseAreASample) {
  for (const auto* path : {"x/1.jpg", "x/1.cls", "x/2.cls", "x/2.JPG", "x/3.jpg", "x/README",
                           "x/4.seg.png", "x/4.jpg", "x/5.jpg"}) {
    world.tree.write(path, std::string(path).substr(2));
  }
  ASSERT_TRUE(world.publish("pairs@v1"));
  const Opened opened = open("pairs@v1", "grouped");
  EXPECT_THAT(samples(opened),
              ElementsAre("x/1: cls=1.cls jpg=1.jpg", "x/2: jpg=2.JPG cls=2.cls", "x/3: jpg=3.jpg",
                          "x/4: jpg=4.jpg seg.png=4.seg.png", "x/5: jpg=5.jpg"));
  EXPECT_EQ((*opened.source)->reader(), "grouped");
}

TEST_F(SampleSourceTest, ManyFilesOfManyDirectoriesAreFoundByTheirNumbers) {
  std::map<std::string, int> wanted;
  for (int n = 0; n < 700; ++n) {
    const std::string path = fmt::format("{:02}/{:04}.txt", n % 37, n);
    world.tree.write(path, path);
    wanted[fmt::format("{}: data={} label={}", path, path, n % 37)] = 1;
  }
  ASSERT_TRUE(world.publish("many@v1"));
  for (const std::string& sample : samples(open("many@v1", "files"))) {
    EXPECT_EQ(wanted.erase(sample), 1U) << sample;
  }
  EXPECT_TRUE(wanted.empty());
}

TEST_F(SampleSourceTest, TarShardsAreReadByTheirIndex) {
  const auto member = [](std::string path, std::string content) {
    return ArchiveMember{.member = {.path = std::move(path), .size = content.size()},
                         .content = content};
  };
  for (int shard = 0; shard < 3; ++shard) {
    std::vector<ArchiveMember> members;
    for (int n = 0; n < 2; ++n) {
      const std::string key = fmt::format("{}{}", shard, n);
      members.push_back(member(key + ".JPG", "picture " + key));
      members.push_back(member(key + ".cls", key));
    }
    ASSERT_TRUE(world.memory->put(world.context, ObjectKey(fmt::format("raw/{}.tar", shard)),
                                  Slice::copy_of(archive_of(members)), {}));
  }
  ASSERT_TRUE(register_version(world.context, world.environment("state"), {.prefix = "raw"},
                               ref_of("shards@v1"), {.parallel = 3, .index = true}));
  const Opened opened = open("shards@v1", "auto");
  EXPECT_THAT(samples(opened),
              ElementsAre("00: jpg=picture 00 cls=00", "01: jpg=picture 01 cls=01",
                          "10: jpg=picture 10 cls=10", "11: jpg=picture 11 cls=11",
                          "20: jpg=picture 20 cls=20", "21: jpg=picture 21 cls=21"));
  EXPECT_EQ((*opened.source)->reader(), "webdataset");
  EXPECT_EQ(open("shards@v1", "webdataset", "raw").source.error().code(), StatusCode::kUnsupported);
}

TEST_F(SampleSourceTest, SaysWhatIsMissing) {
  world.tree.write("a/README", "x");
  ASSERT_TRUE(world.publish("docs@v1"));
  const auto refusal = [&](std::string_view reader, const std::string& directory) {
    const Opened opened = open("docs@v1", reader, directory);
    EXPECT_FALSE(opened.source);
    return opened.source ? "" : opened.source.error().to_string();
  };
  EXPECT_THAT(refusal("files", "b"), HasSubstr("no directory 'b'"));
  EXPECT_THAT(refusal("grouped", ""), HasSubstr("no files with an extension"));
  EXPECT_THAT(refusal("webdataset", ""), HasSubstr("--index"));
  EXPECT_THAT(refusal("parquet", ""), HasSubstr("auto, mds, webdataset, files, grouped"));
}

TEST_F(SampleSourceTest, ARangeBehindTheEndOfAFileIsRefused) {
  world.tree.write("a", "12345");
  ASSERT_TRUE(world.publish("one@v1"));
  const Opened opened = open("one@v1", "files");
  const EntryIndex file = opened.manifest->resolve("a").value().value();
  EXPECT_EQ(opened.files->read(world.context, file, {.offset = 1, .length = 4})->text(), "2345");
  for (const ByteRange range :
       {ByteRange{.offset = 2, .length = 4}, ByteRange{.offset = 6, .length = 0},
        ByteRange{.offset = 1, .length = UINT64_MAX}}) {
    EXPECT_EQ(opened.files->read(world.context, file, range).error().code(),
              StatusCode::kCorruption);
  }
}

}  // namespace
}  // namespace millrace
