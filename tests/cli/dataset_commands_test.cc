#include <unistd.h>

#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>

#include "base/random.h"
#include "dataset/manifest_builder.h"
#include "dataset/manifest_store.h"
#include "dataset/registry.h"
#include "objectstore/file_object_store.h"
#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

VersionRef ref_of(std::string_view text) { return VersionRef::parse(text).value(); }

// Versions made past the program, in a store of files that the program then works on.
class DatasetCommands : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    std::filesystem::create_directories(path("s"));
    store_ = FileObjectStore::open(path("s"), inline_executor(), {}).value();
    variables_["MILLRACE_STORE"] = path("s");
  }
  void TearDown() override {
    store_.reset();
    MillraceTest::TearDown();
  }

  Registry registry() const {
    return Registry({.store = *store_,
                     .clock = system_clock(),
                     .random = system_random(),
                     .writer = {.user = "alice", .host = "node7", .pid = 4711}});
  }

  // A version of files with these paths and contents; nothing reads the contents themselves.
  void publish(const std::string& ref, const std::map<std::string, std::string>& files,
               const std::string& notes = "") {
    const std::string file = path("manifest");
    auto builder = ManifestBuilder::create({.path = file}).value();
    VersionFacts facts{.created = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 15)),
                       .source = "/data/" + ref};
    facts.annotation = {.notes = notes, .labels = {{"team", "vision"}}};
    for (const auto& [name, text] : files) {
      const auto object =
          builder->add_object({.key = ObjectKey("objects/" + name + text), .size = text.size()});
      ASSERT_TRUE(object.has_value()) << object.error().to_string();
      const Status added = builder->add(
          {.path = name,
           .mode = 0644,
           .size = text.size(),
           .hash = ContentHash::of_content(sha256(as_bytes(text))),
           .extents = {
               {.object = *object, .stored_bytes = text.size(), .logical_bytes = text.size()}}});
      ASSERT_TRUE(added.ok()) << added.to_string();
      facts.totals.bytes += text.size();
      ++facts.totals.files;
    }
    facts.content_digest = builder->finish().value().content_digest;
    const auto reservation = registry().reserve(context_, ref_of(ref), {});
    ASSERT_TRUE(reservation.has_value()) << reservation.error().to_string();
    const auto layout = ManifestStore(*store_, path("pages"))
                            .put(context_, file, reservation->ref, reservation->nonce);
    ASSERT_TRUE(layout.has_value()) << layout.error().to_string();
    facts.layout = *layout;
    const auto entry = registry().commit(context_, *reservation, facts);
    ASSERT_TRUE(entry.has_value()) << entry.error().to_string();
  }

  // Two versions of one dataset.
  void publish_two() {
    publish("imagenet@v1", {{"a", "1"}, {"b", "22"}, {"d/c", "333"}}, "first\nof two");
    publish("imagenet@v2", {{"a", "1"}, {"b", "2222"}, {"d/e", "55555"}});
  }

  // The documents that stand in the output line by line.
  static std::vector<nlohmann::json> documents(const std::string& text) {
    std::vector<nlohmann::json> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      all.push_back(nlohmann::json::parse(line, nullptr, false));
      EXPECT_FALSE(all.back().is_discarded()) << line;
    }
    return all;
  }

  const RequestContext context_ = RequestContext::background();
  std::unique_ptr<FileObjectStore> store_;
};

TEST_F(DatasetCommands, AnEmptyStoreHasNoDatasets) {
  const Outcome none = millrace({"dataset", "ls"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("no datasets in"));
  EXPECT_EQ(millrace({"version", "ls"}).exit_code, 0);
  EXPECT_EQ(millrace({"alias", "ls"}).exit_code, 0);
  EXPECT_EQ(millrace({"run", "ls"}).exit_code, 0);
  EXPECT_EQ(millrace({"registry", "export"}).out, "datasets: {}\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"dataset", "show", "x"},
        {"version", "ls", "x"},
        {"version", "show", "x@v1"},
        {"alias", "ls", "x"},
        {"dataset", "rm", "x"},
        {"version", "rm", "x@v1"},
        {"version", "restore", "x@v1"},
        {"alias", "rollback", "x@c"},
        {"run", "show", "20260102T030405Z-0123456789abcdef"}}) {
    EXPECT_EQ(millrace(command).exit_code, 3) << command[0] << " " << command[1];
  }
  EXPECT_EQ(millrace({"version", "show", "x"}).exit_code, 2);
  EXPECT_EQ(millrace({"run", "show", "x"}).exit_code, 2);
}

TEST_F(DatasetCommands, ListsAndShowsWhatIsPublished) {
  publish_two();
  publish("internal/logs@2026-03-01", {{"x", "1"}});
  EXPECT_EQ(millrace({"dataset", "ls"}).out, "imagenet\ninternal/logs\n");
  EXPECT_THAT(millrace({"dataset", "ls", "-l"}).out, HasSubstr("imagenet       2         v2"));
  EXPECT_EQ(millrace({"version", "ls", "imagenet"}).out, "imagenet@v1\nimagenet@v2\n");
  EXPECT_THAT(millrace({"version", "ls", "-l", "imagenet"}).out,
              AllOf(HasSubstr("2026-01-15"), HasSubstr("6 B"), HasSubstr("first ...")));
  const auto listed = documents(millrace({"version", "ls", "--json"}).out);
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0]["ref"], "imagenet@v1");
  EXPECT_EQ(listed[0]["files"], 3);
  EXPECT_EQ(listed[0]["labels"]["team"], "vision");

  EXPECT_EQ(millrace({"alias", "set", "imagenet@current", "v1"}).exit_code, 0);
  const auto shown = millrace({"version", "show", "imagenet@current", "--json"}).json();
  EXPECT_EQ(shown["ref"], "imagenet@v1");
  EXPECT_EQ(shown["aliases"], nlohmann::json({"current"}));
  EXPECT_EQ(shown["publisher"]["user"], "alice");
  EXPECT_THAT(millrace({"version", "show", "imagenet@v1"}).out,
              AllOf(HasSubstr("aliases:    current"), HasSubstr("label:      team=vision"),
                    HasSubstr("of two"), HasSubstr("alice@node7"), HasSubstr("3 files")));
  EXPECT_THAT(millrace({"dataset", "show", "imagenet"}).out,
              AllOf(HasSubstr("current -> v1"), HasSubstr("imagenet@v2")));
}

TEST_F(DatasetCommands, DiffTellsWhatChanged) {
  publish_two();
  const Outcome text = millrace({"version", "diff", "imagenet@v1", "imagenet@v2"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.out,
            "~ b  (2 B -> 4 B)\n- d/c  (3 B)\n+ d/e  (5 B)\n"
            "imagenet@v1 -> imagenet@v2: 1 added (5 B), 1 removed (3 B), 1 changed (4 B)\n");
  EXPECT_THAT(millrace({"version", "diff", "--summary", "imagenet@v1", "imagenet@v2"}).out,
              AllOf(HasSubstr("1 added (5 B)"), Not(HasSubstr("d/e"))));
  const auto json =
      documents(millrace({"version", "diff", "imagenet@v1", "imagenet@v2", "--json"}).out);
  ASSERT_EQ(json.size(), 4U);
  EXPECT_EQ(json[0]["change"], "changed");
  EXPECT_EQ(json[0]["before"]["size"], 2);
  EXPECT_TRUE(json[1]["after"].is_null());
  EXPECT_EQ(json[3]["type"], "totals");
  EXPECT_EQ(json[3]["changed"]["bytes"], 4);
  EXPECT_THAT(millrace({"version", "diff", "imagenet@v1", "imagenet@v1"}).out,
              HasSubstr("0 added (0 B), 0 removed (0 B), 0 changed (0 B)"));
}

TEST_F(DatasetCommands, ARemovedVersionComesBack) {
  publish_two();
  EXPECT_EQ(millrace({"alias", "set", "imagenet@current", "v2"}).exit_code, 0);
  const Outcome held = millrace({"version", "rm", "imagenet@v2"});
  EXPECT_EQ(held.exit_code, 6);
  EXPECT_THAT(held.err, AllOf(HasSubstr("imagenet@current"), HasSubstr("--force")));
  EXPECT_EQ(millrace({"version", "rm", "imagenet@v1", "--retention", "soon"}).exit_code, 2);
  const Outcome removed =
      millrace({"version", "rm", "imagenet@v1", "--retention", "12h", "--reason", "bad"});
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_THAT(removed.err, HasSubstr("millrace version restore imagenet@v1"));
  const Outcome left = millrace({"version", "ls"});
  EXPECT_EQ(left.out, "imagenet@v2\n");
  EXPECT_THAT(left.err, HasSubstr("--all"));
  EXPECT_THAT(millrace({"version", "ls", "--all"}).out, HasSubstr("removed"));
  const auto shown = millrace({"version", "show", "imagenet@v1", "--json"}).json();
  EXPECT_EQ(shown["state"], "removed");
  EXPECT_EQ(shown["reason"], "bad");
  EXPECT_EQ(millrace({"version", "diff", "imagenet@v1", "imagenet@v2"}).exit_code, 3);
  EXPECT_EQ(millrace({"version", "restore", "imagenet@v1"}).exit_code, 0);
  EXPECT_EQ(millrace({"version", "restore", "imagenet@v1"}).exit_code, 6);
  EXPECT_EQ(millrace({"version", "rm", "--force", "imagenet@v2"}).exit_code, 0);

  const Outcome asked = millrace({"dataset", "rm", "imagenet"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.err, AllOf(HasSubstr("1 version of imagenet"), HasSubstr("--yes")));
  EXPECT_EQ(millrace({"dataset", "rm", "imagenet", "--yes"}).exit_code, 0);
  EXPECT_EQ(millrace({"dataset", "ls"}).out, "");
  EXPECT_EQ(millrace({"dataset", "ls", "--all"}).out, "imagenet\n");
  EXPECT_EQ(millrace({"dataset", "rm", "imagenet", "--yes"}).exit_code, 3);
}

TEST_F(DatasetCommands, ADeadReservationIsEnded) {
  ASSERT_TRUE(registry().reserve(context_, ref_of("coco@v1"), {.reason = "publish of /x"}));
  const Outcome refused = millrace({"version", "rm", "coco@v1"});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_THAT(refused.err, HasSubstr("millrace version rm --abort coco@v1"));
  EXPECT_THAT(millrace({"version", "ls", "--all"}).out,
              AllOf(HasSubstr("reserved"), HasSubstr("publish of /x")));
  const Outcome ended = millrace({"version", "rm", "--abort", "coco@v1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("alice@node7"));
  EXPECT_EQ(millrace({"version", "rm", "--abort", "coco@v1"}).exit_code, 6);
  EXPECT_TRUE(registry().reserve(context_, ref_of("coco@v1"), {})) << "the name is not free";
}

TEST_F(DatasetCommands, AliasesMoveAndGoBack) {
  publish_two();
  const auto set = [&](const std::string& target, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"alias", "set", "imagenet@current", target};
    command.insert(command.end(), more.begin(), more.end());
    return millrace(command).exit_code;
  };
  EXPECT_EQ(set("v1", {"--if", "v2"}), 6);
  EXPECT_EQ(set("v1", {"--if", "none"}), 0);
  EXPECT_EQ(set("v2", {"--if", "none"}), 6);
  EXPECT_EQ(set("imagenet@v2", {"--if", "v1"}), 0);
  EXPECT_EQ(set("coco@v2"), 2);
  EXPECT_EQ(set("v3"), 3);
  EXPECT_EQ(millrace({"alias", "set", "imagenet@v1", "v2"}).exit_code, 6);
  EXPECT_EQ(millrace({"alias", "set", "imagenet", "v2"}).exit_code, 2);
  EXPECT_EQ(millrace({"alias", "rollback", "imagenet@current", "--json"}).json()["to"], "v1");
  EXPECT_EQ(millrace({"alias", "rollback", "imagenet@current"}).exit_code, 6);
  const auto moves = documents(millrace({"alias", "ls", "imagenet@current", "--json"}).out);
  ASSERT_GE(moves.size(), 3U);
  EXPECT_EQ(moves.back()["from"], "v2");
  EXPECT_EQ(moves.back()["to"], "v1");
  EXPECT_FALSE(moves.back()["who"]["user"].get<std::string>().empty());
  const auto now = documents(millrace({"alias", "ls", "--json"}).out);
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0]["to"], "v1");
  EXPECT_THAT(millrace({"alias", "ls", "imagenet"}).out, HasSubstr("imagenet@current"));
  EXPECT_EQ(millrace({"alias", "rm", "imagenet@current"}).exit_code, 0);
  EXPECT_EQ(millrace({"alias", "ls"}).out, "");
}

TEST_F(DatasetCommands, ExportWritesWhatImportReads) {
  publish_two();
  const Outcome exported = millrace({"registry", "export"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(exported.out,
            "datasets:\n  imagenet:\n    versions:\n      v1:\n        path: file://" + path("s") +
                "/imagenet/v1/\n        size_gb: 0\n        created: 2026-01-15\n"
                "        notes: \"first\\nof two\"\n      v2:\n        path: file://" +
                path("s") + "/imagenet/v2/\n        size_gb: 0\n        created: 2026-01-15\n");
  EXPECT_EQ(millrace({"registry", "export", "out.yaml"}).exit_code, 0);
  EXPECT_EQ(read("out.yaml"), exported.out);
  EXPECT_EQ(millrace({"registry", "export", "--json"})
                .json()["datasets"]["imagenet"]["versions"]["v1"]["notes"],
            "first\nof two");
  EXPECT_THAT(millrace({"registry", "import", "out.yaml"}).out,
              HasSubstr("imagenet@v1: unchanged\nimagenet@v2: unchanged\n"));

  write("in.yaml",
        "datasets:\n  imagenet:\n    versions:\n      v2:\n        sample_count: 7\n"
        "        created: 2025-12-31\n        notes: new\n      v3:\n        path: s3://b/x/\n");
  const Outcome dry = millrace({"registry", "import", "-n", "in.yaml"});
  EXPECT_THAT(dry.out, AllOf(HasSubstr("imagenet@v2: would update notes, sample_count; created "
                                       "stays 2026-01-15, the file says 2025-12-31"),
                             HasSubstr("millrace register s3://b/x/ imagenet@v3")));
  EXPECT_TRUE(
      millrace({"version", "show", "imagenet@v2", "--json"}).json()["sample_count"].is_null());
  const auto steps = documents(millrace({"registry", "import", "in.yaml", "--json"}).out);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0]["action"], "updated");
  EXPECT_EQ(steps[1]["action"], "missing");
  const auto shown = millrace({"version", "show", "imagenet@v2", "--json"}).json();
  EXPECT_EQ(shown["sample_count"], 7);
  EXPECT_EQ(shown["notes"], "new");

  write("bad.yaml", "datasets:\n  imagenet:\n    versions:\n      v2:\n        size: 7\n");
  const Outcome bad = millrace({"registry", "import", "bad.yaml"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.yaml:5: unknown field 'size'"));
  EXPECT_EQ(millrace({"registry", "import", "none.yaml"}).exit_code, 3);
}

TEST_F(DatasetCommands, ImportRegistersWhatIsMissingWhenAsked) {
  write("s/raw/x/1", "a");
  write("s/raw/x/2", "b");
  const std::string document =
      "datasets:\n  raw-x:\n    versions:\n      v1:\n        path: file://" + path("s") +
      "/raw/x/\n        size_gb: 0\n        sample_count: 2\n        created: 2026-01-15\n"
      "        notes: \"as it came\"\n";
  write("in.yaml", document);
  EXPECT_EQ(millrace({"registry", "import", "--register", "-n", "in.yaml"}).exit_code, 0);
  EXPECT_EQ(millrace({"registry", "import", "in.yaml"}).exit_code, 0);
  EXPECT_EQ(millrace({"version", "ls"}).out, "") << "only --register makes versions";
  const Outcome registered = millrace({"registry", "import", "--register", "in.yaml"});
  EXPECT_EQ(registered.out, "raw-x@v1: registered\n") << registered.err;
  EXPECT_EQ(millrace({"registry", "export"}).out, document);

  write("far.yaml", "datasets: {a: {versions: {v1: {path: /elsewhere/x/}}}}\n");
  const Outcome far = millrace({"registry", "import", "--register", "far.yaml"});
  EXPECT_EQ(far.exit_code, 3);
  EXPECT_THAT(far.err, AllOf(HasSubstr("far.yaml:1: a@v1"), HasSubstr("/elsewhere/x")));
}

TEST_F(DatasetCommands, RegistersWhatLiesInAnotherStore) {
  write("other/raw/1.txt", "one");
  write("other/raw/2.txt", "two");
  const std::vector<std::string> registering = {"register", path("other/raw/"), "far@v1",
                                                "--created", "2026-01-15"};
  const Outcome registered = millrace(registering);
  EXPECT_EQ(registered.exit_code, 0) << registered.err;
  EXPECT_EQ(millrace({"version", "verify", "far@v1"}).exit_code, 0);
  EXPECT_EQ(millrace({"version", "extract", "far@v1", "out"}).exit_code, 0);
  EXPECT_EQ(read("out/2.txt"), "two");
  // The document leads to the same place from an empty registry.
  const Outcome exported = millrace({"registry", "export", "out.yaml"});
  EXPECT_THAT(read("out.yaml"), HasSubstr("path: file://" + path("other/raw") + "/\n"));
  std::filesystem::create_directories(path("t"));
  variables_["MILLRACE_STORE"] = path("t");
  EXPECT_EQ(millrace({"registry", "import", "--register", "out.yaml"}).out, "far@v1: registered\n");
  EXPECT_EQ(millrace({"registry", "export"}).out, read("out.yaml"));
  EXPECT_EQ(millrace({"version", "gc"}).exit_code, 0);
  EXPECT_EQ(read("other/raw/1.txt"), "one");
  // A store that is gone is named with all that leads to it.
  std::filesystem::rename(path("other"), path("moved"));
  const Outcome gone = millrace({"version", "extract", "far@v1", "out2"});
  EXPECT_EQ(gone.exit_code, 5) << gone.err;
  EXPECT_THAT(gone.err, AllOf(HasSubstr("far@v1"), HasSubstr("1.txt"), HasSubstr("other/raw")));
}

TEST_F(DatasetCommands, RegistersNoPlaceThatHoldsTheRegistryOrThatOthersCannotReach) {
  write("s/x", "1");
  const Outcome around = millrace({"register", directory_ + "/", "a@v1"});
  EXPECT_EQ(around.exit_code, 2);
  EXPECT_THAT(around.err, HasSubstr("has the registry itself in it"));
  write("local/x", "1");
  const Outcome local = millrace({"register", path("local/"), "a@v1", "--dry-run", "--store",
                                  "s3://bucket/ours?endpoint=http://127.0.0.1:1"});
  EXPECT_EQ(local.exit_code, 2);
  EXPECT_THAT(local.err, HasSubstr("use publish"));
  const Outcome above = millrace({"register", "s3://bucket/", "a@v1", "--dry-run", "--store",
                                  "s3://bucket/ours?endpoint=http://127.0.0.1:1"});
  EXPECT_EQ(above.exit_code, 2);
  EXPECT_THAT(above.err, HasSubstr("has the registry itself in it"));
}

TEST_F(DatasetCommands, PromoteAndPublishCopyFromAnotherStore) {
  write("other/raw/1.txt", "one");
  EXPECT_EQ(millrace({"promote", path("other/raw/"), "a@v1"}).exit_code, 0);
  EXPECT_EQ(millrace({"publish", "file://" + path("other/raw/"), "a@v2", "--no-base"}).exit_code,
            0);
  std::filesystem::remove_all(path("other"));
  EXPECT_EQ(millrace({"version", "verify", "a@v1"}).exit_code, 0);
  EXPECT_EQ(millrace({"version", "verify", "a@v2"}).exit_code, 0);
}

TEST_F(DatasetCommands, ARunIsRecordedAndItsCodeIsOurs) {
  publish_two();
  EXPECT_EQ(millrace({"alias", "set", "imagenet@current", "v2"}).exit_code, 0);
  const Outcome run = millrace({"run", "--name", "exp42", "--use", "imagenet@current", "--",
                                "/bin/sh", "-c", "echo $MILLRACE_USE_IMAGENET; exit 7", "--", "x"});
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_EQ(run.out, "imagenet@v2\n");
  const auto runs = documents(millrace({"run", "ls", "--json"}).out);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["name"], "exp42");
  EXPECT_EQ(runs[0]["exit_code"], 7);
  EXPECT_EQ(runs[0]["state"], "ended");
  EXPECT_EQ(runs[0]["uses"][0]["ref"], "imagenet@v2");
  EXPECT_EQ(runs[0]["git_commit"], "");
  EXPECT_EQ(runs[0]["command"].size(), 5U);
  const std::string id = runs[0]["run"];
  EXPECT_THAT(millrace({"run", "show", id}).out,
              AllOf(HasSubstr("exit code:  7"), HasSubstr("imagenet@v2 (content ")));
  EXPECT_THAT(millrace({"version", "show", "imagenet@v2"}).out, HasSubstr(id));
  EXPECT_THAT(millrace({"version", "show", "imagenet@v1"}).out, Not(HasSubstr(id)));
  EXPECT_EQ(millrace({"run", "--", "env"}).exit_code, 0);
  EXPECT_THAT(millrace({"run", "ls"}).out, AllOf(HasSubstr("exp42"), HasSubstr("env")));
}

TEST_F(DatasetCommands, ARunThatCannotBeginSaysWhy) {
  publish_two();
  EXPECT_THAT(millrace({"run", "--name", "x"}).err, HasSubstr("after '--'"));
  EXPECT_THAT(millrace({"run", "--name", "x", "ls"}).err, HasSubstr("put '--' before it"));
  for (const std::string flag : {"--lr", "-x"}) {
    const Outcome mixed = millrace({"run", "echo", flag, "3"});
    EXPECT_EQ(mixed.exit_code, 2);
    EXPECT_THAT(mixed.err, HasSubstr("comes after '--', as in 'millrace run -- echo " + flag));
  }
  EXPECT_EQ(millrace({"run", "--use", "imagenet@v3", "--", "true"}).exit_code, 3);
  EXPECT_EQ(millrace({"run", "--use", "imagenet", "--", "true"}).exit_code, 2);
  EXPECT_EQ(millrace({"run", "--heartbeat", "1ms", "--", "true"}).exit_code, 2);
  const Outcome none = millrace({"run", "--name", "x", "--", "no-such-program"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("could not start 'no-such-program'"));
  const auto runs = documents(millrace({"run", "ls", "--json"}).out);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["exit_code"], 127) << "a run that never began must not look alive";
}

TEST_F(DatasetCommands, ASignalReachesTheCommand) {
  publish_two();
  // The child tells that it is ready, and again that it was asked to end.
  const Outcome run = bash(
      "millrace run --name x --use imagenet@v1 -- "
      "/bin/sh -c 'trap \"echo asked; exit 9\" TERM; echo ready > ready; for i in $(seq 300); do "
      "sleep 0.1; "
      "done' & until test -s ready; do sleep 0.1; done; kill -TERM $!; wait $!");
  EXPECT_THAT(run.out, HasSubstr("asked"));
  EXPECT_EQ(run.exit_code, 9);
  const auto runs = documents(millrace({"run", "ls", "--json"}).out);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0]["exit_code"], 9);
}

TEST_F(DatasetCommands, AReadOnlyStoreOnlyWarns) {
  publish_two();
  ASSERT_EQ(bash("chmod -R a-w s").exit_code, 0);
  // Root may write everywhere, unless it gives that up.
  const std::string as_others =
      ::geteuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all " : "";
  const Outcome run = bash(as_others + "millrace run --name x --use imagenet@v1 -- true");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("refuses writes"));
  ASSERT_EQ(bash("chmod -R u+w s").exit_code, 0);
}

}  // namespace
}  // namespace millrace::cli
