#include <fmt/format.h>
#include <gmock/gmock.h>

#include "frontends/nfs4/nfs_exports.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NfsExport nfs_export(std::string_view text) { return NfsExport::parse(text).value(); }
std::string refusal(std::string_view text) {
  const auto exports = parse_nfs_exports(text);
  return exports ? "accepted" : exports.error().message();
}

TEST(NfsExport, OnlyThePathIsNeeded) {
  const NfsExport plain = nfs_export("/datasets");
  EXPECT_EQ(plain.source, "/datasets");
  EXPECT_EQ(plain.squash, NfsSquash::kRoot);
  EXPECT_TRUE(plain.read_only);
  EXPECT_TRUE(plain.allows_sys);
  EXPECT_FALSE(plain.allows_none);
  EXPECT_TRUE(plain.allows(NetworkAddress::parse("203.0.113.9").value()));
}

TEST(NfsExport, TextAndExportAreTheSameThing) {
  for (const char* text : {"/datasets", "/a/b=/datasets/imagenet/v2", "/all=/",
                           "/d,clients=10.0.0.0/8+fd00::/8,squash=all,anon=7:8,sec=sys+none",
                           "/d,sec=sys+tls", "/d,sec=none+mtls", "/d,squash=none,sec=none"}) {
    EXPECT_EQ(nfs_export(text).to_string(), text);
    EXPECT_EQ(nfs_export(nfs_export(text).to_string()), nfs_export(text));
  }
  EXPECT_EQ(nfs_export("/d, ro ,sec=sys").to_string(), "/d");
  EXPECT_EQ(nfs_export("/d,sec=mtls+tls").to_string(), "/d,sec=sys+mtls");
}

TEST(NfsExport, WhatIsWrongIsSaid) {
  EXPECT_THAT(refusal("datasets"), HasSubstr("'datasets' is no path of an export"));
  EXPECT_THAT(refusal("/"), HasSubstr("is no path of an export"));
  EXPECT_THAT(refusal("/a//b"), HasSubstr("'' in /a//b"));
  EXPECT_THAT(refusal("/a/../b"), HasSubstr("'..' in /a/../b"));
  EXPECT_THAT(refusal("/a=b"), HasSubstr("'b' is no path"));
  EXPECT_THAT(refusal("/a,rw"), HasSubstr("'rw' is no option"));
  EXPECT_THAT(refusal("/a,ro=1"), HasSubstr("'ro=1' is no option"));
  EXPECT_THAT(refusal("/a,clients=office"), HasSubstr("'office' is no network"));
  EXPECT_THAT(refusal("/a,clients="), HasSubstr("'' is no network"));
  EXPECT_THAT(refusal("/a,squash=some"), HasSubstr("expected none, root or all"));
  EXPECT_THAT(refusal("/a,anon=7"), HasSubstr("expected UID:GID"));
  EXPECT_THAT(refusal("/a,anon=7:4294967296"), HasSubstr("no user or group number"));
  EXPECT_THAT(refusal("/a,sec=krb5"), HasSubstr("sec=krb5"));
  EXPECT_THAT(refusal("/" + std::string(kNfsPathBytesMax, 'a')), HasSubstr("longer than"));
  std::string many = "/a,clients=10.0.0.1";
  for (std::size_t i = 0; i < kNfsExportClientsMax; ++i)
    many += "+10.0.0.1";
  EXPECT_THAT(refusal(many), HasSubstr("more than 256 networks"));
}

TEST(NfsExport, ExportsLieSideBySide) {
  EXPECT_THAT(refusal("/a;/a"), HasSubstr("one holds the other"));
  EXPECT_THAT(refusal("/a/b;/a"), HasSubstr("one holds the other"));
  EXPECT_THAT(refusal("/a;/a/b"), HasSubstr("one holds the other"));
  EXPECT_EQ(refusal("/a;/ab;/b/a"), "accepted");
  EXPECT_EQ(refusal("none"), "accepted");
  std::string many = "/0";
  for (std::size_t i = 1; i <= kNfsExportsMax; ++i)
    many += fmt::format(";/{}", i);
  EXPECT_THAT(refusal(many), HasSubstr("more than 1024 exports"));
}

TEST(NfsExport, ClientsAreThoseOfItsNetworks) {
  const NfsExport exported = nfs_export("/a,clients=10.0.0.0/8+127.0.0.1");
  const auto allows = [&](const char* text) {
    return exported.allows(NetworkAddress::parse(text).value());
  };
  EXPECT_TRUE(allows("10.9.8.7"));
  EXPECT_TRUE(allows("127.0.0.1"));
  EXPECT_FALSE(allows("127.0.0.2"));
  EXPECT_FALSE(allows("::1"));
}

TEST(NfsExport, SquashingTakesWhatItSays) {
  const Credentials root{.uid = 0, .gid = 0, .groups = {0, 5}};
  const Credentials user{.uid = 7, .gid = 0, .groups = {0, 5}};
  EXPECT_EQ(nfs_export("/a,squash=none").squashed(root).uid, 0U);
  const Credentials nobody = nfs_export("/a").squashed(root);
  EXPECT_EQ(nobody.uid, 65534U);
  EXPECT_EQ(nobody.gid, 65534U);
  EXPECT_TRUE(nobody.groups.empty());
  // A user keeps the number, but no group of the superuser's.
  const Credentials other = nfs_export("/a").squashed(user);
  EXPECT_EQ(other.uid, 7U);
  EXPECT_EQ(other.gid, 65534U);
  EXPECT_THAT(other.groups, ElementsAre(65534U, 5U));
  EXPECT_EQ(nfs_export("/a,squash=all,anon=3:4").squashed(user).uid, 3U);
}

TEST(NfsExport, AnIdIsThePathsAlone) {
  EXPECT_EQ(nfs_export("/a").id(), nfs_export("/a=/datasets/x,squash=all").id());
  EXPECT_NE(nfs_export("/a").id(), nfs_export("/b").id());
  EXPECT_EQ(nfs_export("/datasets").id(), 2744262976U) << "is in the handles of clients";
}

TEST(NfsExportTable, LeadsFromTheRootToEachExport) {
  const NfsExportTable table(parse_nfs_exports("/a-b/c;/a/b;/a/c/d;/x;/a-b/d").value());
  const auto names = [&](std::string_view directory) {
    std::vector<std::string> result;
    for (const NfsExportName& name : *table.names(directory))
      result.push_back(std::string(name.name) + (name.target ? "*" : "/"));
    return result;
  };
  EXPECT_THAT(names("/"), ElementsAre("a/", "a-b/", "x*"));
  EXPECT_THAT(names("/a"), ElementsAre("b*", "c/"));
  EXPECT_THAT(names("/a/c"), ElementsAre("d*"));
  EXPECT_THAT(names("/a-b"), ElementsAre("c*", "d*"));
  EXPECT_EQ(table.names("/a/b"), nullptr) << "the export itself is no directory above exports";
  EXPECT_EQ(table.names("/nothing"), nullptr);
  EXPECT_EQ(table.find("/a/c/d")->path, "/a/c/d");
  EXPECT_EQ(table.find("/a/c"), nullptr);
  EXPECT_EQ(table.find(table.find("/x")->id())->path, "/x");
  EXPECT_EQ(table.find(std::uint32_t{0}), nullptr);
}

TEST(NfsExportTable, WithoutExportsThereIsARoot) {
  const NfsExportTable table({});
  ASSERT_NE(table.names("/"), nullptr);
  EXPECT_TRUE(table.names("/")->empty());
}

TEST(NfsExports, ChangeWhileReadersKeepWhatTheyHad) {
  NfsExports exports(parse_nfs_exports("/a").value());
  const auto before = exports.table();
  EXPECT_TRUE(exports.add(nfs_export("/b")).ok());
  EXPECT_EQ(exports.add(nfs_export("/b")), StatusCode::kConflict);
  EXPECT_EQ(exports.add(nfs_export("/a/inside")), StatusCode::kInvalidArgument);
  EXPECT_TRUE(exports.remove("/a").ok());
  EXPECT_EQ(exports.remove("/a"), StatusCode::kNotFound);
  EXPECT_EQ(exports.table()->find("/a"), nullptr);
  EXPECT_NE(exports.table()->find("/b"), nullptr);
  EXPECT_NE(before->find("/a"), nullptr);
  EXPECT_EQ(before->find("/b"), nullptr);
}

}  // namespace
}  // namespace millrace
