#include "bucket/bucket_view.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/manual_clock.h"
#include "base/thread_pool.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"

namespace millrace {
namespace {

class BucketViewTest : public ::testing::Test {
 protected:
  void put(const std::string& key, std::string_view content = "x") {
    ASSERT_TRUE(memory->put(context, ObjectKey(key), Slice::copy_of(content), {}));
  }
  void remove(const std::string& key) {
    ASSERT_TRUE(memory->remove(context, std::vector{ObjectKey(key)}).ok());
  }
  void use_pages_of(std::uint32_t entries) {
    view = std::make_unique<BucketView>("/buckets/b", broken, clock, requests,
                                        BucketViewOptions{.page_entries_max = entries});
  }
  // "text" of all entries, by pages.
  std::vector<std::string> list(const std::string& directory, std::string after = "") {
    std::vector<std::string> texts;
    for (;;) {
      const auto page = view->page(context, directory, after).value();
      for (auto it = page->behind(after); it != page->entries.end(); ++it)
        texts.push_back(it->text);
      if (page->is_last) return texts;
      EXPECT_GT(page->through, after);
      after = page->through;
    }
  }
  // "" when there is nothing.
  std::string find(const std::string& directory, std::string_view name) {
    const auto found = view->find(context, directory, name).value();
    return found ? found->text : "";
  }
  void expire() { clock.advance(std::chrono::seconds(5)); }
  void cut_off() {
    broken->set_plan(random_faults(1, {{1.0, {.kind = Fault::Kind::kFailBefore}}}));
  }

  const RequestContext context = RequestContext::background();
  ManualClock clock;
  ThreadPool requests{{.name = "requests", .threads = 2, .queued_tasks_max = 16}};
  const std::shared_ptr<MemoryObjectStore> memory = std::make_shared<MemoryObjectStore>();
  const std::shared_ptr<RecordingObjectStore> recording =
      std::make_shared<RecordingObjectStore>(memory);
  const std::shared_ptr<FaultyObjectStore> broken =
      std::make_shared<FaultyObjectStore>(recording, no_faults(), clock, requests);
  std::unique_ptr<BucketView> view =
      std::make_unique<BucketView>("/buckets/b", broken, clock, requests);
  LogCapture log{LogLevel::kWarn};
};

using Texts = std::vector<std::string>;

TEST_F(BucketViewTest, ShowsKeysAsFilesAndDirectories) {
  for (const char* key : {"a", "b/c", "b/d/e", "z"})
    put(key);
  EXPECT_EQ(list(""), (Texts{"a", "b/", "z"}));
  EXPECT_EQ(list("b/"), (Texts{"c", "d/"}));
  EXPECT_EQ(list("b/d/"), Texts{"e"});
  EXPECT_EQ(list("", "a"), (Texts{"b/", "z"}));
  EXPECT_EQ(list("", "b/"), Texts{"z"});
  EXPECT_EQ(list("", "b0"), Texts{"z"}) << "a place where nothing is";
  EXPECT_EQ(recording->count(), 3u) << "the rest was known";
  EXPECT_FALSE(view->page(context, "none/", "").value()->has_keys);
}

TEST_F(BucketViewTest, AFreshPageAnswersLookUps) {
  put("a", "content");
  put("b/c");
  const ObjectInfo info = memory->head(context, ObjectKey("a")).value();
  list("");
  recording->clear();
  const BucketEntry file = view->find(context, "", "a").value().value();
  EXPECT_EQ(file.size, 7u);
  EXPECT_EQ(file.identity, info.identity);
  EXPECT_EQ(file.modified, std::chrono::floor<std::chrono::seconds>(info.modified));
  EXPECT_EQ(find("", "b"), "b/");
  EXPECT_EQ(find("", "none"), "");
  EXPECT_EQ(recording->count(), 0u);
  expire();
  EXPECT_EQ(find("", "a"), "a");
  EXPECT_EQ(recording->count(StoreOperation::kHead), 1u);
  EXPECT_EQ(recording->count(StoreOperation::kList), 1u);
}

TEST_F(BucketViewTest, ALookUpTakesTwoRequestsAndIsKept) {
  put("d/f", "content");
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(find("d/", "f"), "f");
    EXPECT_EQ(find("", "d"), "d/");
    EXPECT_EQ(find("d/", "none"), "");
  }
  EXPECT_EQ(recording->count(), 6u);
  const BucketEntry asked = view->find(context, "d/", "f").value().value();
  expire();
  list("d/");
  const BucketEntry listed = view->find(context, "d/", "f").value().value();
  EXPECT_EQ(asked.identity, listed.identity);
  EXPECT_EQ(asked.modified, listed.modified);
}

TEST_F(BucketViewTest, NamesThatNoKeyCanHaveTakeNoRequest) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string(256, 'n'), std::string("\xFF"), std::string("a\0b", 3)})
    EXPECT_EQ(find("", name), "") << name;
  EXPECT_EQ(find(std::string(1020, 'd') + "/", "name"), "");
  EXPECT_EQ(recording->count(), 0u);
}

TEST_F(BucketViewTest, WhatCannotBeShownIsHiddenAndCounted) {
  for (const char* key : {"d//x", "d/./x", "d/../x", "d/both", "d/both/x", "d/fine"})
    put(key);
  put("d/" + std::string(256, 'n'));
  put("d/", "bytes");
  put("empty/", "");
  EXPECT_EQ(list("d/"), (Texts{"both/", "fine"}));
  EXPECT_EQ(view->hidden_keys(), 6u);
  EXPECT_EQ(find("d/", "both"), "both/");
  expire();
  EXPECT_EQ(find("d/", "both"), "both/") << "asked for, and not only listed";
  EXPECT_EQ(view->hidden_keys(), 7u);
  EXPECT_EQ(list(""), (Texts{"d/", "empty/"}));
  EXPECT_EQ(list("empty/"), Texts{});
  EXPECT_TRUE(view->page(context, "empty/", "").value()->has_keys);
  EXPECT_EQ(view->hidden_keys(), 7u) << "a marker without bytes is a directory";
  const std::string text = log.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << "once for a directory: " << text;
  EXPECT_NE(text.find("key=d/"), std::string::npos) << text;
}

// Pages of any size show the same, also where "a" and "a/" are on different ones.
TEST_F(BucketViewTest, PagesOfAnySizeAgree) {
  for (const char* key : {"a", "a-1", "a-1/x", "a-2", "a.", "a/x", "a0", "b", "b!", "b!!", "b!!/x",
                          "c/x", "c/y", "d/", "e"})
    put(key);
  const Texts all{"a-1/", "a-2", "a.", "a/", "a0", "b", "b!", "b!!/", "c/", "d/", "e"};
  for (std::uint32_t entries = 1; entries <= 20; ++entries) {
    SCOPED_TRACE(entries);
    use_pages_of(entries);
    EXPECT_EQ(list(""), all);
    for (std::size_t n = 0; n < all.size(); ++n) {
      EXPECT_EQ(list("", all[n]),
                Texts(all.begin() + static_cast<std::ptrdiff_t>(n) + 1, all.end()))
          << all[n];
      const std::string name = all[n].substr(0, all[n].find('/'));
      EXPECT_EQ(find("", name), all[n]) << "from pages";
    }
    use_pages_of(entries);
    for (const std::string& text : all)
      EXPECT_EQ(find("", text.substr(0, text.find('/'))), text) << "from the store";
  }
}

TEST_F(BucketViewTest, ALargeDirectoryTakesOneRequestForEachPage) {
  for (int n = 0; n < 1000; ++n)
    put("f" + std::to_string(1000 + n));
  use_pages_of(100);
  EXPECT_EQ(list("").size(), 1000u);
  // What ends a page begins the next, since it may yet be a directory too.
  EXPECT_EQ(recording->count(), 11u);
  EXPECT_EQ(recording->count(StoreOperation::kHead), 0u);
}

TEST_F(BucketViewTest, ChangesAreSeenAfterTheLifetime) {
  put("a");
  put("d/x");
  EXPECT_EQ(list(""), (Texts{"a", "d/"}));
  remove("a");
  put("a/now", "a directory");
  remove("d/x");
  put("new");
  EXPECT_EQ(list(""), (Texts{"a", "d/"}));
  EXPECT_EQ(find("", "a"), "a");
  expire();
  EXPECT_EQ(find("", "a"), "a/");
  EXPECT_EQ(find("", "d"), "");
  EXPECT_EQ(list(""), (Texts{"a/", "new"}));
}

TEST_F(BucketViewTest, WhatWasForgottenIsAskedAgain) {
  put("a", "one");
  put("b", "one");
  EXPECT_EQ(view->find(context, "", "b").value()->size, 3u);
  list("");
  put("a", "longer");
  put("b", "longer");
  EXPECT_EQ(view->find(context, "", "a").value()->size, 3u);
  view->forget("", "a");
  view->forget("", "b");
  EXPECT_EQ(view->find(context, "", "a").value()->size, 6u);
  EXPECT_EQ(view->find(context, "", "b").value()->size, 6u);
}

TEST_F(BucketViewTest, OldAnswersServeWhileTheStoreIsAway) {
  for (const char* key : {"a", "b", "c/x", "d"})
    put(key);
  list("");
  find("c/", "x");
  cut_off();
  expire();
  EXPECT_EQ(list(""), (Texts{"a", "b", "c/", "d"}));
  EXPECT_EQ(list("", "b"), (Texts{"c/", "d"})) << "from the page that begins before";
  EXPECT_EQ(find("", "c"), "c/") << "from the page";
  EXPECT_EQ(find("c/", "x"), "x");
  EXPECT_EQ(view->find(context, "c/", "y").error().code(), StatusCode::kUnavailable);
  EXPECT_EQ(view->page(context, "c/", "").error().code(), StatusCode::kUnavailable);
}

// The n-th request fails: the answer is a failure or right, and nothing wrong is kept.
TEST_F(BucketViewTest, AFailureIsNeverAnAbsence) {
  put("f");
  put("d/x");
  for (std::uint64_t call = 1; call <= 2; ++call) {
    for (const char* name : {"f", "d"}) {
      expire();
      view = std::make_unique<BucketView>("/buckets/b", broken, clock, requests);
      broken->set_plan(
          fault_nth_call(broken->calls() + call, {.code = StatusCode::kPermissionDenied}));
      const auto found = view->find(context, "", name);
      EXPECT_TRUE(!found || found->has_value()) << name << call;
      broken->set_plan(no_faults());
      EXPECT_NE(find("", name), "");
    }
  }
}

// As a store answers that has no such bucket: nothing in it is found, and no listing of it either.
TEST_F(BucketViewTest, ABucketThatIsNotThereIsAFailureAndLoggedOnce) {
  put("f");
  const auto refuse = [this](StatusCode code) {
    broken->set_plan([code](const FaultableCall&) { return Fault{.code = code}; });
  };
  refuse(StatusCode::kNotFound);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(view->page(context, "", "").error(), StatusCode::kIoError);
    EXPECT_EQ(view->find(context, "", "f").error(), StatusCode::kIoError);
    expire();
  }
  const auto lines = [this] { return std::ranges::count(log.text(), '\n'); };
  EXPECT_EQ(lines(), 1) << log.text();
  EXPECT_NE(log.text().find("mend the setting 'buckets'"), std::string::npos);
  EXPECT_NE(log.text().find("path=/buckets/b store=memory"), std::string::npos) << log.text();
  refuse(StatusCode::kPermissionDenied);
  EXPECT_EQ(view->page(context, "", "").error(), StatusCode::kPermissionDenied);
  EXPECT_EQ(lines(), 2) << "something else is wrong with it now";
  cut_off();
  EXPECT_EQ(view->page(context, "", "").error(), StatusCode::kUnavailable);
  EXPECT_EQ(lines(), 2) << "no answer is no refusal";
  broken->set_plan(no_faults());
  EXPECT_EQ(list(""), Texts{"f"});
  refuse(StatusCode::kPermissionDenied);
  expire();
  EXPECT_FALSE(view->page(context, "", ""));
  EXPECT_EQ(lines(), 3) << "it listed in between";
}

TEST_F(BucketViewTest, GoesOnWhenNobodyRunsTheSecondRequest) {
  put("f");
  put("d/x");
  requests.shutdown();
  EXPECT_EQ(find("", "f"), "f");
  EXPECT_EQ(find("", "d"), "d/");
}

}  // namespace
}  // namespace millrace
