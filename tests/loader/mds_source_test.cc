// MDS datasets that golden/make_mds.py wrote, and what is wrong with others.

#include "loader/mds_source.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "base/little_endian.h"
#include "loader/decompression.h"
#include "loader/mds_sample.h"
#include "loader/sample_readers.h"
#include "loader/store_sample_files.h"
#include "tests/dataset/publish_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

std::filesystem::path golden_mds() {
  const char* const source = std::getenv("MILLRACE_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "MILLRACE_SOURCE_DIR is not set: run it through ctest";
  return std::filesystem::path(source == nullptr ? "." : source) / "tests/loader/golden/mds";
}

std::string file_content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// A golden dataset as a version, perhaps with some of its bytes changed.
class MdsSourceTest : public ::testing::Test {
 protected:
  using Change = std::function<std::string(const std::string& name, std::string content)>;

  Result<std::unique_ptr<SampleSource>> open(
      const std::string& dataset,
      const Change& change = [](const std::string&, std::string content) { return content; }) {
    for (const auto& entry : std::filesystem::directory_iterator(golden_mds() / dataset)) {
      const std::string name = entry.path().filename();
      world.tree.write("data/" + name, change(name, file_content(entry.path())));
    }
    const std::string ref = fmt::format("mds@v{}", ++versions_);
    EXPECT_TRUE(world.publish(ref));
    manifest_ = world.manifest(ref);
    reader_ = std::make_unique<VersionReader>(*world.memory, *manifest_, ref_of(ref));
    files = std::make_unique<StoreSampleFiles>(*reader_);
    return open_samples(world.context, {.files = *files, .store = *world.memory}, "auto", "data");
  }
  Result<std::vector<SampleValue>> read(SampleSource& source, std::uint64_t sample) {
    return read_sample(world.context, *files, source, sample);
  }

  PublishWorld world;
  std::unique_ptr<StoreSampleFiles> files;

 private:
  int versions_ = 0;
  std::unique_ptr<Manifest> manifest_;
  std::unique_ptr<VersionReader> reader_;
};

// A line of expected.txt.
std::string value_line(std::uint64_t sample, const SampleValue& value) {
  std::vector<std::string> items;
  for (const Slice& item : value.items)
    items.push_back(to_hex(item.bytes()));
  if (value.type != "list") items.push_back(to_hex(value.bytes.bytes()));
  return fmt::format("{} {} {} {} {}\n", sample, value.name, value.type,
                     fmt::join(value.shape, ","), fmt::join(items, ","));
}

class MdsCompressionTest : public MdsSourceTest,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(MdsCompressionTest, EverySampleIsWhatWasWritten) {
  const auto source = open(GetParam());
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_EQ((*source)->reader(), "mds");
  ASSERT_EQ((*source)->samples(), 6U);
  std::string found;
  for (std::uint64_t sample = 0; sample < 6; ++sample) {
    const auto values = read(**source, sample);
    ASSERT_TRUE(values) << values.error().to_string();
    for (const SampleValue& value : *values)
      found += value_line(sample, value);
  }
  EXPECT_EQ(found, file_content(golden_mds() / "expected.txt"));
  auto& mds = dynamic_cast<MdsSource&>(**source);
  for (std::size_t shard = 0; shard < mds.shards(); ++shard) {
    EXPECT_TRUE(mds.check_shard(world.context, shard).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, MdsCompressionTest,
                         ::testing::Values("plain", "gz", "bz2", "zstd", "snappy", "br"));

TEST_F(MdsSourceTest, ReadsNoMoreThanItNeeds) {
  const auto source = open("plain");
  ASSERT_TRUE(source) << source.error().to_string();
  const SampleLocation location = (*source)->locate(world.context, 4).value();
  ASSERT_EQ(location.parts.size(), 1U);
  EXPECT_EQ(location.key, "shard.00001.mds:1");
  EXPECT_LT(location.parts[0].range.length, 300U);
}

// Answers reads that were started only when there are two.
class PairedFiles final : public SampleFiles {
 public:
  explicit PairedFiles(SampleFiles& files) : files_(files) {}
  const Manifest& manifest() const override { return files_.manifest(); }
  Result<Slice> read(const RequestContext& context, EntryIndex file, ByteRange range) override {
    ++reads;
    return files_.read(context, file, range);
  }
  void start_read(const RequestContext& context, EntryIndex file, ByteRange range,
                  Completion<Slice> done) override {
    held_.push_back([=, this, done = std::move(done)]() mutable {
      done.complete(files_.read(context, file, range));
    });
    if (held_.size() < at_a_time) return;
    for (auto& answer : std::exchange(held_, {}))
      answer();
  }

  std::size_t at_a_time = 1;
  int reads = 0;

 private:
  SampleFiles& files_;
  std::vector<std::move_only_function<void()>> held_;
};

TEST_F(MdsSourceTest, LooksShardsUpSideBySide) {
  ASSERT_TRUE(open("plain"));
  PairedFiles paired(*files);
  const auto source = MdsSource::open(world.context, paired, "data").value();
  ASSERT_EQ(source->shards(), 2U);
  paired.at_a_time = 2;
  const std::vector<std::uint64_t> samples = {5, 0, 4, 1};
  source->look_up(world.context, samples);
  paired.reads = 0;
  source->look_up(world.context, samples);  // Would wait for ever for what it has.
  for (const std::uint64_t sample : samples)
    EXPECT_TRUE(source->locate(world.context, sample));
  EXPECT_EQ(paired.reads, 0);
}

// Notes what is expected, and what is read.
class WatchedFiles final : public SampleFiles {
 public:
  explicit WatchedFiles(SampleFiles& files) : files_(files) {}
  const Manifest& manifest() const override { return files_.manifest(); }
  Result<Slice> read(const RequestContext& context, EntryIndex file, ByteRange range) override {
    seen.push_back("read " + name_of(file));
    return files_.read(context, file, range);
  }
  void expect(const RequestContext& /*context*/, EntryIndex file, ByteRange range) override {
    EXPECT_LE(range.length, manifest().entry(file)->size());
    seen.push_back("expect " + name_of(file));
  }

  std::vector<std::string> seen;

 private:
  std::string name_of(EntryIndex file) const {
    return std::string(*manifest().name(*manifest().entry(file)));
  }
  SampleFiles& files_;
};

TEST_F(MdsSourceTest, TablesOfFewShardsComeWithTheIndex) {
  const std::vector<std::string> alone = {"read index.json"};
  const std::vector<std::string> with_tables = {"read index.json", "expect shard.00000.mds",
                                                "expect shard.00001.mds"};
  ASSERT_TRUE(open("plain"));
  WatchedFiles few(*files);
  ASSERT_TRUE(MdsSource::open(world.context, few, "data"));
  EXPECT_EQ(few.seen, with_tables);

  std::filesystem::remove_all(world.tree.root() + "/data");
  ASSERT_TRUE(open("zstd"));
  WatchedFiles compressed(*files);
  ASSERT_TRUE(MdsSource::open(world.context, compressed, "data"));
  EXPECT_EQ(compressed.seen, alone);

  for (int n = 0; n < 65; ++n)
    world.tree.write(fmt::format("data/other.{:05}.mds", n), "x");
  ASSERT_TRUE(open("plain"));
  WatchedFiles many(*files);
  ASSERT_TRUE(MdsSource::open(world.context, many, "data"));
  EXPECT_EQ(many.seen, alone);
}

TEST_F(MdsSourceTest, ADamagedShardIsSeen) {
  const auto flipped = [](const std::string& name, std::string content) {
    if (name.starts_with("shard.00001")) content[content.size() / 2] ^= 1;
    return content;
  };
  const auto compressed = open("zstd", flipped);
  ASSERT_TRUE(compressed) << compressed.error().to_string();
  EXPECT_TRUE(read(**compressed, 0));
  EXPECT_THAT(read(**compressed, 3).error().to_string(), HasSubstr("shard.00001.mds.zstd: its"));
  const auto plain = open("plain", flipped);
  ASSERT_TRUE(plain) << plain.error().to_string();
  auto& mds = dynamic_cast<MdsSource&>(**plain);
  EXPECT_TRUE(mds.check_shard(world.context, 0).ok());
  EXPECT_EQ(mds.check_shard(world.context, 1).code(), StatusCode::kCorruption);
}

TEST_F(MdsSourceTest, OffsetsThatLeadNowhereAreRefused) {
  for (const std::size_t at : {0, 4, 8, 12, 16}) {
    const auto source = open("plain", [&](const std::string& name, std::string content) {
      if (name == "shard.00000.mds") content[at + 3] = '\x7F';
      return content;
    });
    ASSERT_TRUE(source) << source.error().to_string();
    EXPECT_EQ(read(**source, 0).error().code(), StatusCode::kCorruption) << at;
    EXPECT_TRUE(read(**source, 3));
  }
}

TEST_F(MdsSourceTest, OffsetsThatGoBackAreRefused) {
  for (const std::size_t at : {4, 8, 16}) {
    const auto source = open("plain", [&](const std::string& name, std::string content) {
      if (name == "shard.00000.mds") content.replace(at, 4, std::string("\x10\0\0\0", 4));
      return content;
    });
    ASSERT_TRUE(source) << source.error().to_string();
    EXPECT_EQ(read(**source, 0).error().code(), StatusCode::kCorruption) << at;
  }
}

TEST_F(MdsSourceTest, FilesThatAreMissingOrOfAnotherSizeAreNamed) {
  const auto shorter = open("plain", [](const std::string& name, std::string content) {
    return name == "shard.00001.mds" ? content.substr(1) : content;
  });
  EXPECT_THAT(shorter.error().to_string(), HasSubstr("shard.00001.mds: the index says"));
  const auto renamed = open("plain", [](const std::string& name, std::string content) {
    const std::size_t at = content.find("shard.00001.mds");
    return name == "index.json" ? content.replace(at, 15, "shard.00009.mds") : content;
  });
  EXPECT_THAT(renamed.error().to_string(), HasSubstr("shard.00009.mds: the index names it"));
}

TEST(MdsIndexTest, SaysWhichFieldIsWrong) {
  const std::string good = file_content(golden_mds() / "zstd/index.json");
  ASSERT_TRUE(parse_mds_index(good));
  const auto refusal = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto index = parse_mds_index(text);
    EXPECT_FALSE(index) << to;
    return index ? "" : index.error().to_string();
  };
  EXPECT_THAT(refusal("\"samples\": 3", "\"samples\": -3"), HasSubstr("shards[1].samples"));
  EXPECT_THAT(refusal("\"mds\"", "\"csv\""), HasSubstr("only 'mds'"));
  EXPECT_THAT(refusal("\"jpeg\"]", "\"pkl\"]"), HasSubstr("'n_jpeg' is pickled"));
  const std::string pickled = [&] {
    std::string text = good;
    return text.replace(text.rfind("\"jpeg\"]"), 7, "\"pkl\"]");
  }();
  EXPECT_TRUE(parse_mds_index(pickled, true)) << "who allows it gets it";
  EXPECT_THAT(refusal("\"n_jpeg\"]", "7]"), HasSubstr("column_names"));
  EXPECT_THAT(refusal(", \"n_jpeg\"]", "]"), HasSubstr("column_names"));
  EXPECT_THAT(refusal("null, null]", "null, -1]"), HasSubstr("column_sizes"));
  EXPECT_THAT(refusal("\"zstd:3\"", "null"), HasSubstr("zip_data"));
  EXPECT_THAT(refusal("\"shard.00001.mds\"", "\"../shard.00001.mds\""), HasSubstr("basename"));
  EXPECT_THAT(refusal("\"shard.00001.mds\"", "\"/etc/passwd\""), HasSubstr("basename"));
  EXPECT_THAT(refusal("\"version\": 2}", "\"version\": 3}"), HasSubstr("version 3"));
  for (const auto* text : {"", "[]", "{}", "{\"version\":2}", "{\"version\":2,\"shards\":[1]}",
                           "{\"version\":2,\"shards\":{}}"}) {
    EXPECT_FALSE(parse_mds_index(text)) << text;
  }
}

// Whatever the bytes are, decoding ends with values or a complaint.
TEST(MdsSampleTest, TakesAnyBytes) {
  std::mt19937_64 random(11);
  const std::vector<std::string> encodings = {"bytes",
                                              "pkl",
                                              "str",
                                              "json",
                                              "int",
                                              "uint8",
                                              "float16",
                                              "str_float",
                                              "pil",
                                              "list[pil]",
                                              "jpegarray",
                                              "ndarray",
                                              "ndarray:int8",
                                              "ndarray:int16:2,2",
                                              "ndarray:int16:",
                                              "ndarray:x",
                                              "ndarray:int8:1,,2",
                                              "ndarray:int8:99999999999999999999"};
  for (const std::string& encoding : encodings) {
    for (int round = 0; round < 400; ++round) {
      std::string bytes(random() % 40, '\0');
      // Small numbers, so that some sizes fit.
      for (char& byte : bytes)
        byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
      const std::vector<MdsColumn> columns = {{.name = "x", .encoding = encoding, .size = {}}};
      std::string sample = "....";
      store_little_endian(reinterpret_cast<std::byte*>(sample.data()),
                          static_cast<std::uint32_t>(bytes.size()));
      const auto values = decode_mds_sample(columns, Slice::copy_of(sample + bytes));
      if (values) {
        EXPECT_EQ(values->size(), 1U);
      }
      if (!values) {
        EXPECT_THAT(values.error().message(), HasSubstr("column 'x'"));
      }
      EXPECT_FALSE(decode_mds_sample(columns, Slice::copy_of(sample + bytes + "x")));
      EXPECT_FALSE(decode_mds_sample(columns, Slice::copy_of(sample.substr(1))));
    }
  }
  const auto unknown = decode_mds_sample({{.name = "x", .encoding = "video", .size = 0}}, Slice());
  EXPECT_EQ(unknown.error().code(), StatusCode::kUnsupported);
}

TEST(DecompressionTest, RefusesDamageAndOtherLengths) {
  for (const std::string algorithm : {"gz", "bz2", "zstd", "snappy", "br"}) {
    const std::string bytes =
        file_content(golden_mds() / algorithm / fmt::format("shard.00000.mds.{}", algorithm));
    const std::string index = file_content(golden_mds() / algorithm / "index.json");
    const MdsIndex parsed = parse_mds_index(index).value();
    const std::uint64_t length = parsed.shards[0].raw.bytes;
    ASSERT_TRUE(decompress(algorithm, as_bytes(bytes), length)) << algorithm;
    EXPECT_FALSE(decompress(algorithm, as_bytes(bytes), length + 1)) << algorithm;
    EXPECT_FALSE(decompress(algorithm, as_bytes(bytes), length - 1)) << algorithm;
    EXPECT_FALSE(decompress(algorithm, {}, length)) << algorithm;
    for (std::size_t cut = 0; cut < bytes.size(); cut += 7) {
      EXPECT_FALSE(decompress(algorithm, as_bytes(bytes).first(cut), length)) << algorithm;
    }
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      // Not all formats have checksums; what matters is that the length holds.
      const auto got = decompress(algorithm, as_bytes(damaged), length);
      if (got) {
        EXPECT_EQ(got->size(), length);
      }
    }
  }
  EXPECT_EQ(decompress("lzma", {}, 1).error().code(), StatusCode::kUnsupported);
  EXPECT_EQ(decompress("gz", {}, UINT64_MAX).error().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace millrace
