#include "vfs/access.h"

#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr std::uint32_t kOwner = 1000;
constexpr std::uint32_t kGroup = 2000;

WantedAccess wanted_access(std::string_view letters) {
  return {.read = letters.find('r') != std::string_view::npos,
          .write = letters.find('w') != std::string_view::npos,
          .execute = letters.find('x') != std::string_view::npos};
}

NodeAttributes node_with(std::uint16_t permissions, NodeKind kind = NodeKind::kFile) {
  NodeAttributes node;
  node.kind = kind;
  node.permissions = permissions;
  return node;
}

struct AccessCase {
  std::string caller;  // owner, group, extra (a member by a further group), other, root.
  NodeKind kind;
  std::uint16_t permissions;
  std::string allowed;  // All letters that are allowed, also together.
};

Credentials credentials_of(const std::string& caller) {
  if (caller == "root") return {.uid = 0, .gid = 0};
  if (caller == "owner") return {.uid = kOwner, .gid = 7, .groups = {kGroup}};
  if (caller == "group") return {.uid = 5, .gid = kGroup};
  if (caller == "extra") return {.uid = 5, .gid = 7, .groups = {8, kGroup, 9}};
  return {.uid = 5, .gid = 7, .groups = {8}};
}

TEST(AccessTest, IsWhatPosixSays) {
  using enum NodeKind;
  const ExportPolicy writable{.uid = kOwner, .gid = kGroup, .read_only = false};
  const std::vector<AccessCase> cases{
      {"owner", kFile, 0640, "rw"},      {"group", kFile, 0640, "r"},
      {"extra", kFile, 0640, "r"},       {"other", kFile, 0640, ""},
      {"owner", kFile, 0444, "r"},       {"other", kFile, 0444, "r"},
      {"owner", kFile, 0077, ""},        {"group", kFile, 0707, ""},
      {"extra", kFile, 0707, ""},        {"other", kFile, 0770, ""},
      {"other", kFile, 0007, "rwx"},     {"group", kFile, 0070, "rwx"},
      {"owner", kFile, 0700, "rwx"},     {"root", kFile, 0000, "rw"},
      {"root", kFile, 0444, "rw"},       {"root", kFile, 0001, "rwx"},
      {"root", kFile, 0100, "rwx"},      {"root", kDirectory, 0000, "rwx"},
      {"other", kDirectory, 0555, "rx"}, {"other", kDirectory, 0711, "x"},
      {"owner", kDirectory, 0600, "rw"}, {"other", kSymlink, 0777, "rwx"},
      {"owner", kFile, 07000, ""},       {"group", kFile, 04755, "rx"},
  };
  for (const AccessCase& one : cases) {
    const NodeAttributes node = node_with(one.permissions, one.kind);
    for (const std::string letters : {"", "r", "w", "x", "rw", "rx", "wx", "rwx"}) {
      const bool is_allowed = letters.find_first_not_of(one.allowed) == std::string::npos;
      const Status status =
          check_access(node, writable, credentials_of(one.caller), wanted_access(letters));
      EXPECT_EQ(status.code(), is_allowed ? StatusCode::kOk : StatusCode::kPermissionDenied)
          << one.caller << " wants '" << letters << "' of " << std::oct << one.permissions;
    }
  }
}

TEST(AccessTest, NobodyWritesWhereNothingCanBeWritten) {
  const ExportPolicy policy{.uid = kOwner, .gid = kGroup};
  const NodeAttributes node = node_with(0666);
  for (const char* caller : {"root", "owner", "other"}) {
    EXPECT_EQ(check_access(node, policy, credentials_of(caller), wanted_access("rw")).code(),
              StatusCode::kUnsupported);
    EXPECT_TRUE(check_access(node, policy, credentials_of(caller), wanted_access("r")).ok());
  }
}

TEST(AccessTest, TheMaskTakesAway) {
  const ExportPolicy policy{.uid = kOwner, .gid = kGroup, .permissions_mask = 0750};
  const NodeAttributes node = node_with(04755);
  EXPECT_EQ(shown_permissions(node, policy), 0750);
  EXPECT_EQ(check_access(node, policy, credentials_of("other"), wanted_access("r")).code(),
            StatusCode::kPermissionDenied);
  EXPECT_TRUE(check_access(node, policy, credentials_of("extra"), wanted_access("rx")).ok());
  EXPECT_EQ(shown_permissions(node_with(0777, NodeKind::kSymlink), policy), 0777);
}

TEST(AccessTest, TheMessageSaysWhatIsMissing) {
  const Status status = check_access(node_with(0640), {.uid = kOwner, .gid = kGroup},
                                     credentials_of("other"), wanted_access("r"));
  EXPECT_EQ(status.message(),
            "user 5 may not read this: its permissions are 0640, of user 1000 and group 2000");
}

}  // namespace
}  // namespace millrace
