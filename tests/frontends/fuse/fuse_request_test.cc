#include "frontends/fuse/fuse_request.h"

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "frontends/fuse/fuse_callers.h"
#include "frontends/fuse/fuse_errno.h"
#include "frontends/fuse/fuse_init.h"
#include "frontends/fuse/mount_facts.h"

namespace millrace {
namespace {

std::string request_bytes(std::uint32_t opcode, std::string_view body) {
  fuse_in_header header{};
  header.opcode = opcode;
  header.len = static_cast<std::uint32_t>(sizeof(header) + body.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes.append(body);
}

ByteView view_of(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

TEST(FuseRequest, NamesEndBeforeTheRequestDoes) {
  const std::string good = request_bytes(FUSE_LOOKUP, std::string_view("name\0", 5));
  EXPECT_EQ(FuseRequest::parse(view_of(good)).value().name().value(), "name");
  const std::string endless = request_bytes(FUSE_LOOKUP, "name");
  EXPECT_EQ(FuseRequest::parse(view_of(endless)).value().name().error(), StatusCode::kCorruption);
  EXPECT_EQ(FuseRequest::parse(view_of(good)).value().name(6).error(), StatusCode::kCorruption);
}

TEST(FuseRequest, WhatIsTooShortIsRefused) {
  const std::string good = request_bytes(FUSE_READ, std::string(sizeof(fuse_read_in), '\0'));
  EXPECT_TRUE(FuseRequest::parse(view_of(good)).value().body<fuse_read_in>());
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(FuseRequest::parse(view_of(good).first(length))) << length;
  const std::string cut = request_bytes(FUSE_READ, std::string(sizeof(fuse_read_in) - 1, '\0'));
  EXPECT_EQ(FuseRequest::parse(view_of(cut)).value().body<fuse_read_in>().error(),
            StatusCode::kCorruption);
}

std::string init_bytes(std::uint32_t minor, std::uint64_t features) {
  fuse_init_in in{};
  in.major = FUSE_KERNEL_VERSION;
  in.minor = minor;
  in.flags = static_cast<std::uint32_t>(features);
  in.flags2 = static_cast<std::uint32_t>(features >> 32);
  return request_bytes(FUSE_INIT, {reinterpret_cast<const char*>(&in), sizeof(in)});
}

TEST(FuseInit, TakesOnlyWhatTheKernelOffers) {
  const std::string old = init_bytes(31, FUSE_ASYNC_READ | FUSE_MAX_PAGES);
  const auto answer = fuse_init_answer(FuseRequest::parse(view_of(old)).value(), {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->minor, 31U);
  EXPECT_EQ(answer->flags, FUSE_ASYNC_READ | FUSE_MAX_PAGES);
  EXPECT_EQ(answer->flags2, 0U);
  EXPECT_EQ(answer->max_stack_depth, 0U);
}

TEST(FuseInit, FilesAreHandedOverOnlyWhereOpensAreTold) {
  const std::string all = init_bytes(45, ~std::uint64_t{0});
  const FuseRequest request = FuseRequest::parse(view_of(all)).value();
  const auto passthrough = fuse_init_answer(request, {.opening = FuseOpening::kPassthrough});
  EXPECT_EQ(passthrough->max_stack_depth, 1U);
  EXPECT_EQ(passthrough->flags & FUSE_WRITEBACK_CACHE, 0U);
  const auto stateless = fuse_init_answer(request, {.opening = FuseOpening::kStateless});
  EXPECT_EQ(stateless->max_stack_depth, 0U);
  EXPECT_EQ(stateless->flags2 & (fuse_kernel::kPassthrough >> 32), 0U);
}

std::uint64_t agreed_features(const FuseView& view) {
  const std::string all = init_bytes(45, ~std::uint64_t{0});
  const auto answer = fuse_init_answer(FuseRequest::parse(view_of(all)).value(), view);
  return answer->flags | (std::uint64_t{answer->flags2} << 32);
}

TEST(FuseInit, AsksForWhatMakesReadsAndListingsCheap) {
  const std::string all = init_bytes(45, ~std::uint64_t{0});
  const auto answer = fuse_init_answer(FuseRequest::parse(view_of(all)).value(), {});
  constexpr std::uint32_t kMegabyte = 1024 * 1024;
  EXPECT_EQ(answer->max_pages * 4096U, kMegabyte);
  EXPECT_EQ(answer->max_readahead, kMegabyte);

  const std::uint64_t always = FUSE_ASYNC_READ | FUSE_EXPORT_SUPPORT | FUSE_DO_READDIRPLUS |
                               FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_INIT_EXT |
                               FUSE_NO_OPENDIR_SUPPORT | FUSE_NO_OPEN_SUPPORT |
                               fuse_kernel::kHasResend;
  // All of what it does without has a price: FUSE_READDIRPLUS_AUTO that files are looked up one by
  // one, FUSE_ASYNC_DIO that readers cannot be killed, FUSE_AUTO_INVAL_DATA a GETATTR for a read.
  EXPECT_EQ(agreed_features({.opening = FuseOpening::kStateless}), always);
  EXPECT_EQ(agreed_features({.opening = FuseOpening::kPassthrough}),
            always | fuse_kernel::kPassthrough);
  EXPECT_EQ(agreed_features({.is_immutable = true, .opening = FuseOpening::kStateless}),
            always | FUSE_CACHE_SYMLINKS)
      << "links of a version never move, and aliases do";
}

TEST(FuseInit, RefusesAKernelThatIsTooOld) {
  const std::string old = init_bytes(27, 0);
  const auto answer = fuse_init_answer(FuseRequest::parse(view_of(old)).value(), {});
  EXPECT_EQ(answer.error(), StatusCode::kUnsupported);
}

TEST(FuseErrno, TheSameFailureHasANumberForEachAttempt) {
  const auto number = [](StatusCode code, FuseAttempt attempt, NodePlace place) {
    return fuse_errno(Status(code, "because"), attempt, place);
  };
  EXPECT_EQ(number(StatusCode::kNotFound, FuseAttempt::kName, NodePlace::kVersion), ENOENT);
  EXPECT_EQ(number(StatusCode::kNotFound, FuseAttempt::kNode, NodePlace::kVersion), ESTALE);
  EXPECT_EQ(number(StatusCode::kPreconditionFailed, FuseAttempt::kData, NodePlace::kVersion), EIO);
  EXPECT_EQ(number(StatusCode::kPreconditionFailed, FuseAttempt::kData, NodePlace::kBuckets),
            ESTALE);
  EXPECT_EQ(number(StatusCode::kCancelled, FuseAttempt::kData, NodePlace::kVersion), EINTR);
  EXPECT_EQ(number(StatusCode::kUnavailable, FuseAttempt::kName, NodePlace::kDatasets), EIO);
  EXPECT_EQ(number(StatusCode::kResourceExhausted, FuseAttempt::kOpen, NodePlace::kVersion),
            ENFILE);
  for (const FuseAttempt attempt : {FuseAttempt::kName, FuseAttempt::kNode, FuseAttempt::kData}) {
    EXPECT_EQ(number(StatusCode::kResourceExhausted, attempt, NodePlace::kVersion), EIO)
        << "a disk that is full";
  }
  EXPECT_EQ(number(StatusCode::kPermissionDenied, FuseAttempt::kNode, NodePlace::kBuckets), EACCES);
}

TEST(FuseCallers, ARunIsNamedByTheEnvironmentElseByTheJobsControlGroup) {
  const std::string with_run("A=1\0MILLRACE_RUN=exp42\0B=2\0", 27);
  EXPECT_EQ(run_of_process(with_run, "0::/batch/7\n"), "exp42");
  EXPECT_EQ(run_of_process("A=1", "1:cpu:/x\n0::/batch/7\n"), "cgroup:/batch/7");
  EXPECT_EQ(run_of_process("", "0::/user.slice/user-0.slice\n"), "");
  EXPECT_EQ(run_of_process("", "0::/\n"), "");
  EXPECT_EQ(run_of_process("", ""), "");
}

TEST(FuseCallers, AllOfAJobIsOneRun) {
  const std::string pod = "8f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b";
  const std::string slurm = "/system.slice/slurmstepd.scope/job_7";
  const std::string kubernetes =
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8f1c2a34_5b6d.slice";
  const std::string docker = "/system.slice/docker-0123456789abcdef.scope";
  const std::string podman =
      "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-1.scope";
  for (const auto& [group, run] : std::vector<std::pair<std::string, std::string>>{
           {slurm + "/step_0/user/task_3", slurm},
           {slurm + "/step_batch/user/task_0", slurm},
           {kubernetes + "/cri-containerd-01.scope", kubernetes},
           {"/kubepods/burstable/pod" + pod + "/01ab", "/kubepods/burstable/pod" + pod},
           {docker, docker},
           {podman + "/container", podman},
           {"/docker/0123", "/docker/0123"}}) {
    EXPECT_EQ(run_of_process("", "0::" + group + "\n"), "cgroup:" + run);
  }
  for (const std::string group : {"/system.slice/slurmd.service", "/system.slice/cron.service",
                                  "/user.slice/user-0.slice/session-1.scope", "/init.scope"}) {
    EXPECT_EQ(run_of_process("", "0::" + group + "\n"), "");
  }
}

TEST(MountFacts, ComeBackAsTheyWere) {
  const MountFacts facts{.path = "/datasets/a/v1",
                         .directory = "/mnt/a",
                         .allow_other = true,
                         .view = {.root = NodeNumber(77),
                                  .is_immutable = true,
                                  .opening = FuseOpening::kStateless,
                                  .uid = 5,
                                  .gid = 6}};
  const MountFacts back = parse_mount_facts(mount_facts_text(facts)).value();
  EXPECT_EQ(back.path, facts.path);
  EXPECT_EQ(back.directory, facts.directory);
  EXPECT_TRUE(back.allow_other);
  EXPECT_EQ(back.view.root, facts.view.root);
  EXPECT_TRUE(back.view.is_immutable);
  EXPECT_EQ(back.view.opening, FuseOpening::kStateless);
  EXPECT_EQ(back.view.uid, 5U);
  EXPECT_EQ(back.view.gid, 6U);
}

TEST(MountFacts, OthersAreRefused) {
  EXPECT_EQ(parse_mount_facts("nonsense").error(), StatusCode::kCorruption);
  EXPECT_EQ(parse_mount_facts("{}").error(), StatusCode::kCorruption);
  EXPECT_EQ(parse_mount_facts(R"({"version":1})").error(), StatusCode::kUnsupported);
  EXPECT_EQ(parse_mount_facts(R"({"version":2,"path":"/"})").error(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace millrace
