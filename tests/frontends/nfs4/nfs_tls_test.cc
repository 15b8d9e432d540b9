#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"
#include "tests/servers/test_tls.h"

namespace millrace {
namespace {

using millrace::testing::NfsAnswer;
using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using millrace::testing::NfsOpened;
using millrace::testing::TestTls;
using Session = millrace::testing::NfsSession;

constexpr const char* kTlsExports =
    "/open=/datasets/a/v1,squash=none;/tls=/datasets/a/v1,squash=none,sec=tls;"
    "/mtls=/datasets/a/v1,squash=none,sec=mtls";

class NfsTls : public ::testing::Test {
 protected:
  NfsTls() : world_(kTlsExports) {}

  void SetUp() override {
    large_ = publish_bytes(3 * kMiB + 17, 1);
    world_.tree.write("large", large_);
    world_.tree.write("small", "hello");
    ASSERT_TRUE(world_.publish("a@v1"));
    const TestTls certificates;
    files_ = {.certificate = write("server.pem", certificates.server().certificate_pem),
              .key = write("server.key", certificates.server().key_pem),
              .client_authority = write("ca.pem", certificates.ca_pem())};
    plain_client_ = {.authority = files_.client_authority};
    known_client_ = {.authority = files_.client_authority,
                     .certificate = write("client.pem", certificates.client().certificate_pem),
                     .key = write("client.key", certificates.client().key_pem)};
    world_.options.tls = files_;
    world_.serve();
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = world_.state.path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  NfsStatus lookup(Session& session, std::string_view name) {
    NfsCall call = session.call();
    call.put_root_fh().lookup(name);
    return session.run(call).status();
  }

  NfsWorld world_;
  TlsServerFiles files_;
  NfsConnection::TlsFiles plain_client_;
  NfsConnection::TlsFiles known_client_;
  std::string large_;
};

TEST_F(NfsTls, FilesAreReadAndDelegated) {
  NfsConnection connection(world_.port());
  ASSERT_TRUE(connection.start_tls(plain_client_));
  Session session(connection, {});
  EXPECT_EQ(session.read_file(session.lookup("/tls/large")), large_);
  // The second time it comes from a file of the cache.
  EXPECT_EQ(session.read_file(session.lookup("/tls/large")), large_);
  const NfsOpened opened = session.open(session.lookup("/tls"), {.name = "small"});
  EXPECT_EQ(opened.delegation, NfsDelegation::kRead) << "callbacks travel over TLS too";
}

TEST_F(NfsTls, AnExportIsServedOverWhatItAsksFor) {
  NfsConnection open(world_.port());
  NfsConnection encrypted(world_.port());
  NfsConnection known(world_.port());
  ASSERT_TRUE(encrypted.start_tls(plain_client_));
  ASSERT_TRUE(known.start_tls(known_client_));
  Session in_the_open(open, {.owner = "a"});
  Session over_tls(encrypted, {.owner = "b"});
  Session over_mutual_tls(known, {.owner = "c"});
  EXPECT_EQ(lookup(in_the_open, "open"), NfsStatus::kOk);
  EXPECT_EQ(lookup(in_the_open, "tls"), NfsStatus::kWrongSec);
  EXPECT_EQ(lookup(in_the_open, "mtls"), NfsStatus::kWrongSec);
  EXPECT_EQ(lookup(over_tls, "tls"), NfsStatus::kOk);
  EXPECT_EQ(lookup(over_tls, "mtls"), NfsStatus::kWrongSec);
  EXPECT_EQ(lookup(over_mutual_tls, "tls"), NfsStatus::kOk);
  EXPECT_EQ(lookup(over_mutual_tls, "mtls"), NfsStatus::kOk);
  // A handle is no way around it.
  const std::string handle = over_mutual_tls.lookup("/mtls/small");
  NfsCall call = over_tls.call();
  call.put_fh(handle);
  EXPECT_EQ(over_tls.run(call).status(), NfsStatus::kWrongSec);
}

TEST_F(NfsTls, ClientsWhoseCertificateNobodySignedAreRefused) {
  const TestTls strangers;
  NfsConnection::TlsFiles files = plain_client_;
  files.certificate = write("stranger.pem", strangers.client().certificate_pem);
  files.key = write("stranger.key", strangers.client().key_pem);
  NfsConnection connection(world_.port());
  try {
    ASSERT_TRUE(connection.start_tls(files));
    // TLS 1.3 tells a client of this with the first answer.
    connection.null();
    FAIL() << "it was let in";
  } catch (const std::runtime_error&) {
  }
}

TEST_F(NfsTls, OtherProtocolsAreRefused) {
  NfsConnection::TlsFiles files = plain_client_;
  files.protocol = "h2";
  NfsConnection connection(world_.port());
  EXPECT_THROW(connection.start_tls(files), std::runtime_error);
}

TEST_F(NfsTls, AProbeIsAnsweredAtOnceWhereThereIsNone) {
  world_.options.tls.reset();
  world_.serve();
  NfsConnection connection(world_.port());
  EXPECT_FALSE(connection.start_tls(plain_client_));
  // It may go on in the open.
  Session session(connection, {});
  EXPECT_EQ(lookup(session, "open"), NfsStatus::kOk);
}

TEST_F(NfsTls, TlsDoesNotBeginTwice) {
  NfsConnection connection(world_.port());
  ASSERT_TRUE(connection.start_tls(plain_client_));
  EXPECT_EQ(connection.null(7).verifier(), "");
  Session session(connection, {});
  EXPECT_EQ(lookup(session, "tls"), NfsStatus::kOk);
}

TEST_F(NfsTls, WhatIsNoHandshakeEndsTheConnection) {
  NfsConnection connection(world_.port());
  EXPECT_EQ(connection.null(7).verifier(), "STARTTLS");
  connection.send_raw(as_bytes(std::string(1000, 'x')));
  EXPECT_TRUE(connection.is_ended());
}

// Nobody in the middle can put a call in front of what a client protects.
TEST_F(NfsTls, CallsInTheOpenBehindAProbeAreNotTaken) {
  NfsConnection connection(world_.port());
  XdrWriter both;
  for (const std::uint32_t flavour : {7U, 0U}) {
    both.u32(kRpcLastFragment | 40);
    for (const std::uint32_t word :
         {1U, 0U, 2U, kNfsProgram, kNfsVersion, kNfsProcedureNull, flavour, 0U, 0U, 0U})
      both.u32(word);
  }
  connection.send_raw(both.written());
  EXPECT_EQ(connection.receive().verifier(), "STARTTLS");
  EXPECT_TRUE(connection.is_ended());
}

TEST_F(NfsTls, AHandshakeThatDoesNotGoOnIsCutOff) {
  world_.options.connection.record_timeout = std::chrono::milliseconds(50);
  world_.serve();
  NfsConnection connection(world_.port());
  EXPECT_EQ(connection.null(7).verifier(), "STARTTLS");
  connection.send_raw(as_bytes(std::string_view("\x16\x03\x01", 3)));
  EXPECT_TRUE(connection.is_ended());
}

TEST_F(NfsTls, FilesThatAreNoneAreNamed) {
  const auto refusal = [&](TlsServerFiles files) {
    const auto opened = TlsServer::open(files, kRpcTlsProtocol);
    EXPECT_EQ(opened.error(), StatusCode::kInvalidArgument);
    return opened.error().message();
  };
  const std::string none = write("none.pem", "nothing");
  const auto names = [&](const std::string& message) {
    return message.find("none.pem") != std::string::npos;
  };
  EXPECT_TRUE(names(refusal({.certificate = none, .key = files_.key})));
  EXPECT_TRUE(names(refusal({.certificate = files_.certificate, .key = none})));
  EXPECT_TRUE(names(
      refusal({.certificate = files_.certificate, .key = files_.key, .client_authority = none})));
  const std::string absent = refusal({.certificate = none + "absent", .key = files_.key});
  EXPECT_TRUE(names(absent) && absent.ends_with("No such file or directory")) << absent;
  // A key of somebody else.
  EXPECT_EQ(TlsServer::open({.certificate = files_.certificate, .key = known_client_.key},
                            kRpcTlsProtocol)
                .error(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
