#include "objectstore/s3/s3_object_store.h"

#include <chrono>
#include <filesystem>
#include <latch>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "tests/servers/s3_test_store.h"
#include "tests/servers/strict_s3_server.h"
#include "tests/servers/test_tls.h"

// What the field taught, each against a server that misbehaves in just that way.
namespace millrace::s3 {
namespace {

using millrace::testing::S3Fault;
using millrace::testing::S3ListQuirk;
using millrace::testing::S3RequestRecord;
using millrace::testing::StrictS3Options;
using millrace::testing::StrictS3Quirks;
using millrace::testing::StrictS3Server;
using std::chrono::seconds;

constexpr const char* kBucket = "test-bucket";

std::string pattern(std::size_t size, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string text(size, 0);
  for (char& c : text)
    c = static_cast<char>(random());
  return text;
}

RequestContext within(Duration time = seconds(30)) { return {system_clock().now() + time, "test"}; }

// Quick retries, so that a test of many does not sleep for long.
RetryPolicy quick() {
  RetryPolicy policy;
  policy.backoff_base = std::chrono::milliseconds(1);
  policy.backoff_max = std::chrono::milliseconds(5);
  policy.pause_base = std::chrono::milliseconds(2);
  policy.pause_max = std::chrono::milliseconds(20);
  return policy;
}

S3Options small_parts() {
  S3Options options;
  options.part_bytes = 64 * kKiB;
  options.copy_bytes_max = 128 * kKiB;
  options.copy_part_bytes = 64 * kKiB;
  return options;
}

class S3Store : public ::testing::Test {
 protected:
  S3Store()
      : server_(StrictS3Options{.part_bytes_min = 64 * 1024}),
        store_(target_of(server_), small_parts(), quick()) {}

  ObjectStore& raw() { return store_.raw(); }
  ObjectStore& retrying() { return store_.retrying(); }
  void quirk(const std::function<void(StrictS3Quirks&)>& edit) { server_.edit_quirks(edit); }

  Result<std::string> read(ObjectStore& store, const std::string& key,
                           std::optional<ByteRange> range = {},
                           std::optional<ObjectIdentity> identity = {}) {
    GetRequest request;
    request.key = ObjectKey(key);
    request.range = range;
    request.identity = std::move(identity);
    MR_ASSIGN_OR_RETURN(const GetResult result, store.get(within(), std::move(request)));
    return std::string(result.data.text());
  }
  Result<ObjectInfo> upload(ObjectStore& store, const std::string& key, const std::string& bytes,
                            PutOptions options = {}) {
    MR_ASSIGN_OR_RETURN(auto upload, store.start_upload(within(), ObjectKey(key), options));
    MR_RETURN_IF_ERROR(upload->write(within(), Slice::copy_of(bytes)));
    return upload->finish(within());
  }
  std::size_t count(const std::string& method) {
    return server_.count([&](const S3RequestRecord& r) { return r.method == method; });
  }

  StrictS3Server server_;
  S3TestStore store_;
};

TEST_F(S3Store, AReadIsOneRequestForExactlyTheRange) {
  server_.put_object(kBucket, "k", pattern(1000));
  EXPECT_EQ(read(raw(), "k", ByteRange{10, 20}), pattern(1000).substr(10, 20));
  ASSERT_EQ(server_.requests().size(), 1U);
  EXPECT_EQ(server_.requests()[0].range, "bytes=10-29");
}

TEST_F(S3Store, RefusesAWrongContentRange) {
  server_.put_object(kBucket, "k", pattern(1000));
  quirk([](auto& q) { q.wrong_content_range = 1; });
  EXPECT_EQ(read(raw(), "k", ByteRange{10, 20}).error().code(), StatusCode::kCorruption);
}

TEST_F(S3Store, RefusesAStoreThatIgnoresRanges) {
  server_.put_object(kBucket, "k", pattern(1000));
  quirk([](auto& q) { q.ranged_get_answers_200_whole = 1; });
  EXPECT_EQ(read(raw(), "k", ByteRange{10, 20}).error().code(), StatusCode::kInternal);
}

TEST_F(S3Store, RefusesShortAndLongBodies) {
  server_.put_object(kBucket, "k", pattern(1000));
  quirk([](auto& q) { q.short_body = 1; });
  EXPECT_EQ(read(raw(), "k", ByteRange{0, 500}).error().code(), StatusCode::kUnavailable);
  quirk([](auto& q) { q.body_exceeds_range = 1; });
  EXPECT_EQ(read(raw(), "k", ByteRange{0, 500}).error().code(), StatusCode::kInternal);
  // Bytes behind the declared end belong to nobody: neither to this answer nor to the next.
  quirk([](auto& q) { q.long_body = 1; });
  const auto long_body = read(raw(), "k", ByteRange{0, 500});
  if (long_body) {
    EXPECT_EQ(*long_body, pattern(1000).substr(0, 500));
  }
  EXPECT_EQ(read(raw(), "k", ByteRange{500, 500}), pattern(1000).substr(500));
}

TEST_F(S3Store, NeverMixesTwoVersionsOfAnObject) {
  server_.put_object(kBucket, "k", pattern(1000));
  const auto info = raw().head(within(), ObjectKey("k"));
  ASSERT_TRUE(info.has_value());
  for (const bool honours_if_match : {true, false}) {
    server_.put_object(kBucket, "k", pattern(1000));
    quirk([&](auto& q) {
      q.ignore_if_match_on_get = !honours_if_match;
      q.etag_changes_after_gets = 1;
    });
    EXPECT_TRUE(read(raw(), "k", ByteRange{0, 500}, info->identity).has_value());
    EXPECT_EQ(read(raw(), "k", ByteRange{500, 500}, info->identity).error().code(),
              StatusCode::kPreconditionFailed);
  }
}

TEST_F(S3Store, RefusesAnAnswerWithoutAnEtag) {
  server_.put_object(kBucket, "k", pattern(100));
  quirk([](auto& q) { q.missing_etag = 1; });
  EXPECT_EQ(read(raw(), "k", ByteRange{0, 50}).error().code(), StatusCode::kInternal);
}

TEST_F(S3Store, FindsFlippedBitsInAWholeReadAndReadsAgain) {
  ASSERT_TRUE(raw().put(within(), ObjectKey("k"), Slice::copy_of(pattern(5000)), {}).has_value());
  for (const bool store_checks : {true, false}) {
    quirk([&](auto& q) {
      q.no_checksum_support = !store_checks;
      q.flip_bit_in_get_body = 1;
    });
    EXPECT_EQ(read(raw(), "k").error().code(), StatusCode::kCorruption);
    quirk([](auto& q) { q.flip_bit_in_get_body = 1; });
    EXPECT_EQ(read(retrying(), "k"), pattern(5000));
  }
}

TEST_F(S3Store, RefusesAnObjectLargerThanTheCallerPlannedFor) {
  server_.put_object(kBucket, "k", pattern(5000));
  GetRequest request;
  request.key = ObjectKey("k");
  request.bytes_max = 4999;
  EXPECT_EQ(raw().get(within(), request).error().code(), StatusCode::kInvalidArgument);
  request.bytes_max = 5000;
  EXPECT_TRUE(raw().get(within(), request).has_value());
}

TEST_F(S3Store, TakesA200WithAnErrorInsideForTheFailureThatItIs) {
  quirk([](auto& q) { q.complete_answers_error_in_200 = 1; });
  auto failing = raw().start_upload(within(), ObjectKey("m"), {});
  ASSERT_TRUE(failing.has_value());
  ASSERT_TRUE((*failing)->write(within(), Slice::copy_of(pattern(200'000))).ok());
  // The upload retries its own completion, so the lie costs a request and nothing else.
  EXPECT_TRUE((*failing)->finish(within()).has_value());
  EXPECT_EQ(server_.get_object(kBucket, "m"), pattern(200'000));

  server_.put_object(kBucket, "k", pattern(100));
  quirk([](auto& q) { q.copy_answers_error_in_200 = 1; });
  ObjectInfo source;
  source.key = ObjectKey("k");
  EXPECT_EQ(raw().copy(within(), source, ObjectKey("c")).error().code(), StatusCode::kUnavailable);
  EXPECT_EQ(server_.get_object(kBucket, "c"), std::nullopt);
}

TEST_F(S3Store, ALostAnswerToACompletionIsFoundOutByTheToken) {
  quirk([](auto& q) { q.lose_complete_answer = 1; });
  const auto info = upload(raw(), "m", pattern(300'000));
  ASSERT_TRUE(info.has_value()) << info.error().to_string();
  EXPECT_EQ(info->size, 300'000U);
  EXPECT_EQ(info->identity.value(), server_.get_etag(kBucket, "m"));
  EXPECT_EQ(server_.open_upload_count(kBucket), 0U);
}

TEST_F(S3Store, ALostAnswerUnderAConditionIsStillOurs) {
  PutOptions create;
  create.condition = WriteCondition::if_absent();
  quirk([](auto& q) { q.lose_complete_answer = 1; });
  EXPECT_TRUE(upload(raw(), "m", pattern(300'000), create).has_value());
  quirk([](auto& q) { q.lose_put_answer = 1; });
  EXPECT_TRUE(upload(raw(), "small", pattern(100), create).has_value());
  quirk([](auto& q) { q.lose_put_answer = 1; });
  const auto put = retrying().put(within(), ObjectKey("p"), Slice::copy_of("x"), create);
  EXPECT_TRUE(put.has_value()) << put.error().to_string();
  for (const char* key : {"m", "small", "p"}) {
    EXPECT_EQ(upload(raw(), key, "other", create).error().code(), StatusCode::kPreconditionFailed);
  }
}

TEST_F(S3Store, SeesAnExistingObjectEvenWhereCompletionIgnoresConditions) {
  server_.put_object(kBucket, "m", "theirs");
  quirk([](auto& q) { q.ignore_conditions_on_complete = true; });
  PutOptions create;
  create.condition = WriteCondition::if_absent();
  EXPECT_EQ(upload(raw(), "m", pattern(300'000), create).error().code(),
            StatusCode::kPreconditionFailed);
  EXPECT_EQ(server_.get_object(kBucket, "m"), "theirs");
  EXPECT_EQ(server_.open_upload_count(kBucket), 0U);
}

TEST_F(S3Store, AbandonedAndFailedUploadsLeaveNothingBehind) {
  {
    auto upload = raw().start_upload(within(), ObjectKey("m"), {});
    ASSERT_TRUE((*upload)->write(within(), Slice::copy_of(pattern(300'000))).ok());
  }
  EXPECT_EQ(server_.open_upload_count(kBucket), 0U);
  S3Fault denied;
  denied.matches = [](const S3RequestRecord& r) { return r.has_query("partNumber"); };
  denied.times = millrace::testing::kAlways;
  denied.status = 403;
  denied.code = "AccessDenied";
  server_.fail_next(denied);
  EXPECT_EQ(upload(raw(), "m", pattern(300'000)).error().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(server_.open_upload_count(kBucket), 0U);
  EXPECT_EQ(server_.object_count(kBucket), 0U);
}

TEST_F(S3Store, HoldsTheFirstPartBackUnlessMoreIsAnnounced) {
  // The smallest part of an upload whose size is announced.
  const std::string part = pattern(kMiB);
  for (const std::uint64_t announced : {part.size(), part.size() + 1}) {
    auto started = raw().start_upload(within(), ObjectKey("m"), {.size_hint = announced});
    ASSERT_TRUE(started.has_value());
    ASSERT_TRUE((*started)->write(within(), Slice::copy_of(part)).ok());
    ASSERT_TRUE((*started)->finish(within()).has_value());
    EXPECT_EQ(server_.get_object(kBucket, "m"), part);
    EXPECT_EQ(server_.count([](const auto& r) { return r.has_query("partNumber"); }),
              announced > part.size() ? 1U : 0U);
  }
}

TEST_F(S3Store, PartsAreRetriedOneByOne) {
  S3Fault cut;
  cut.matches = [](const S3RequestRecord& r) { return r.has_query("partNumber"); };
  cut.times = 3;
  cut.status = 500;
  cut.code = "InternalError";
  server_.fail_next(cut);
  ASSERT_TRUE(upload(raw(), "m", pattern(64 * kKiB * 5 + 1)).has_value());
  EXPECT_EQ(server_.get_object(kBucket, "m"), pattern(64 * kKiB * 5 + 1));
  EXPECT_EQ(server_.count([](const auto& r) { return r.has_query("partNumber"); }), 6U + 3U);
}

TEST_F(S3Store, ObeysConditionsAndNamesAnAbsentObjectAsOne) {
  PutOptions replace;
  replace.condition = WriteCondition::if_identity(ObjectIdentity("\"gone\""));
  EXPECT_EQ(raw().put(within(), ObjectKey("k"), Slice::copy_of("x"), replace).error().code(),
            StatusCode::kPreconditionFailed);
  quirk([](auto& q) { q.conditional_conflicts = 1; });
  PutOptions create;
  create.condition = WriteCondition::if_absent();
  EXPECT_EQ(raw().put(within(), ObjectKey("k"), Slice::copy_of("x"), create).error().code(),
            StatusCode::kConflict);
}

TEST_F(S3Store, SignsWithTheServersClockOnceItKnowsIt) {
  server_.put_object(kBucket, "k", "x");
  for (const seconds offset : {seconds(3600), seconds(-86400)}) {
    quirk([&](auto& q) { q.clock_offset = offset; });
    EXPECT_EQ(read(raw(), "k"), "x");
    EXPECT_TRUE(raw().head(within(), ObjectKey("k")).has_value());
    EXPECT_NEAR(static_cast<double>(store_.raw().clock_skew().count()) / 1e9,
                static_cast<double>(offset.count()), 5);
  }
  server_.clear_requests();
  EXPECT_EQ(read(raw(), "k"), "x");
  EXPECT_EQ(server_.requests().size(), 1U) << "the correction is remembered";
}

TEST_F(S3Store, FollowsTheBucketToItsRegion) {
  server_.put_object(kBucket, "k", "x");
  quirk([](auto& q) { q.redirect_to_region = "us-east-1"; });
  S3Options options;
  options.region = "eu-west-1";
  S3TestStore elsewhere(target_of(server_), options, quick());
  EXPECT_EQ(read(elsewhere.raw(), "k"), "x");
}

TEST_F(S3Store, ListsNothingItCannotTrust) {
  for (int i = 0; i < 5; ++i)
    server_.put_object(kBucket, "k" + std::to_string(i), "x");
  for (const auto kind :
       {S3ListQuirk::kBadXml, S3ListQuirk::kTruncatedXml, S3ListQuirk::kHugeAnswer,
        S3ListQuirk::kOutOfOrder, S3ListQuirk::kDuplicateKeys}) {
    quirk([&](auto& q) { q.list_quirk = kind; });
    EXPECT_FALSE(raw().list(within(), {}).has_value()) << static_cast<int>(kind);
  }
  quirk([](auto& q) { q.list_quirk = S3ListQuirk::kRepeatedToken; });
  ListRequest request;
  request.entries_max = 2;
  auto page = raw().list(within(), request);
  for (int pages = 0; page && pages < 10; ++pages) {
    request.continuation = page->continuation;
    page = raw().list(within(), request);
  }
  EXPECT_FALSE(page.has_value()) << "a token that leads back to its own page must end the listing";
}

TEST_F(S3Store, RemovesByTheThousandAndNamesWhatStays) {
  std::vector<ObjectKey> keys;
  for (int i = 0; i < 2500; ++i) {
    keys.emplace_back("k" + std::to_string(i));
    server_.put_object(kBucket, keys.back().value(), "x");
  }
  EXPECT_TRUE(raw().remove(within(), keys).ok());
  EXPECT_EQ(server_.object_count(kBucket), 0U);
  EXPECT_EQ(count("POST"), 3U);
  EXPECT_EQ(count("DELETE"), 0U);
  server_.put_object(kBucket, "k7", "x");
  quirk([](auto& q) { q.undeletable_keys = {"k7"}; });
  const Status status = raw().remove(within(), keys);
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("k7"), std::string::npos) << status.message();
}

TEST_F(S3Store, CopiesLargeObjectsByPartsWithTheirMetadata) {
  PutOptions options;
  options.metadata = {{"colour", "blue"}};
  const std::string bytes = pattern(300'000);
  const auto source = upload(raw(), "m", bytes, options);
  ASSERT_TRUE(source.has_value());
  const auto copy = raw().copy(within(), *source, ObjectKey("c"));
  ASSERT_TRUE(copy.has_value()) << copy.error().to_string();
  EXPECT_EQ(server_.get_object(kBucket, "c"), bytes);
  EXPECT_EQ(copy->metadata, options.metadata);
  EXPECT_GT(server_.count([](const auto& r) { return r.headers.has("x-amz-copy-source-range"); }),
            1U);
}

TEST_F(S3Store, ACopyOfAnotherVersionIsAFailure) {
  server_.put_object(kBucket, "k", "old");
  auto source = raw().head(within(), ObjectKey("k"));
  ASSERT_TRUE(source.has_value());
  server_.put_object(kBucket, "k", "new");
  for (const bool ignored : {false, true}) {
    quirk([&](auto& q) { q.ignore_copy_source_conditions = ignored; });
    EXPECT_EQ(raw().copy(within(), *source, ObjectKey("c")).error().code(),
              StatusCode::kPreconditionFailed);
  }
}

TEST_F(S3Store, ReplacesCredentialsThatTheStoreCallsExpired) {
  server_.put_object(kBucket, "k", "x");
  quirk([](auto& q) { q.credentials_expire_at = std::chrono::system_clock::now() - seconds(10); });
  // Static keys cannot be renewed: one retry with what the provider gives, then the sentence.
  const auto failed = read(raw(), "k");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(server_.requests().size(), 2U);
}

TEST_F(S3Store, SaysWhatIsWrongWithKeysAndBuckets) {
  S3TestTarget target = target_of(server_);
  target.secret_key = "wrong";
  S3TestStore wrong_secret(target);
  const auto secret = wrong_secret.raw().list(within(), {});
  ASSERT_FALSE(secret.has_value());
  EXPECT_EQ(secret.error().code(), StatusCode::kUnauthenticated);
  EXPECT_NE(secret.error().message().find("AWS_SECRET_ACCESS_KEY"), std::string::npos);
  target = target_of(server_);
  target.bucket = "no-such-bucket";
  S3TestStore no_bucket(target);
  const auto bucket = no_bucket.raw().list(within(), {});
  ASSERT_FALSE(bucket.has_value());
  EXPECT_EQ(bucket.error().code(), StatusCode::kNotFound);
  EXPECT_NE(bucket.error().message().find("no-such-bucket"), std::string::npos);
}

TEST_F(S3Store, SlowDownWithRetryAfterReachesTheCaller) {
  S3Fault slow;
  slow.retry_after_s = 7;
  server_.fail_next(slow);
  const auto failed = raw().head(within(), ObjectKey("k"));
  // A HEAD has no body to say "SlowDown" in; the status and header must do.
  ASSERT_FALSE(failed.has_value());
  EXPECT_TRUE(is_transient(failed.error().code()));
  EXPECT_EQ(failed.error().retry_after(), seconds(7));
  server_.fail_next(slow);
  EXPECT_EQ(read(raw(), "k").error().code(), StatusCode::kThrottled);
}

TEST(S3Addressing, WorksByHostAndOverTls) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("mr-s3tls-" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  // OpenSSL refuses the wildcard "*.localhost", so the bucket's host is named.
  const millrace::testing::TestTls tls({.names = {"DNS:localhost", "DNS:test-bucket.localhost"}});
  tls.write_ca_bundle(directory / "ca.pem");
  StrictS3Options server_options;
  server_options.tls = tls.server();
  StrictS3Server server(server_options);
  for (const Addressing addressing : {Addressing::kPath, Addressing::kVirtualHost}) {
    S3TestTarget target = target_of(server);
    target.endpoint = "https://localhost:" + std::to_string(server.port());
    S3Options options;
    options.addressing = addressing;
    options.ca_bundle = directory / "ca.pem";
    S3TestStore store(target, options);
    const auto put = store.raw().put(within(), ObjectKey("a b/c"), Slice::copy_of("x"), {});
    EXPECT_TRUE(put.has_value()) << put.error().to_string();
    GetRequest request;
    request.key = ObjectKey("a b/c");
    EXPECT_EQ(store.raw().get(within(), request)->data.text(), "x");
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace millrace::s3
