// Messages between loaders and a daemon: what was sent arrives, and nonsense is refused.

#include "frontends/loader/loader_message.h"

#include <sys/socket.h>

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/batch_memory.h"
#include "platform/passed_files.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class LoaderMessageTest : public ::testing::Test {
 protected:
  LoaderMessageTest() {
    std::array<int, 2> sockets{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()), 0);
    here = File::adopt(sockets[0], "here");
    there = File::adopt(sockets[1], "there");
  }
  File here;
  File there;
};

std::vector<SourceFacts> some_facts() {
  return {{.version = "a@v1",
           .content_digest = {std::byte(7)},
           .reader = "files",
           .samples = 5,
           .bytes = 50,
           .stretches = {{.samples = 2, .bytes = 20}, {.samples = 3, .bytes = 30}},
           .classes = {"cat", "dog"}}};
}

TEST_F(LoaderMessageTest, ArrivesWithTailAndFiles) {
  const auto memory = BatchMemory::make(10).value();
  ASSERT_TRUE(
      send_message(here.descriptor(), {{"op", "x"}}, as_bytes("tail"), {memory->descriptor()})
          .ok());
  const auto message = receive_message(there.descriptor());
  ASSERT_TRUE(message) << message.error().to_string();
  EXPECT_EQ(message->head["op"], "x");
  EXPECT_EQ(message->tail.text(), "tail");
  EXPECT_EQ(message->files.size(), 1u);
  here = File();
  EXPECT_TRUE(receive_message(there.descriptor())->is_end);
}

TEST_F(LoaderMessageTest, ALongTailGoesAsMemory) {
  const std::string tail(1'000'000, 't');
  ASSERT_TRUE(send_message(here.descriptor(), {{"op", "x"}}, as_bytes(tail)).ok());
  const auto message = receive_message(there.descriptor());
  ASSERT_TRUE(message) << message.error().to_string();
  EXPECT_EQ(message->tail.text(), tail);
  EXPECT_TRUE(message->files.empty());
}

TEST_F(LoaderMessageTest, NonsenseIsRefused) {
  const std::string cut_head = std::string("\xff\x00\x00\x00", 4) + "{}";
  const std::string no_object = std::string("\x02\x00\x00\x00", 4) + "[]";
  const std::string no_json = std::string("\x02\x00\x00\x00", 4) + "{x";
  const std::string no_tail = std::string("\x10\x00\x00\x00", 4) + "{\"tail_bytes\":9}";
  for (const std::string& text : {std::string("ab"), cut_head, no_object, no_json, no_tail}) {
    ASSERT_TRUE(send_files(here.descriptor(), text, {}).ok());
    const auto message = receive_message(there.descriptor());
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code(), StatusCode::kCorruption);
  }
}

TEST_F(LoaderMessageTest, LossesComeBackAsTheyWere) {
  const std::vector<SampleLoss> losses = {
      {.epoch = 3,
       .failure = {.place = {.position = 4, .source = 1, .sample = 9, .seed = 7},
                   .key = "cat/9",
                   .why = {StatusCode::kCorruption, "bad bytes"}},
       .action = FaultAction::kSubstitute}};
  const auto decoded = decode_losses(as_bytes(encode_losses(losses)));
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  ASSERT_EQ(decoded->size(), 1u);
  const SampleLoss& loss = decoded->front();
  EXPECT_EQ(loss.epoch, 3u);
  EXPECT_EQ(loss.failure.place, losses[0].failure.place);
  EXPECT_EQ(loss.failure.key, "cat/9");
  EXPECT_EQ(loss.failure.why.to_string(), losses[0].failure.why.to_string());
  EXPECT_EQ(loss.action, FaultAction::kSubstitute);
  EXPECT_TRUE(decode_losses(as_bytes("[]"))->empty());
  for (const char* text : {"", "{}", "[1]", R"([{"action": "explode"}])"}) {
    const auto nonsense = decode_losses(as_bytes(std::string(text)));
    ASSERT_FALSE(nonsense) << text;
    EXPECT_EQ(nonsense.error().code(), StatusCode::kCorruption);
  }
}

TEST_F(LoaderMessageTest, FactsComeBackAsTheyWere) {
  const std::vector<SourceFacts> facts = some_facts();
  const std::string encoded = encode_facts(facts);
  EXPECT_EQ(decode_facts(as_bytes(encoded)).value(), facts);
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(decode_facts(as_bytes(std::string_view(encoded).substr(0, size)))) << size;
  }
  std::vector<SourceFacts> wrong = facts;
  wrong[0].samples = 6;
  EXPECT_THAT(decode_facts(as_bytes(encode_facts(wrong))).error().message(),
              HasSubstr("do not add up"));
}

TEST_F(LoaderMessageTest, ChoicesPlacesAndFailuresComeBackAsTheyWere) {
  const auto choices =
      decode_choices(as_bytes(encode_choices({{.name = "a@v1", .content = Sha256Digest{}}})))
          .value();
  EXPECT_EQ(choices[0].name, "a@v1");
  EXPECT_EQ(choices[0].content, Sha256Digest{});
  EXPECT_FALSE(decode_choices(as_bytes("[]")));
  EXPECT_FALSE(decode_choices(as_bytes("[{}]")));

  const std::vector<PlacedSample> places = {{.position = 1, .source = 2, .sample = 3, .seed = 4}};
  EXPECT_EQ(decode_places(encode_places(places)).value(), places);
  EXPECT_FALSE(decode_places(encode_places(places).first(31)));
  const std::vector<PlannedSample> planned = {{.source = 1, .sample = 2, .first = 1, .last = 9}};
  EXPECT_EQ(decode_planned(encode_planned(planned)).value(), planned);
  EXPECT_FALSE(decode_planned(encode_planned(planned).first(31)));

  const std::vector<SampleFailure> failures = {
      {.place = places[0], .key = "k", .why = {StatusCode::kCorruption, "bad"}}};
  const auto decoded = decode_failures(as_bytes(encode_failures(failures))).value();
  EXPECT_EQ(decoded[0].place, places[0]);
  EXPECT_EQ(decoded[0].why.to_string(), "corruption: bad");
  EXPECT_FALSE(decode_failures(as_bytes("{}")));
  EXPECT_EQ(decode_status(LoaderJson{{"code", 99}}).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace millrace
