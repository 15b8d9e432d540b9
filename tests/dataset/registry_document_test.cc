#include "dataset/registry_document.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time_format.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kSeed = R"(datasets:
  imagenet:
    versions:
      v1:
        path: s3://prod-datasets/imagenet/v1/
        size_gb: 180
        sample_count: 1281167
        created: 2026-01-15
        notes: "Standard ILSVRC 2012 splits"
      v2:
        path: s3://prod-datasets/imagenet/v2/
        size_gb: 185
        sample_count: 1281167
        created: 2026-03-20
        notes: "Added EXIF metadata; rebuilt shards for WebDataset"
)";

std::string refusal_of(std::string_view text) {
  const auto parsed = parse_registry_document(text, "f.yaml");
  EXPECT_FALSE(parsed) << text;
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code(), StatusCode::kInvalidArgument);
  return parsed.error().message();
}

TEST(RegistryDocument, ReadsAndWritesTheFormFieldForField) {
  const auto versions = parse_registry_document(kSeed, "f.yaml");
  ASSERT_TRUE(versions) << versions.error().to_string();
  ASSERT_EQ(versions->size(), 2U);
  const DocumentedVersion& second = (*versions)[1];
  EXPECT_EQ(second.ref.text(), "imagenet@v2");
  EXPECT_EQ(second.path, "s3://prod-datasets/imagenet/v2/");
  EXPECT_EQ(second.size_gb, 185.0);
  EXPECT_EQ(second.sample_count, 1281167U);
  EXPECT_EQ(format_iso8601(*second.created), "2026-03-20T00:00:00.000Z");
  EXPECT_EQ(second.notes, "Added EXIF metadata; rebuilt shards for WebDataset");
  EXPECT_EQ(second.line, 10);
  EXPECT_EQ(write_registry_document(*versions), kSeed);
}

TEST(RegistryDocument, FieldsAndVersionsMayBeMissing) {
  EXPECT_TRUE(parse_registry_document("", "f")->empty());
  EXPECT_TRUE(parse_registry_document("datasets:\n", "f")->empty());
  EXPECT_TRUE(parse_registry_document("datasets: {}\n", "f")->empty());
  EXPECT_TRUE(parse_registry_document("datasets:\n  a:\n    versions:\n  b:\n", "f")->empty());
  const auto bare =
      parse_registry_document("datasets: {a/b: {versions: {1.10: , x: {notes: }}}}", "f");
  ASSERT_TRUE(bare) << bare.error().to_string();
  ASSERT_EQ(bare->size(), 2U);
  EXPECT_EQ((*bare)[0].ref.text(), "a/b@1.10");
  EXPECT_FALSE((*bare)[1].notes);
}

TEST(RegistryDocument, RefusalsNameFileAndLine) {
  const std::string head = "datasets:\n  a:\n    versions:\n      v1:\n";
  EXPECT_EQ(refusal_of(head + "        size_gb: big\n"),
            "f.yaml:5: size_gb is a number such as 180 or 0.5, not 'big'");
  EXPECT_THAT(refusal_of(head + "        size_gb: nan\n"), HasSubstr("f.yaml:5: size_gb"));
  EXPECT_THAT(refusal_of(head + "        size_gb: -1\n"), HasSubstr("f.yaml:5: size_gb"));
  EXPECT_THAT(refusal_of(head + "        sample_count: 1.5\n"),
              HasSubstr("f.yaml:5: sample_count"));
  EXPECT_THAT(refusal_of(head + "        created: 2026-02-30\n"), HasSubstr("f.yaml:5: created"));
  EXPECT_THAT(refusal_of(head + "        owner: me\n"), HasSubstr("unknown field 'owner'"));
  EXPECT_THAT(refusal_of(head + "        notes: {x: y}\n"), HasSubstr("not a mapping"));
  EXPECT_THAT(refusal_of(head + "        notes: [x]\n"), HasSubstr("lists"));
  EXPECT_THAT(refusal_of(head + "        notes: a\n        notes: b\n"),
              HasSubstr("line 5 has it"));
  EXPECT_THAT(refusal_of(head + "      v1:\n"), HasSubstr("f.yaml:5: 'v1' stands here a second"));
  EXPECT_THAT(refusal_of("dataset:\n"), HasSubstr("expected 'datasets'"));
  EXPECT_THAT(refusal_of("datasets: 3\n"), HasSubstr("takes a mapping"));
  EXPECT_THAT(refusal_of("datasets:\n  a:\n    v1:\n"), HasSubstr("expected 'versions'"));
  EXPECT_THAT(refusal_of("datasets:\n  'a b':\n"), HasSubstr("f.yaml:2: "));
  EXPECT_THAT(refusal_of("- a\n"), HasSubstr("lists"));
  EXPECT_THAT(refusal_of("text\n"), HasSubstr("datasets:"));
  EXPECT_THAT(refusal_of("datasets: &x {}\n"), HasSubstr("anchors"));
  EXPECT_THAT(refusal_of("datasets: {\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(refusal_of("datasets: {}\n---\ndatasets: {}\n"), HasSubstr("more than one"));
  EXPECT_THAT(refusal_of(std::string("datasets:\n\0", 11)), HasSubstr("f.yaml:2: a NUL"));
  EXPECT_THAT(refusal_of(std::string(100'000, '{')), HasSubstr("f.yaml:1: "));
}

TEST(RegistryDocument, SizesAreRoundedToThreeDigits) {
  EXPECT_EQ(format_size_gb(180), "180");
  EXPECT_EQ(format_size_gb(0), "0");
  EXPECT_EQ(format_size_gb(0.1254), "0.125");
  EXPECT_EQ(format_size_gb(0.0004), "0");
  EXPECT_EQ(format_size_gb(1000), "1000");
}

TEST(RegistryDocument, WhatIsWrittenReadsBackTheSame) {
  const std::vector<std::string> names = {"v1",   "1.10", "2026-03-01", "no",
                                          "null", "0x10", "-",          "_"};
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<DocumentedVersion> versions;
    for (const std::string& name : names) {
      const auto ref = VersionRef::parse("a/" + name + "@" + name);
      if (!ref) continue;  // Not every text above is a name.
      DocumentedVersion version{.ref = *ref};
      version.path = "s3://b/" + name + (random() % 2 == 0 ? "/" : "/a b#c: d");
      if (random() % 2 == 0) version.size_gb = static_cast<double>(random() % 1'000'000) / 1000;
      if (random() % 2 == 0) version.sample_count = random();
      if (random() % 2 == 0) version.created = WallTime(std::chrono::days(random() % 40'000));
      std::string notes;
      for (std::uint32_t length = random() % 20; length > 0; --length)
        notes += static_cast<char>(1 + random() % 127);
      if (random() % 2 == 0) version.notes = notes + "\u00e4";
      versions.push_back(std::move(version));
    }
    ASSERT_GE(versions.size(), 4U);
    const std::string text = write_registry_document(versions);
    const auto again = parse_registry_document(text, "f");
    ASSERT_TRUE(again) << again.error().to_string() << "\n" << text;
    ASSERT_EQ(again->size(), versions.size());
    for (std::size_t i = 0; i < versions.size(); ++i) {
      EXPECT_EQ((*again)[i].ref, versions[i].ref);
      EXPECT_EQ((*again)[i].path, versions[i].path);
      EXPECT_EQ((*again)[i].size_gb, versions[i].size_gb);
      EXPECT_EQ((*again)[i].sample_count, versions[i].sample_count);
      EXPECT_EQ((*again)[i].created, versions[i].created);
      EXPECT_EQ((*again)[i].notes, versions[i].notes);
    }
  }
}

}  // namespace
}  // namespace millrace
