#include "app/settings.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/millrace-settings-XXXXXX";
    directory_ = ::mkdtemp(name);
    variables_["HOME"] = directory_;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  EnvironmentLookup environment() {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    };
  }
  std::string write_config(const std::string& text) {
    std::filesystem::create_directories(directory_ + "/.config/millrace");
    const std::string path = directory_ + "/.config/millrace/config.yaml";
    std::ofstream(path) << text;
    return path;
  }
  Result<LoadedSettings> load() { return load_settings(flags_, environment()); }
  std::string refusal() {
    const auto loaded = load();
    EXPECT_FALSE(loaded.has_value());
    return loaded ? "" : loaded.error().message();
  }

  std::string directory_;
  std::map<std::string, std::string> variables_;
  SettingFlags flags_;
};

TEST_F(SettingsTest, DefaultsLieBelowTheDataDirectory) {
  const auto loaded = load();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
  EXPECT_EQ(loaded->settings.store.root, directory_ + "/.local/share/millrace/store");
  EXPECT_EQ(loaded->settings.cache, directory_ + "/.local/share/millrace/cache");
  EXPECT_EQ(loaded->settings.socket, directory_ + "/.local/share/millrace/millrace.sock");
  EXPECT_EQ(loaded->config_file, "");
  variables_["XDG_DATA_HOME"] = "/data";
  EXPECT_EQ(load()->settings.store.root, "/data/millrace/store");
  EXPECT_EQ(load()->settings.socket, "/data/millrace/millrace.sock");
  // A login has it, cron and batch jobs of the same user do not: all mean the same daemon.
  variables_["XDG_RUNTIME_DIR"] = "/run/user/1";
  EXPECT_EQ(load()->settings.socket, "/data/millrace/millrace.sock");
}

TEST_F(SettingsTest, TheCacheIsAsLargeAsBytesOrAPartOfItsDiskSay) {
  EXPECT_EQ(std::get<Percentage>(load()->settings.cache_size).percent, 80);
  EXPECT_EQ(load()->settings.cache_key_file, "");
  variables_["MILLRACE_CACHE_SIZE"] = "1GiB";
  variables_["MILLRACE_CACHE_KEY_FILE"] = "/key";
  EXPECT_EQ(std::get<std::uint64_t>(load()->settings.cache_size), kGiB);
  EXPECT_EQ(load()->settings.cache_key_file, "/key");
  for (const std::string bad : {"1MiB", "0%", "101%", "much"}) {
    variables_["MILLRACE_CACHE_SIZE"] = bad;
    EXPECT_THAT(refusal(), AllOf(HasSubstr("MILLRACE_CACHE_SIZE"), HasSubstr(bad)));
  }
}

TEST_F(SettingsTest, AHomeWithABlankInItsNameWorks) {
  variables_["HOME"] = directory_ + "/a b%c#d";
  EXPECT_EQ(load()->settings.store.root, directory_ + "/a b%c#d/.local/share/millrace/store");
}

TEST_F(SettingsTest, FlagBeatsVariableBeatsFileBeatsDefault) {
  const std::string file = write_config("# mine\ncache: /from/file\ntimeout: 5s\n");
  auto loaded = load();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
  EXPECT_EQ(loaded->settings.cache, "/from/file");
  EXPECT_EQ(loaded->settings.timeout, std::chrono::seconds(5));
  EXPECT_EQ(loaded->origins[1].where, file + ":2");
  variables_["MILLRACE_CACHE"] = "/from/variable";
  EXPECT_EQ(load()->settings.cache, "/from/variable");
  EXPECT_EQ(load()->origins[1].where, "MILLRACE_CACHE");
  flags_.values.emplace_back("cache", "/from/flag");
  EXPECT_EQ(load()->settings.cache, "/from/flag");
  EXPECT_EQ(load()->origins[1].source, SettingSource::kFlag);
}

TEST_F(SettingsTest, MistakesAreNamedWithTheirPlace) {
  const std::string file = write_config("cache: /a\nmemroy_max: 1GiB\n");
  EXPECT_THAT(refusal(), AllOf(HasSubstr(file + ":2"), HasSubstr("did you mean 'memory_max'")));
  write_config("log_level: loud\n");
  EXPECT_THAT(refusal(), AllOf(HasSubstr(file + ":1: log_level"), HasSubstr("debug, info, warn")));
  write_config("memory_max: 1MiB\n");
  EXPECT_THAT(refusal(), HasSubstr("at least 64 MiB"));
  write_config("");
  variables_["MILLRACE_DISK_THREADS"] = "0";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("MILLRACE_DISK_THREADS"), HasSubstr("1 to 256")));
  variables_.erase("MILLRACE_DISK_THREADS");
  flags_.values.emplace_back("store", "s4://bucket");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("--store"), HasSubstr("'s4'")));
}

TEST_F(SettingsTest, BucketsAndTheirPolicyFromAnySource) {
  EXPECT_TRUE(load()->settings.buckets.empty());
  EXPECT_FALSE(load()->settings.require_version);
  const std::string file =
      write_config("buckets: train=s3://bucket/p,other=file:///x\nrequire_version: true\n");
  ASSERT_EQ(load()->settings.buckets.size(), 2u);
  EXPECT_EQ(load()->settings.buckets[1].name, "other");
  EXPECT_TRUE(load()->settings.require_version);
  variables_["MILLRACE_BUCKETS"] = "none";
  EXPECT_TRUE(load()->settings.buckets.empty());
  flags_.values.emplace_back("buckets", "a=file:///x,a=file:///y");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("--buckets"), HasSubstr("given twice")));
  flags_.values.clear();
  write_config("require_version: yes\n");
  EXPECT_THAT(refusal(), AllOf(HasSubstr(file + ":1: require_version"), HasSubstr("true, false")));
}

TEST_F(SettingsTest, AConfigFileThatIsNamedMustExist) {
  flags_.config_file = directory_ + "/none.yaml";
  EXPECT_EQ(load().error().code(), StatusCode::kNotFound);
  EXPECT_THAT(refusal(), HasSubstr("none.yaml"));
  flags_.config_file = directory_;
  EXPECT_FALSE(load().has_value());
}

TEST(SettingsDocument, IsTheOneInDocs) {
  const char* const source = std::getenv("MILLRACE_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "MILLRACE_SOURCE_DIR is not set: run it through ctest";
  std::ifstream file(std::string(source) + "/docs/config.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), settings_document())
      << "write it again: millrace config document > docs/config.md";
}

}  // namespace
}  // namespace millrace
