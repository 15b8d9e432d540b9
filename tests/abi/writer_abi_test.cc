// Versions written through the C interface, by one process and by several.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>

#include "tests/abi/abi_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class WriterAbiTest : public AbiWorld {
 protected:
  AbiJson writer_options(const std::string& name) const {
    return {{"name", name}, {"settings", options()["settings"]}, {"staging", home.path("staging")}};
  }
  mr_writer* write(const std::string& name) {
    mr_writer* writer = nullptr;
    expect_ok(mr_writer_open(writer_options(name).dump().c_str(), &writer, &error));
    return writer;
  }
  int put(mr_writer* writer, const std::string& key, const std::string& image,
          const std::string& label) {
    const mr_field fields[] = {{"jpg", image.data(), image.size()},
                               {"cls", label.data(), label.size()}};
    return mr_writer_write(writer, key.c_str(), fields, 2, &error);
  }
};

TEST_F(WriterAbiTest, WritesAVersionThatLoadersRead) {
  mr_writer* const writer = write("made@v1");
  for (int n = 0; n < 20; ++n)
    expect_ok(put(writer, fmt::format("a/{:02}", n), fmt::format("image {}", n), "7"));
  EXPECT_EQ(put(writer, "a/03", "again", "7"), MR_CONFLICT);
  EXPECT_THAT(take_error(), HasSubstr("'a/03.jpg' was written already"));
  EXPECT_EQ(put(writer, "../a", "x", "7"), MR_INVALID_ARGUMENT);
  EXPECT_THAT(take_error(), HasSubstr("cannot be the key of a sample"));
  char* json = nullptr;
  expect_ok(mr_writer_commit(writer, &json, &error));
  const AbiJson made = AbiJson::parse(take_text(json));
  EXPECT_EQ(made["version"], "made@v1");
  EXPECT_EQ(made["files"], 40);
  mr_writer_close(writer);
  EXPECT_FALSE(std::filesystem::exists(home.path("staging")));

  AbiJson with = options("made@v1");
  with["datasets"][0]["reader"] = "grouped";
  const AbiDataset dataset = open(with);
  EXPECT_EQ(mr_dataset_samples(dataset.get()), 20u);
  EXPECT_EQ(info(dataset)["datasets"][0]["version"], "made@v1");
  EXPECT_EQ(info(dataset)["datasets"][0]["digest"], made["digest"]);
  const AbiLoader loader = load(dataset, {{"batch", 20}});
  const AbiBatch batch = next(loader);
  ASSERT_NE(batch, nullptr) << failure_text;
  EXPECT_EQ(texts(batch, "jpg")[0].substr(0, 6), "image ");
  EXPECT_EQ(texts(batch, "cls")[0], "7");
}

TEST_F(WriterAbiTest, RefusesWhatReadersWouldTakeForSomethingElse) {
  mr_writer* const writer = write("made@v1");
  EXPECT_EQ(put(writer, "a.b/x.2", "x", "7"), MR_INVALID_ARGUMENT);
  EXPECT_THAT(take_error(), HasSubstr("what follows the dot in 'x.2'"));
  expect_ok(put(writer, "a.b/x-2", "x", "7"));
  const mr_field same[] = {{"jpg", "a", 1}, {"JPG", "b", 1}};
  EXPECT_EQ(mr_writer_write(writer, "twice", same, 2, &error), MR_INVALID_ARGUMENT);
  EXPECT_THAT(take_error(), HasSubstr("the field 'JPG' twice"));
  const mr_field plain[] = {{"", "a", 1}};
  expect_ok(mr_writer_write(writer, "README.md", plain, 1, &error));
  mr_writer_close(writer);
}

TEST_F(WriterAbiTest, LeavesNothingOfASampleThatFailed) {
  mr_writer* const writer = write("made@v1");
  const mr_field label[] = {{"cls", "7", 1}};
  expect_ok(mr_writer_write(writer, "a", label, 1, &error));
  EXPECT_EQ(put(writer, "a", "image", "7"), MR_CONFLICT);
  EXPECT_THAT(take_error(), HasSubstr("'a.cls' was written already"));
  EXPECT_FALSE(std::filesystem::exists(home.path("staging/samples/a.jpg")));
  EXPECT_TRUE(std::filesystem::exists(home.path("staging/samples/a.cls")));
  mr_writer_close(writer);
}

TEST_F(WriterAbiTest, ProcessesWriteAndOneCommits) {
  std::vector<pid_t> parts;
  for (int part = 0; part < 3; ++part) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      mr_writer* const writer = write("parts@v1");
      bool good = true;
      for (int n = 0; n < 10; ++n)
        good = good && put(writer, fmt::format("p{}/{}", part, n), "image", "1") == MR_OK;
      mr_writer_close(writer);
      ::_exit(good ? 0 : 1);
    }
    parts.push_back(pid);
  }
  for (const pid_t pid : parts) {
    int how = -1;
    ASSERT_EQ(::waitpid(pid, &how, 0), pid);
    EXPECT_EQ(how, 0);
  }
  mr_writer* const writer = write("parts@v1");
  char* json = nullptr;
  expect_ok(mr_writer_commit(writer, &json, &error));
  EXPECT_EQ(AbiJson::parse(take_text(json))["files"], 60);
  mr_writer_close(writer);
}

TEST_F(WriterAbiTest, AbortLeavesNothing) {
  mr_writer* const writer = write("gone@v1");
  expect_ok(put(writer, "a", "image", "1"));
  expect_ok(mr_writer_abort(writer, &error));
  mr_writer_close(writer);
  EXPECT_FALSE(std::filesystem::exists(home.path("staging")));
  EXPECT_THAT(refusal(options("gone@v1")), HasSubstr("not_found"));
}

// The directory that a version has where none is named.
class DefaultStagingTest : public WriterAbiTest {
 protected:
  DefaultStagingTest() { ::setenv("XDG_DATA_HOME", home.path("share").c_str(), 1); }
  ~DefaultStagingTest() override { ::unsetenv("XDG_DATA_HOME"); }

  AbiJson by_default(const std::string& name) const {
    AbiJson with = writer_options(name);
    with.erase("staging");
    return with;
  }
  mr_writer* write_by_default(const std::string& name) {
    mr_writer* writer = nullptr;
    expect_ok(mr_writer_open(by_default(name).dump().c_str(), &writer, &error));
    return writer;
  }
  std::string refused_by_default(const std::string& name) {
    mr_writer* writer = nullptr;
    EXPECT_EQ(mr_writer_open(by_default(name).dump().c_str(), &writer, &error), MR_CONFLICT);
    return take_error();
  }
};

TEST_F(DefaultStagingTest, NothingOfAKilledProcessIsPublished) {
  const pid_t child = ::fork();
  if (child == 0) {
    mr_writer* const writer = write_by_default("made@v1");
    (void)put(writer, "old", "image", "1");
    ::raise(SIGKILL);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how));
  ASSERT_TRUE(std::filesystem::exists(home.path("share/millrace/writers/made@v1/samples/old.jpg")));
  mr_writer* const writer = write_by_default("made@v1");
  expect_ok(put(writer, "new", "image", "1"));
  char* json = nullptr;
  expect_ok(mr_writer_commit(writer, &json, &error));
  EXPECT_EQ(AbiJson::parse(take_text(json))["files"], 2);
  mr_writer_close(writer);
}

TEST_F(DefaultStagingTest, HasOneWriterAtATime) {
  mr_writer* const first = write_by_default("made@v1");
  const std::string told = refused_by_default("made@v1");
  EXPECT_THAT(told, HasSubstr("'made@v1' is being written already"));
  EXPECT_THAT(told, HasSubstr(fmt::format("process {} on", ::getpid())));
  EXPECT_THAT(told, HasSubstr("'staging'"));
  mr_writer_close(write_by_default("made@v2"));
  mr_writer_close(first);
  mr_writer_close(write_by_default("made@v1"));
}

TEST_F(DefaultStagingTest, AFailedCommitSaysHowToPublish) {
  for (const char* const key : {"a", "b"}) {
    mr_writer* const writer = write_by_default("made@v1");
    expect_ok(put(writer, key, "image", "1"));
    char* json = nullptr;
    const int code = mr_writer_commit(writer, &json, &error);
    mr_text_free(json);
    mr_writer_close(writer);
    EXPECT_EQ(code == MR_OK, *key == 'a') << "a version is published once";
  }
  const std::string samples = home.path("share/millrace/writers/made@v1/samples");
  EXPECT_THAT(take_error(), HasSubstr(fmt::format("'millrace publish {} made@v1 --store {}",
                                                  samples, home.path("store"))));
  EXPECT_TRUE(std::filesystem::exists(samples + "/b.jpg"));
}

}  // namespace
}  // namespace millrace
