#include "objectstore/file_object_store.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/executor.h"
#include "base/manual_clock.h"
#include "objectstore/file_object_store_keys.h"

// Tests name the fields of a request that matter and leave out the rest.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const RequestContext kContext = RequestContext::background();

class FileObjectStoreTest : public ::testing::Test {
 protected:
  FileObjectStoreTest() {
    std::string pattern = ::testing::TempDir() + "millrace-store-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    store_ = open();
  }
  ~FileObjectStoreTest() override {
    store_.reset();
    fs::remove_all(root_);
  }
  // Reads run on the calling thread: a process that was forked has no other.
  std::unique_ptr<FileObjectStore> open(FileObjectStoreOptions options = {}) {
    return FileObjectStore::open(root_, inline_executor(), options).value();
  }
  Result<ObjectInfo> put(const std::string& key, std::string_view text, PutOptions options = {}) {
    return store_->put(kContext, ObjectKey(key), Slice::copy_of(text), options);
  }
  Result<std::string> get(const std::string& key) {
    MR_ASSIGN_OR_RETURN(GetResult result, store_->get(kContext, {.key = ObjectKey(key)}));
    return std::string(result.data.text());
  }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  void write_foreign(const std::string& name, std::string_view text) {
    std::ofstream(path(name), std::ios::trunc) << text;
  }
  std::vector<std::string> keys(ListRequest request = {}) {
    std::vector<std::string> result;
    do {
      const auto page = store_->list(kContext, request);
      EXPECT_TRUE(page.has_value()) << page.error().to_string();
      if (!page) break;
      for (const auto& info : page->objects)
        result.push_back(info.key.value());
      for (const auto& prefix : page->prefixes)
        result.push_back(prefix);
      request.continuation = page->continuation;
    } while (!request.continuation.empty());
    return result;
  }
  std::size_t temporary_files() const {
    const fs::path directory = path("%tmp");
    return fs::exists(directory) ? std::distance(fs::directory_iterator(directory), {}) : 0;
  }

  std::string root_;
  std::unique_ptr<FileObjectStore> store_;
};

TEST_F(FileObjectStoreTest, OpenMakesNothingUnlessAsked) {
  EXPECT_TRUE(fs::is_empty(root_));
  EXPECT_EQ(FileObjectStore::open(path("a/b"), inline_executor()).error().code(),
            StatusCode::kNotFound);
  EXPECT_TRUE(FileObjectStore::open(path("a/b"), inline_executor(), {.create = true}).has_value());
  EXPECT_EQ(store_->describe(), "file://" + root_);
}

TEST_F(FileObjectStoreTest, PlainKeysArePlainPaths) {
  ASSERT_TRUE(put("data/train/a b.jpg", "x").has_value());
  EXPECT_TRUE(fs::is_regular_file(path("data/train/a b.jpg")));
  for (const std::string key : {"/", "a//b", "b/", "c/.", "c/..", "50%", "%25", "%tmp/x", "%lock",
                                "../up", "..%", "%2E", "."}) {
    const auto stored = put(key, key);
    ASSERT_TRUE(stored.has_value()) << stored.error().to_string();
    EXPECT_EQ(get(key).value(), key);
  }
  EXPECT_FALSE(fs::exists(fs::path(root_).parent_path() / "up"));
}

TEST_F(FileObjectStoreTest, NamesAndComponentsAreOneToOne) {
  using namespace file_object_store;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string name;
    for (std::size_t n = random() % 7; n-- > 0;)
      name += "%25Ea.t"[random() % 7];
    const std::string key = name.empty() ? "x/" : name;
    const std::string file = path_of_key(ObjectKey(key)).value();
    const std::string last = file.substr(file.rfind('/') + 1);
    EXPECT_EQ(component_of_name(last), name);
    // And a name that is taken for a component is the one which that component gets.
    if (const auto component = component_of_name(name); component && !name.empty()) {
      const std::string path = path_of_key(ObjectKey("x/" + *component)).value();
      if (name != "." && name != "..") {
        EXPECT_EQ(path, "x/" + name);
      }
    }
  }
}

TEST_F(FileObjectStoreTest, AKeyIsAnObjectOrADirectory) {
  ASSERT_TRUE(put("a", "1").has_value());
  const auto below = put("a/b/c", "2");
  EXPECT_EQ(below.error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(below.error().message(), HasSubstr("'a/b/c'"));
  ASSERT_TRUE(put("d/e/f", "3").has_value());
  for (const auto& condition : {WriteCondition::none(), WriteCondition::if_absent()}) {
    const auto above = put("d/e", "4", {.condition = condition});
    EXPECT_EQ(above.error().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(above.error().message(), HasSubstr("'d/e'"));
  }
  EXPECT_EQ(get("a/b/c").error().code(), StatusCode::kNotFound);
  EXPECT_EQ(get("d/e").error().code(), StatusCode::kNotFound);
  EXPECT_EQ(keys(), (std::vector<std::string>{"a", "d/e/f"}));
  EXPECT_EQ(temporary_files(), 0u);
  EXPECT_EQ(put(std::string(256, 'k'), "").error().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(put(std::string(255, 'k'), "").has_value());
}

TEST_F(FileObjectStoreTest, DirectoriesGoWithTheirLastObject) {
  ASSERT_TRUE(put("a/b/c", "1").has_value());
  ASSERT_TRUE(put("a/x", "2").has_value());
  const std::vector<ObjectKey> first = {ObjectKey("a/b/c"), ObjectKey("a/b/none")};
  ASSERT_TRUE(store_->remove(kContext, first).ok());
  EXPECT_FALSE(fs::exists(path("a/b")));
  EXPECT_TRUE(fs::exists(path("a/x")));
  ASSERT_TRUE(store_->remove(kContext, std::vector{ObjectKey("a/x")}).ok());
  EXPECT_FALSE(fs::exists(path("a")));
  ASSERT_TRUE(put("a", "now an object").has_value());
}

TEST_F(FileObjectStoreTest, LinksAndSpecialFilesAreNoObjects) {
  const std::string outside = root_ + "-outside";
  fs::create_directory(outside);
  std::ofstream(outside + "/secret") << "secret";
  fs::create_symlink(outside, path("dir"));
  fs::create_symlink(outside + "/secret", path("file"));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const char* key : {"dir/secret", "file", "fifo"}) {
    EXPECT_EQ(get(key).error().code(), StatusCode::kNotFound) << key;
  }
  EXPECT_EQ(put("dir/new", "x").error().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(keys().empty());
  EXPECT_TRUE(store_->remove(kContext, std::vector{ObjectKey("file")}).ok());
  EXPECT_TRUE(store_->remove(kContext, std::vector{ObjectKey("dir/secret")}).ok());
  EXPECT_TRUE(fs::exists(outside + "/secret"));
  EXPECT_TRUE(fs::is_symlink(path("file")));
  ASSERT_TRUE(put("file", "mine").has_value());  // Replaces the link, not what it points to.
  EXPECT_EQ(get("file").value(), "mine");
  // The way for kernels without openat2 gives the same answers.
  const int root = ::open(root_.c_str(), O_RDONLY | O_DIRECTORY);
  for (const auto opener :
       {file_object_store::open_beneath, file_object_store::open_beneath_by_steps}) {
    EXPECT_LT(opener(root, "dir/secret", O_RDONLY), 0);
    const int descriptor = opener(root, "file", O_RDONLY);
    EXPECT_GE(descriptor, 0);
    ::close(descriptor);
  }
  ::close(root);
  fs::remove_all(outside);
}

TEST_F(FileObjectStoreTest, ForeignFilesAreObjectsWithAnIdentityOfTheirOwn) {
  write_foreign("f", "one");
  const ObjectInfo first = store_->head(kContext, ObjectKey("f")).value();
  EXPECT_EQ(get("f").value(), "one");
  EXPECT_EQ(first.size, 3u);
  write_foreign("f", "longer");
  EXPECT_NE(store_->head(kContext, ObjectKey("f")).value().identity, first.identity);
  // A name with a '%' that is not ours has no key.
  write_foreign("100%", "x");
  EXPECT_EQ(keys(), std::vector<std::string>{"f"});
  EXPECT_EQ(get("100%").error().code(), StatusCode::kNotFound);
}

TEST_F(FileObjectStoreTest, ForeignEditsAreSeen) {
  const ObjectInfo ours =
      put("k", "written by us", {.condition = {}, .metadata = {{"a", "1"}}}).value();
  write_foreign("k", "WRITTEN BY TOM");
  const ObjectInfo theirs = store_->head(kContext, ObjectKey("k")).value();
  EXPECT_NE(theirs.identity, ours.identity);
  EXPECT_TRUE(theirs.metadata.empty());
  EXPECT_EQ(get("k").value(), "WRITTEN BY TOM");
  const auto pinned = store_->get(kContext, {.key = ObjectKey("k"), .identity = ours.identity});
  EXPECT_EQ(pinned.error().code(), StatusCode::kPreconditionFailed);
  EXPECT_EQ(put("k", "x", {.condition = WriteCondition::if_identity(ours.identity)}).error().code(),
            StatusCode::kPreconditionFailed);
  EXPECT_TRUE(put("k", "x", {.condition = WriteCondition::if_identity(theirs.identity)}));
}

TEST_F(FileObjectStoreTest, DamagedBytesAreNotDelivered) {
  ASSERT_TRUE(put("k", "precious bytes").has_value());
  struct stat facts{};
  ASSERT_EQ(::stat(path("k").c_str(), &facts), 0);
  const int descriptor = ::open(path("k").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(descriptor, "P", 1, 0), 1);
  const timespec times[2] = {facts.st_atim, facts.st_mtim};  // As a disk does it: silently.
  ASSERT_EQ(::futimens(descriptor, times), 0);
  ::close(descriptor);
  EXPECT_EQ(get("k").error().code(), StatusCode::kCorruption);
  // The record about the file is checked too; without it the file counts as foreign.
  ASSERT_TRUE(put("m", "x", {.condition = {}, .metadata = {{"a", "1"}}}).has_value());
  const ObjectInfo before = store_->head(kContext, ObjectKey("m")).value();
  ASSERT_EQ(::setxattr(path("m").c_str(), "user.millrace", "millrace-object 1 00000000\n", 27, 0),
            0);
  const ObjectInfo after = store_->head(kContext, ObjectKey("m")).value();
  EXPECT_NE(after.identity, before.identity);
  EXPECT_TRUE(after.metadata.empty());
}

TEST_F(FileObjectStoreTest, MetadataOfFullSizeFits) {
  const ObjectMetadata metadata = {{"a", std::string(kMetadataBytesMax - 1, '"')}};
  ASSERT_TRUE(put("k", "x", {.condition = {}, .metadata = metadata}).has_value());
  EXPECT_EQ(store_->head(kContext, ObjectKey("k")).value().metadata, metadata);
}

TEST_F(FileObjectStoreTest, WorksWithoutAttributes) {
  const std::string place = path("ramfs");
  fs::create_directory(place);
  if (::mount("ramfs", place.c_str(), "ramfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "mounting a file system without attributes needs root";
  }
  {
    const auto store = FileObjectStore::open(place, inline_executor()).value();
    const ObjectKey key("k");
    std::set<std::string> identities;
    for (int i = 0; i < 100; ++i) {  // Faster than the kernel's clock ticks.
      const auto info = store->put(kContext, key, Slice::copy_of("x"), {});
      ASSERT_TRUE(info.has_value()) << info.error().to_string();
      identities.insert(info->identity.value());
    }
    EXPECT_EQ(identities.size(), 100u);
    const auto refused =
        store->put(kContext, key, Slice::copy_of("x"), {.condition = {}, .metadata = {{"a", "1"}}});
    EXPECT_EQ(refused.error().code(), StatusCode::kUnsupported);
  }
  ::umount2(place.c_str(), MNT_DETACH);
}

TEST_F(FileObjectStoreTest, ListsLikeASortedSet) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::set<std::string> model;
  const auto random_text = [&](std::size_t length_max) {
    std::string text;
    for (std::size_t n = random() % (length_max + 1); n-- > 0;)
      text += "ab/-0%.\x7f"[random() % 8];
    return text;
  };
  for (int i = 0; i < 150; ++i) {
    const std::string key = random_text(7);
    if (key.empty()) continue;
    if (put(key, "").has_value()) model.insert(key);
  }
  for (int round = 0; round < 300; ++round) {
    ListRequest request{.prefix = random_text(3),
                        .fold_directories = random() % 2 == 0,
                        .start_after = random() % 2 == 0 ? random_text(4) : "",
                        .continuation = "",
                        .entries_max = static_cast<std::uint32_t>(1 + random() % 9)};
    std::set<std::string> expected;
    for (const std::string& key : model) {
      if (!key.starts_with(request.prefix) || key <= request.start_after) continue;
      const std::size_t slash = key.find('/', request.prefix.size());
      const bool folded = request.fold_directories && slash != std::string::npos;
      expected.insert(folded ? key.substr(0, slash + 1) : key);
    }
    std::set<std::string> listed;
    std::string last;
    do {
      const auto page = store_->list(kContext, request);
      ASSERT_TRUE(page.has_value()) << page.error().to_string();
      ASSERT_LE(page->objects.size() + page->prefixes.size(), request.entries_max);
      for (const auto& info : page->objects) {
        ASSERT_TRUE(last.empty() || info.key.value() > last);
        last = info.key.value();
        ASSERT_TRUE(listed.insert(last).second) << last << " twice";
      }
      for (const auto& prefix : page->prefixes)
        ASSERT_TRUE(listed.insert(prefix).second);
      request.continuation = page->continuation;
    } while (!request.continuation.empty());
    ASSERT_EQ(listed, expected) << "prefix '" << request.prefix << "' after '"
                                << request.start_after << "' fold " << request.fold_directories;
  }
}

TEST_F(FileObjectStoreTest, ContinuationsAreCheckedAndSurviveARestart) {
  for (const char* key : {"a", "b", "c/d", "e"})
    ASSERT_TRUE(put(key, "").has_value());
  ListRequest request{.entries_max = 2};
  request.continuation = store_->list(kContext, request).value().continuation;
  store_ = open();
  EXPECT_EQ(keys(request), (std::vector<std::string>{"c/d", "e"}));
  ListRequest other = request;
  other.prefix = "c";
  EXPECT_EQ(store_->list(kContext, other).error().code(), StatusCode::kInvalidArgument);
  for (const char* bad : {"x", "1k0000000061", "1k00000000zz", "zzzzzzzzzzzzzzzzzzz"}) {
    other = {.continuation = bad};
    EXPECT_EQ(store_->list(kContext, other).error().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST_F(FileObjectStoreTest, EmptyDirectoriesLeftByACrashAreNotListed) {
  fs::create_directories(path("a/b/c"));
  for (int i = 0; i < 20; ++i)
    fs::create_directories(path("d" + std::to_string(i)));
  ASSERT_TRUE(put("z", "").has_value());
  EXPECT_EQ(keys({.fold_directories = true, .entries_max = 3}), std::vector<std::string>{"z"});
  ASSERT_TRUE(put("d1", "the directory gives way").has_value());
}

TEST_F(FileObjectStoreTest, AbandonedUploadsAreRemovedWhenOldAndDead) {
  auto upload = store_->start_upload(kContext, ObjectKey("live"), {}).value();
  ASSERT_TRUE(upload->write(kContext, Slice::copy_of("x")).ok());
  write_foreign("%tmp/dead", "x");
  EXPECT_EQ(temporary_files(), 2u);
  store_ = open();
  EXPECT_EQ(temporary_files(), 2u);  // Too young.
  upload.reset();
  auto second_store = open();
  auto live = second_store->start_upload(kContext, ObjectKey("live"), {}).value();
  store_ = open({.abandoned_after = Duration(-std::chrono::hours(1))});
  EXPECT_EQ(temporary_files(), 1u);  // Age does not matter to the one whose writer lives.
  ASSERT_TRUE(live->finish(kContext).has_value());
  EXPECT_EQ(get("live").value(), "");
}

TEST_F(FileObjectStoreTest, CopyCarriesBytesMetadataAndChecksum) {
  const std::string text(3 << 20, 'x');
  const ObjectInfo source = put("a", text, {.condition = {}, .metadata = {{"m", "1"}}}).value();
  const ObjectInfo target = store_->copy(kContext, source, ObjectKey("b/c")).value();
  EXPECT_NE(target.identity, source.identity);
  EXPECT_EQ(get("b/c").value(), text);
  EXPECT_EQ(store_->head(kContext, ObjectKey("b/c")).value().metadata.at("m"), "1");
  ASSERT_TRUE(put("a", "other").has_value());
  EXPECT_EQ(store_->copy(kContext, source, ObjectKey("d")).error().code(),
            StatusCode::kPreconditionFailed);
}

TEST_F(FileObjectStoreTest, AFullDiskLeavesTheOldObject) {
  ASSERT_TRUE(put("k", "old").has_value());
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto refused = put("k", std::string(200'000, 'x'));
  auto upload = store_->start_upload(kContext, ObjectKey("k"), {}).value();
  const Status written = upload->write(kContext, Slice::copy_of(std::string(200'000, 'x')));
  const auto finished = upload->finish(kContext);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, previous);
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(written.code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(finished.has_value());
  upload.reset();
  EXPECT_EQ(get("k").value(), "old");
  EXPECT_EQ(temporary_files(), 0u);
}

// Runs `body` in `count` processes at once and returns how many exited with 0.
int run_processes(int count, const std::function<bool(int)>& body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body(i) ? 0 : 1);
    children.push_back(child);
  }
  int succeeded = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    succeeded += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return succeeded;
}

TEST_F(FileObjectStoreTest, ProcessesLoseNoUpdate) {
  constexpr int kProcesses = 4;
  constexpr int kUpdates = 25;
  ASSERT_TRUE(put("dir/counter", "0").has_value());
  const int succeeded = run_processes(kProcesses, [&](int) {
    const auto store = open();
    for (int done = 0; done < kUpdates;) {
      const auto now = store->get(kContext, {.key = ObjectKey("dir/counter")});
      if (!now) return false;
      const int next = std::stoi(std::string(now->data.text())) + 1;
      const auto stored =
          store->put(kContext, ObjectKey("dir/counter"), Slice::copy_of(std::to_string(next)),
                     {.condition = WriteCondition::if_identity(now->info.identity)});
      if (stored) ++done;
      if (!stored && stored.error().code() != StatusCode::kPreconditionFailed) return false;
    }
    return true;
  });
  EXPECT_EQ(succeeded, kProcesses);
  EXPECT_EQ(get("dir/counter").value(), std::to_string(kProcesses * kUpdates));
}

TEST_F(FileObjectStoreTest, OneOfManyCreatesAnObject) {
  for (int round = 0; round < 5; ++round) {
    const std::string key = "new" + std::to_string(round) + "/k";
    const int winners = run_processes(16, [&](int i) {
      const auto store = open();
      return store
          ->put(kContext, ObjectKey(key), Slice::copy_of(std::to_string(i)),
                {.condition = WriteCondition::if_absent()})
          .has_value();
    });
    EXPECT_EQ(winners, 1);
  }
}

TEST_F(FileObjectStoreTest, MakersAndRemoversOfADirectoryMeet) {
  std::vector<std::jthread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const ObjectKey key("x/y/" + std::to_string(t));
      for (int i = 0; i < 50; ++i) {
        if (!store_->put(kContext, key, Slice::copy_of("1"), {})) ++failures;
        if (!store_->head(kContext, key)) ++failures;
        if (!store_->remove(kContext, std::vector{key}).ok()) ++failures;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(keys().empty());
  EXPECT_FALSE(fs::exists(path("x")));
}

TEST_F(FileObjectStoreTest, KilledWritersLeaveNoTornObject) {
  std::mt19937_64 random(7);
  ASSERT_TRUE(put("k", std::string(300'000, 'a')).has_value());
  for (int round = 0; round < 15; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto store = open();
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
        const Slice piece = Slice::copy_of(std::string(100'000, c));
        auto upload = store->start_upload(kContext, ObjectKey("k"), {}).value();
        for (int i = 0; i < 3; ++i)
          (void)upload->write(kContext, piece);
        (void)upload->finish(kContext);
        (void)store->put(kContext, ObjectKey("k"), Slice::copy_of(std::string(300'000, c)), {});
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));  // When the blow falls.
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    store_ = open();
    const std::string text = get("k").value();
    ASSERT_EQ(text, std::string(300'000, text[0]));
    ASSERT_EQ(keys(), std::vector<std::string>{"k"});
  }
}

TEST_F(FileObjectStoreTest, EndedRequestsChangeNothing) {
  const RequestContext context = RequestContext::background();
  context.cancellation().request();
  EXPECT_EQ(store_->put(context, ObjectKey("k"), Slice::copy_of("x"), {}).error().code(),
            StatusCode::kCancelled);
  EXPECT_EQ(store_->list(context, {}).error().code(), StatusCode::kCancelled);
  EXPECT_EQ(store_->get(context, {.key = ObjectKey("k")}).error().code(), StatusCode::kCancelled);
  EXPECT_TRUE(keys().empty());
}

}  // namespace
}  // namespace millrace
