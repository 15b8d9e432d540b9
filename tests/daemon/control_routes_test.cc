#include "daemon/control_routes.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/manual_executor.h"

namespace millrace {
namespace {

class ControlRoutesTest : public ::testing::Test {
 protected:
  HttpAnswer ask(HttpMethod method, std::string path, std::string query = "",
                 std::string body = "") {
    Waiter<HttpAnswer> waiter;
    HttpCall call{.request = {.method = method,
                              .path = std::move(path),
                              .query = std::move(query),
                              .headers = {},
                              .body = std::move(body)},
                  .context = RequestContext(TimePoint::max(), "uid:7")};
    routes_.handle(std::move(call), waiter.completion());
    Result<HttpAnswer> answer = waiter.wait();
    if (answer) return *std::move(answer);
    return json_error_answer({http_status_of(answer.error().code()), answer.error()});
  }
  static std::string text(const HttpAnswer& answer) {
    return std::string(std::get<Slice>(answer.body).text());
  }

  ManualClock clock_;
  ManualExecutor work_;
  ControlRoutes routes_{clock_, work_, std::chrono::seconds(10)};
};

TEST_F(ControlRoutesTest, HandsOverWhatThePathTheQueryAndTheBodySay) {
  routes_.add(HttpMethod::kPut, "/v1/things/{name}/parts/{part}?q&none&flag",
              [this](const ControlRequest& request) -> Result<Json> {
                EXPECT_EQ(request.context.deadline(), clock_.now() + std::chrono::seconds(10));
                return Json{{"name", request.parameter("name")},
                            {"part", request.parameter("part")},
                            {"q", request.queried("q")},
                            {"none", request.queried("none")},
                            {"body", request.body},
                            {"who", request.context.principal()}};
              });
  const HttpAnswer answer =
      ask(HttpMethod::kPut, "/v1/things/a%2F%0Ab/parts/%41", "q=x%20y&flag", R"({"k": 1})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(text(answer),
            R"({"name":"a/\nb","part":"A","q":"x y","none":"","body":{"k":1},"who":"uid:7"})"
            "\n");
}

TEST_F(ControlRoutesTest, TellsAWrongPathFromAWrongMethod) {
  const auto nothing = [](const ControlRequest&) -> Result<Json> { return Json(nullptr); };
  routes_.add(HttpMethod::kGet, "/v1/a", nothing);
  routes_.add(HttpMethod::kDelete, "/v1/a", nothing);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/a").status, 204);
  EXPECT_EQ(ask(HttpMethod::kHead, "/v1/a").status, 204);
  for (const std::string path : {"/v1", "/v1/a/", "/v1/a/b", "/", "/v1//a"})
    EXPECT_EQ(ask(HttpMethod::kGet, path).status, 404) << path;
  const HttpAnswer wrong = ask(HttpMethod::kPost, "/v1/a");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.back().value, "GET, DELETE");
}

TEST_F(ControlRoutesTest, RefusesWhatCannotBeDecoded) {
  routes_.add(HttpMethod::kPut, "/v1/{name}?b",
              [](const ControlRequest&) -> Result<Json> { return Json::object(); });
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/a").status, 200);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/a", "b=1").status, 200);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/").status, 404);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/%zz").status, 400);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/a%00").status, 400);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/a", "b=%").status, 400);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/a", "b=1&b=2").status, 400);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/a", "", "{").status, 400);
  EXPECT_EQ(ask(HttpMethod::kPut, "/v1/a", "", "[1]").status, 400);
}

TEST_F(ControlRoutesTest, RefusesFieldsThatAQueryDoesNotHave) {
  const auto nothing = [](const ControlRequest&) -> Result<Json> { return Json(nullptr); };
  routes_.add(HttpMethod::kGet, "/v1/some?by&run", nothing);
  routes_.add(HttpMethod::kGet, "/v1/none", nothing);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/some", "by=x&run=y").status, 204);
  EXPECT_EQ(ask(HttpMethod::kHead, "/v1/some", "run").status, 204);
  const HttpAnswer refused = ask(HttpMethod::kGet, "/v1/some", "by=x&runs=y");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(
      text(refused).find("no field 'runs' in the query of GET /v1/some, which may have: by, run"),
      std::string::npos)
      << text(refused);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/none", "by=x").status, 400);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/none", "by").status, 400);
  EXPECT_EQ(ask(HttpMethod::kGet, "/v1/some", "by%26run=x").status, 400);
}

TEST_F(ControlRoutesTest, GivesFailuresTheStatusOfTheirCode) {
  routes_.add(HttpMethod::kGet, "/v1/fails", [](const ControlRequest&) -> Result<Json> {
    return failure(StatusCode::kConflict, "somebody has it");
  });
  const HttpAnswer answer = ask(HttpMethod::kGet, "/v1/fails");
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(text(answer), "{\"error\":{\"code\":\"conflict\",\"message\":\"somebody has it\"}}\n");
}

TEST_F(ControlRoutesTest, LetsAHandlerAnswerLaterAndInText) {
  Completion<ControlAnswer> owed;
  routes_.add_waiting(HttpMethod::kGet, "/v1/gate",
                      [&owed](ControlRequest request, Completion<ControlAnswer> done) {
                        EXPECT_FALSE(request.context.has_deadline());
                        owed = std::move(done);
                      });
  Waiter<HttpAnswer> waiter;
  routes_.handle(
      {.request =
           {.method = HttpMethod::kGet, .path = "/v1/gate", .query = {}, .headers = {}, .body = {}},
       .context = RequestContext(TimePoint::max(), "uid:7")},
      waiter.completion());
  owed.complete(ControlAnswer{.status = 202, .text = "open", .text_type = "text/plain"});
  const auto answer = waiter.wait();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 202);
  EXPECT_EQ(text(*answer), "open");
}

TEST_F(ControlRoutesTest, ListsItsRoutes) {
  routes_.add(HttpMethod::kGet, "/a/{b}?c&d",
              [](const ControlRequest&) -> Result<Json> { return Json(nullptr); });
  ASSERT_EQ(routes_.list().size(), 1U);
  EXPECT_EQ(routes_.list()[0], (ControlRoutes::Listed{HttpMethod::kGet, "/a/{b}", {"c", "d"}}));
}

}  // namespace
}  // namespace millrace
