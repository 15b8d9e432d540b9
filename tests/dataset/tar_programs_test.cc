// Archives against the programs that others read and write them with: GNU tar and Python.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "dataset/directory_source.h"
#include "dataset/pack_builder.h"
#include "objectstore/memory_object_store.h"
#include "platform/digest.h"
#include "platform/file.h"
#include "tests/dataset/source_world.h"
#include "tests/dataset/tar_archive.h"
#include "tests/servers/child_process.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string run_program(const std::vector<std::string>& command) {
  testing::ChildOptions options;
  options.environment = {{"LC_ALL", "C"}, {"TZ", "UTC"}};  // Bytes are bytes, and times are UTC.
  const auto result = testing::run_command(command, options);
  EXPECT_EQ(result.status, 0) << command[0] << ": " << result.output;
  return result.output;
}

// A path of `length` whose components are short enough for every format.
std::string long_path(std::size_t length, char fill) {
  std::string path;
  while (path.size() < length)
    path += path.size() % 91 == 90 && path.size() + 1 < length ? '/' : fill;
  return path;
}

std::vector<ArchiveMember> program_members() {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::string binary("\0\1\2\xff", 4);
  const auto file = [](std::string path, std::uint16_t mode, std::int64_t mtime_ns,
                       std::string content) {
    return ArchiveMember{.member = {.path = std::move(path),
                                    .mode = mode,
                                    .mtime_ns = mtime_ns,
                                    .size = content.size()},
                         .content = std::move(content)};
  };
  return {
      file("plain.txt", 0644, 1'600'000'000 * kSecond, "hello"),
      file("empty", 0600, 5 * kSecond, ""),
      file("mode", 0751, 1'600'000'000 * kSecond + 123'456'789, binary),
      file("d/e/block", 0444, kSecond, std::string(512, 'b')),
      file("not \xff\xfe utf-8", 0644, kSecond, "bytes"),
      file("new\nline", 0644, kSecond, "n"),
      file("gr\xc3\xbc\xc3\x9f", 0644, kSecond, "utf-8"),
      file("-rf", 0644, kSecond, "dash"),
      file(std::string(100, 'a'), 0644, kSecond, "100"),
      file(long_path(180, 'b'), 0644, kSecond, "split"),
      file(long_path(300, 'c'), 0644, 3 * kSecond + 1, "pax"),
      file(long_path(1500, 'd'), 0640, kSecond, "long"),
      file(long_path(900, '\xfe'), 0644, kSecond, "long and not utf-8"),
      file("large", 0644, kSecond, std::string(100'000, 'l')),
  };
}

class TarProgramsTest : public ::testing::Test {
 protected:
  std::string write_archive(std::string_view bytes) {
    tree_.write("archive.tar", bytes);
    return tree_.path("archive.tar");
  }

  ScratchTree tree_;
};

TEST_F(TarProgramsTest, GnuTarExtractsWhatWeWrite) {
  std::vector<ArchiveMember> members = program_members();
  members.push_back(
      {{.path = "directory", .kind = TarKind::kDirectory, .mode = 0710, .mtime_ns = 1'000'000'000},
       ""});
  members.push_back({{.path = "link",
                      .kind = TarKind::kSymlink,
                      .mode = 0777,
                      .mtime_ns = 1'000'000'000,
                      .link_target = long_path(150, 't')},
                     ""});
  const std::string archive = write_archive(archive_of(members));
  tree_.make_directory("out");
  run_program({"tar", "-xpf", archive, "-C", tree_.path("out")});
  for (const auto& [member, content] : members) {
    SCOPED_TRACE(member.path);
    const std::string path = tree_.path("out/" + member.path);
    struct stat facts{};
    ASSERT_EQ(::lstat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec, member.mtime_ns);
    if (member.kind == TarKind::kSymlink) {
      EXPECT_EQ(fs::read_symlink(path).string(), member.link_target);
      continue;
    }
    EXPECT_EQ(facts.st_mode & 07777, member.mode);
    if (member.kind == TarKind::kDirectory) {
      EXPECT_TRUE(S_ISDIR(facts.st_mode));
    } else {
      EXPECT_EQ(read_file(path).value(), content);
    }
  }
  // Root is the owner. It complains of one thing only: that it does not know a keyword of POSIX.
  const std::string listing = run_program({"tar", "--numeric-owner", "-tvf", archive});
  const std::size_t complaint = listing.find("tar:");
  EXPECT_THAT(listing.substr(complaint), HasSubstr("keyword 'hdrcharset'"));
  EXPECT_EQ(listing.find("tar:", complaint + 1), std::string::npos) << listing;
  EXPECT_THAT(listing, ::testing::StartsWith("-rw-r--r-- 0/0"));
}

TEST_F(TarProgramsTest, PythonReadsWhatWeWrite) {
  const std::vector<ArchiveMember> members = program_members();
  const std::string archive = write_archive(archive_of(members));
  const std::string found = run_program(
      {"python3", "-c",
       "import sys, tarfile, hashlib, os\n"
       "with tarfile.open(sys.argv[1], 'r:') as archive:\n"
       "    for m in archive:\n"
       "        assert m.isfile() and (m.uname, m.gname, m.uid) == ('root', 'root', 0)\n"
       "        print(os.fsencode(m.name).hex(), oct(m.mode)[2:], int(m.mtime), m.size,\n"
       "              m.offset_data, hashlib.sha256(archive.extractfile(m).read()).hexdigest())\n",
       archive});
  std::string expected;
  const auto listed = list_archive(archive_of(members));
  for (std::size_t n = 0; n < members.size(); ++n) {
    const auto& [member, content] = members[n];
    std::ostringstream line;
    line << to_hex(as_bytes(member.path)) << ' ' << std::oct << member.mode << std::dec << ' '
         << member.mtime_ns / 1'000'000'000 << ' ' << member.size << ' ' << listed[n].content_offset
         << ' ' << to_hex(sha256(as_bytes(content))) << '\n';
    expected += line.str();
  }
  EXPECT_EQ(found, expected);
}

TEST_F(TarProgramsTest, PacksAreTars) {
  ScratchTree data;
  for (const auto& [member, content] : program_members()) {
    data.write(member.path, content);
    data.set_mode(member.path, member.mode);
    data.set_mtime(member.path, member.mtime_ns);
  }
  const auto source = DirectorySource::open_root(data.root()).value();
  const auto found = scan_all(*source);
  struct : PackPlanSink {
    Status add_pack(PlannedPack planned) override {
      pack = std::move(planned);
      return {};
    }
    Status add_object(SourceEntry) override { return Status(StatusCode::kInternal, "no"); }
    PlannedPack pack;
  } plan;
  PackPlanner planner({}, plan);
  for (const auto& [path, entry] : found->entries()) {
    if (entry.kind == EntryKind::kFile) {
      ASSERT_TRUE(planner.add(entry).ok());
    }
  }
  ASSERT_TRUE(planner.finish().ok());
  MemoryObjectStore store;
  BufferPool pool({});
  const auto context = RequestContext::background();
  PackBuilder builder(store, pool);
  ASSERT_TRUE(builder.build(context, *source, plan.pack, ObjectKey("pack"), {}));
  const auto stored = store.get(context, {.key = ObjectKey("pack")}).value();
  const std::string archive = write_archive(stored.data.text());
  tree_.make_directory("out");
  run_program({"tar", "-xpf", archive, "-C", tree_.path("out")});
  EXPECT_EQ(run_program({"diff", "-r", data.root(), tree_.path("out")}), "");
  for (const auto& [member, content] : program_members()) {
    struct stat facts{};
    ASSERT_EQ(::stat(tree_.path("out/" + member.path).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, member.mode);
    EXPECT_EQ(facts.st_mtim.tv_sec, member.mtime_ns / 1'000'000'000);
  }
}

TEST_F(TarProgramsTest, WeReadWhatGnuTarWrites) {
  for (const std::string format : {"v7", "ustar", "oldgnu", "gnu", "pax"}) {
    SCOPED_TRACE(format);
    ScratchTree data;
    std::map<std::string, std::string> contents;
    for (const auto& [member, content] : program_members()) {
      const bool is_long = member.path.size() > 99;
      // What the old formats cannot hold.
      if (is_long && format == "v7") continue;
      if (member.path.size() > 250 && format == "ustar") continue;
      data.write(member.path, content);
      data.set_mode(member.path, member.mode);
      data.set_mtime(member.path, member.mtime_ns);
      contents[member.path] = content;
    }
    data.link("link", format == "v7" || format == "ustar" ? "short" : long_path(200, 't'));
    fs::create_hard_link(data.path("large"), data.path("twin"));
    const std::string archive = tree_.path("gnu.tar");
    run_program(
        {"tar", "--format=" + format, "--sort=name", "-C", data.root(), "-cf", archive, "."});
    const std::string bytes = read_file(archive).value();
    std::size_t hard_links = 0;
    std::size_t links = 0;
    for (const TarReadMember& found : list_archive(bytes)) {
      const TarMember& member = found.member;
      if (member.kind == TarKind::kDirectory) continue;
      ASSERT_TRUE(member.path.starts_with("./")) << member.path;
      const std::string path = member.path.substr(2);
      if (member.kind == TarKind::kSymlink) {
        EXPECT_EQ(member.link_target, fs::read_symlink(data.path("link")).string());
        ++links;
        continue;
      }
      if (member.kind == TarKind::kHardLink) {
        EXPECT_EQ(member.link_target, "./large");
        ++hard_links;
        continue;
      }
      struct stat facts{};
      ASSERT_EQ(::stat(data.path(path).c_str(), &facts), 0) << path;
      EXPECT_EQ(member.mode, facts.st_mode & 07777);
      const std::int64_t nanoseconds = format == "pax" ? facts.st_mtim.tv_nsec : 0;
      EXPECT_EQ(member.mtime_ns, facts.st_mtim.tv_sec * 1'000'000'000 + nanoseconds);
      EXPECT_EQ(bytes.substr(found.content_offset, member.size), contents.at(path));
      contents.erase(path);
    }
    EXPECT_TRUE(contents.empty());
    EXPECT_EQ(hard_links, 1U);
    EXPECT_EQ(links, 1U);
  }
}

TEST_F(TarProgramsTest, WeRefuseSparseMembersOfGnuTar) {
  std::ofstream(tree_.path("sparse"));
  fs::resize_file(tree_.path("sparse"), 10 * kMiB);
  for (const std::string format : {"gnu", "pax"}) {
    const std::string archive = tree_.path(format + ".tar");
    run_program(
        {"tar", "--format=" + format, "--sparse", "-C", tree_.root(), "-cf", archive, "sparse"});
    const auto members = try_list_archive(read_file(archive).value());
    ASSERT_FALSE(members);
    EXPECT_EQ(members.error().code(), StatusCode::kUnsupported);
  }
}

TEST_F(TarProgramsTest, WeReadTheHeadersOfLargeFiles) {
  // Python writes headers without the content.
  for (const std::string format : {"GNU_FORMAT", "PAX_FORMAT"}) {
    const std::string header = tree_.path(format);
    run_program({"python3", "-c",
                 "import sys, tarfile\n"
                 "m = tarfile.TarInfo('large')\n"
                 "m.size = 20 << 30\n"
                 "open(sys.argv[1], 'wb').write(m.tobuf(getattr(tarfile, sys.argv[2])))\n",
                 header, format});
    const std::string bytes = read_file(header).value();
    TarReader reader(reading(bytes), 40ULL << 30);
    const auto member = reader.next();
    ASSERT_TRUE(member) << member.error().to_string();
    EXPECT_EQ((*member)->member.size, 20ULL << 30);
    EXPECT_EQ((*member)->content_offset, bytes.size());
  }
}

}  // namespace
}  // namespace millrace
