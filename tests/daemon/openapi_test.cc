// docs/openapi.yaml and the server, both ways: every route is in the document and the reverse, and
// what the server answers is what the document says.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "daemon/fuse_front_end.h"
#include "daemon/nfs_front_end.h"
#include "tests/daemon/daemon_world.h"
#include "tests/daemon/json_schema.h"
#include "tests/servers/child_process.h"

namespace millrace {
namespace {

YAML::Node openapi() {
  const char* const source = std::getenv("MILLRACE_SOURCE_DIR");
  return YAML::LoadFile(std::string(source != nullptr ? source : ".") + "/docs/openapi.yaml");
}

std::string lower_method(HttpMethod method) {
  std::string name(http_method_name(method));
  std::ranges::transform(name, name.begin(), [](char c) { return std::tolower(c); });
  return name;
}

// A request of a route, and the status that it must get. The world has the dataset pets with a
// version, an alias and a run, and the lease job.
struct RouteExample {
  std::string path;
  int status = 200;
  std::string body = {};
};

using RouteExamples = std::map<std::pair<std::string, std::string>, std::vector<RouteExample>>;

RouteExamples route_examples() {
  return {
      {{"get", "/healthz"}, {{"/healthz"}}},
      {{"get", "/readyz"}, {{"/readyz"}}},
      {{"get", "/metrics"}, {{"/metrics"}}},
      {{"get", "/v1/status"}, {{"/v1/status"}}},
      {{"post", "/v1/stop"}, {{"/v1/stop"}}},
      {{"get", "/v1/datasets"}, {{"/v1/datasets"}}},
      {{"post", "/v1/datasets/ask_again"}, {{"/v1/datasets/ask_again"}}},
      {{"get", "/v1/datasets/{name}"}, {{"/v1/datasets/pets"}, {"/v1/datasets/none", 404}}},
      {{"get", "/v1/versions/{name}/{version}"},
       {{"/v1/versions/pets/v1"}, {"/v1/versions/pets/current"}, {"/v1/versions/pets/v9", 404}}},
      {{"get", "/v1/runs"}, {{"/v1/runs"}, {"/v1/runs?limit=x", 400}}},
      {{"get", "/v1/cache"}, {{"/v1/cache"}}},
      {{"get", "/v1/leases"}, {{"/v1/leases"}}},
      {{"get", "/v1/cache/versions"}, {{"/v1/cache/versions"}}},
      {{"delete", "/v1/cache/versions/{name}/{version}"},
       {{"/v1/cache/versions/pets/v1"}, {"/v1/cache/versions/pets/v9", 404}}},
      {{"post", "/v1/cache/verify"},
       {{"/v1/cache/verify"},
        {"/v1/cache/verify", 200, R"({"version": "pets@v1"})"},
        {"/v1/cache/verify", 400, R"({"versoin": "pets@v1"})"}}},
      {{"get", "/v1/preloads"}, {{"/v1/preloads"}}},
      {{"post", "/v1/preloads"},
       {{"/v1/preloads", 200,
         R"({"version": "pets@current", "paths": ["*"], "lease_seconds": 60})"},
        {"/v1/preloads", 400},
        {"/v1/preloads", 400, R"({"version": "pets@v1", "lease_seconds": -1})"},
        {"/v1/preloads", 404, R"({"version": "pets@v1", "paths": ["none"]})"}}},
      {{"get", "/v1/preloads/{id}"},
       {{"/v1/preloads/000000000000?wait=30s", 404},
        {"/v1/preloads/000000000000?wait=x", 400},
        {"/v1/preloads/000000000000?timeout=30s", 400}}},
      {{"delete", "/v1/preloads/{id}"}, {{"/v1/preloads/000000000000", 404}}},
      {{"get", "/v1/failures"}, {{"/v1/failures?run=r1"}, {"/v1/failures", 400}}},
      {{"get", "/v1/usage"}, {{"/v1/usage"}, {"/v1/usage?by=version"}, {"/v1/usage?by=x", 400}}},
      {{"get", "/v1/mounts"}, {{"/v1/mounts"}}},
      {{"post", "/v1/mounts"},
       {{"/v1/mounts", 400},
        {"/v1/mounts", 400, R"({"directory": "relative"})"},
        {"/v1/mounts", 400, R"({"directory": "/", "opening": "wide"})"},
        {"/v1/mounts", 400, R"({"directory": "/", "allow_other": "yes"})"},
        {"/v1/mounts", 400, R"({"directory": "/", "read_only": true})"},
        {"/v1/mounts", 404, R"({"directory": "/", "source": "none@v1"})"}}},
      {{"delete", "/v1/mounts/{directory}"},
       {{"/v1/mounts/%2Fnowhere", 404},
        {"/v1/mounts/%2Fnowhere?lazy=1", 404},
        {"/v1/mounts/%2Fnowhere?lazy=yes", 400}}},
      {{"get", "/v1/exports"}, {{"/v1/exports"}}},
      {{"post", "/v1/exports"},
       {{"/v1/exports", 200, R"({"path": "/pets", "source": "pets@current"})"},
        {"/v1/exports", 409, R"({"path": "/pets", "source": "pets@v1"})"},
        {"/v1/exports", 400},
        {"/v1/exports", 400, R"({"path": "/p/..", "source": "pets@v1"})"},
        {"/v1/exports", 400, R"({"path": "/p", "sources": "pets@v1"})"},
        {"/v1/exports", 400, R"({"path": "/p", "source": "pets@v1", "options": ["rw"]})"},
        {"/v1/exports", 400, R"({"path": "/p", "source": "/datasets/pets/v1/a"})"},
        {"/v1/exports", 404, R"({"path": "/p", "source": "none@v1"})"}}},
      {{"get", "/v1/nfs/clients"}, {{"/v1/nfs/clients"}}},
      {{"delete", "/v1/exports/{path}"},
       {{"/v1/exports/%2Fpets", 204},
        {"/v1/exports/%2Fpets", 404},
        {"/v1/exports/%2Fdatasets", 409}}},
      {{"delete", "/v1/leases/{lease}"}, {{"/v1/leases/job", 204}, {"/v1/leases/job", 404}}},
  };
}

// That an answer of a route is one that the document has.
void expect_documented(const YAML::Node& document, const std::string& method,
                       const std::string& pattern, const std::string& path,
                       const RawClient::Answer& answer) {
  const YAML::Node responses = document["paths"][pattern][method]["responses"];
  const std::string status = std::to_string(answer.status);
  const YAML::Node named = responses[status] ? responses[status] : responses["default"];
  ASSERT_TRUE(named) << path << ": the document has no answer " << status;
  const YAML::Node content = resolve_reference(document, named)["content"];
  const std::string type(answer.headers.get("Content-Type"));
  if (!content) {
    EXPECT_EQ(answer.body, "") << path;
  } else if (content["application/json"]) {
    EXPECT_EQ(type, "application/json");
    const YAML::Node schema = content["application/json"]["schema"];
    EXPECT_THAT(schema_errors(document, schema, Json::parse(answer.body, nullptr, false)),
                ::testing::IsEmpty())
        << path << "\n"
        << answer.body;
  } else {
    EXPECT_TRUE(content[type.substr(0, type.find(';'))]) << path << " is " << type;
  }
}

class OpenApi : public ::testing::Test {
 protected:
  void SetUp() override {
    DaemonOptions options;
    options.front_ends.push_back(std::make_unique<FuseFrontEnd>(std::vector<std::string>{}));
    options.front_ends.push_back(std::make_unique<NfsFrontEnd>());
    ASSERT_TRUE(world_.start(std::move(options)).ok());
    world_.tree().write("a", "hello");
    world_.publish("pets@v1");
    const Registry& registry = world_.gateway().registry();
    ASSERT_TRUE(registry.aliases().set(world_.context, DatasetName::parse("pets").value(),
                                       AliasName::parse("current").value(),
                                       VersionName::parse("v1").value()));
    const auto entry = registry.version(world_.context, VersionRef::parse("pets@v1").value());
    ASSERT_TRUE(
        registry.runs().start(world_.context, {.name = "exp",
                                               .uses = {{entry->ref, entry->facts->content_digest}},
                                               .command_line = {"x"}}));
    const ObjectVersion object(world_.gateway().store_id(), ObjectKey("k"), ObjectIdentity("i"), 9);
    ASSERT_TRUE(world_.gateway()
                    .cache()
                    .leases()
                    .grant(world_.context, {.id = LeaseId("job"),
                                            .holder = "alice",
                                            .lifetime = std::chrono::hours(1),
                                            .ranges = {{object, {0, 9}}}})
                    .ok());
    ASSERT_EQ(world_.wait_until_ready().status, 200);
  }

  DaemonWorld world_;
  const YAML::Node document_ = openapi();
};

// Of one operation of the document.
std::set<std::string> documented_query(const YAML::Node& document, const YAML::Node& operation) {
  std::set<std::string> names;
  for (const auto& listed : operation["parameters"]) {
    const YAML::Node parameter = resolve_reference(document, listed);
    if (parameter["in"].as<std::string>() == "query")
      names.insert(parameter["name"].as<std::string>());
  }
  return names;
}

// Also the fields of their queries.
TEST_F(OpenApi, HasEveryRouteAndNoOther) {
  using Routes = std::map<std::pair<std::string, std::string>, std::set<std::string>>;
  Routes served;
  for (const auto& [method, path, query] : world_.daemon().routes().list()) {
    const std::set<std::string> fields(query.begin(), query.end());
    EXPECT_TRUE(served.try_emplace({lower_method(method), path}, fields).second)
        << path << " comes twice";
  }
  Routes documented;
  for (const auto& path : document_["paths"]) {
    for (const auto& method : path.second) {
      documented[{method.first.as<std::string>(), path.first.as<std::string>()}] =
          documented_query(document_, method.second);
    }
  }
  EXPECT_EQ(served, documented);
}

TEST_F(OpenApi, SaysWhatTheServerAnswers) {
  RouteExamples examples = route_examples();
  for (const auto& [method, pattern, query] : world_.daemon().routes().list()) {
    const std::string name = lower_method(method);
    const auto& of_route = examples[{name, pattern}];
    EXPECT_FALSE(of_route.empty()) << name << " " << pattern << " has no example in this test";
    for (const RouteExample& example : of_route) {
      const auto answer =
          world_.ask(std::string(http_method_name(method)), example.path, example.body);
      EXPECT_EQ(answer.status, example.status) << example.path << " " << answer.body;
      expect_documented(document_, name, pattern, example.path, answer);
    }
  }
}

TEST_F(OpenApi, RefusalsNameTheField) {
  const auto message = [this](const std::string& method, const std::string& path,
                              const std::string& body) {
    const auto answer = world_.ask(method, path, body);
    return Json::parse(answer.body)["error"]["message"].get<std::string>();
  };
  const std::string unknown = R"({"directory": "/", "read_only": true})";
  for (const std::string path : {"/v1/mounts", "/v1/exports", "/v1/preloads", "/v1/cache/verify"}) {
    const std::string field = path == "/v1/mounts" ? "read_only" : "directory";
    EXPECT_EQ(message("POST", path, unknown),
              "there is no field '" + field + "' in such a request");
  }
  EXPECT_EQ(message("POST", "/v1/mounts", R"({"directory": "/", "allow_other": 1})"),
            "the field 'allow_other' must be true or false");
  EXPECT_EQ(message("DELETE", "/v1/mounts/%2F?lazy=yes", ""),
            "lazy 'yes' is not accepted: expected true, false, 1 or 0");
  EXPECT_EQ(message("GET", "/v1/preloads/000000000000?timeout=30s", ""),
            "there is no field 'timeout' in the query of GET /v1/preloads/{id}, which may have: "
            "wait");
  EXPECT_EQ(message("DELETE", "/v1/mounts/%2F?lasy=1", ""),
            "there is no field 'lasy' in the query of DELETE /v1/mounts/{directory}, which may "
            "have: lazy");
}

TEST_F(OpenApi, SaysWhatIsAnsweredAboutAPreloadThatIsThere) {
  const auto ask = [&](const std::string& method, const std::string& pattern,
                       const std::string& path, const std::string& body = "") {
    const RawClient::Answer answer = world_.ask(method, path, body);
    EXPECT_EQ(answer.status, 200) << path << " " << answer.body;
    expect_documented(document_,
                      method == "GET"    ? "get"
                      : method == "POST" ? "post"
                                         : "delete",
                      pattern, path, answer);
    return Json::parse(answer.body, nullptr, false);
  };
  const std::string id = ask("POST", "/v1/preloads", "/v1/preloads",
                             R"({"version": "pets@v1", "lease_seconds": 60})")["preload"];
  const std::string path = "/v1/preloads/" + id;
  const Json ready = ask("GET", "/v1/preloads/{id}", path + "?wait=30s");
  EXPECT_EQ(ready["state"], "ready") << ready.dump();
  ask("GET", "/v1/preloads", "/v1/preloads");
  ask("DELETE", "/v1/preloads/{id}", path);
}

// By a daemon that is a process: a mount has a keeper, which is the same program.
class MountOpenApi : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const program = std::getenv("MILLRACE_BIN");
    ASSERT_NE(program, nullptr) << "it names no program: run it through ctest";
    program_ = program;
    home_.make_directory("mnt");
    home_.make_directory("tree");
    home_.write("tree/a", "hello");
    millrace("publish " + home_.path("tree") + " pets@v1");
    millrace("serve --background");
  }
  void TearDown() override { millrace("stop"); }

  void millrace(const std::string& command) {
    const testing::CommandResult result =
        testing::run_command({"/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                              "HOME=" + home_.root(), "/bin/sh", "-c", program_ + " " + command});
    EXPECT_EQ(result.status, 0) << command << ": " << result.output;
  }
  Json ask(const std::string& method, const std::string& pattern, const std::string& path,
           int status, const std::string& body = "") {
    const std::string length =
        body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n";
    RawClient client(home_.path(".local/share/millrace/millrace.sock"));
    const RawClient::Answer answer =
        client.ask(method + " " + path + " HTTP/1.1\r\nHost: test\r\n" + length + "\r\n" + body);
    EXPECT_EQ(answer.status, status) << path << " " << answer.body;
    expect_documented(document_,
                      method == "GET"    ? "get"
                      : method == "POST" ? "post"
                                         : "delete",
                      pattern, path, answer);
    return Json::parse(answer.body, nullptr, false);
  }

  std::string program_;
  const ScratchTree home_{"/tmp/"};
  const YAML::Node document_ = openapi();
};

TEST_F(MountOpenApi, SaysWhatIsAnsweredAboutAMountThatIsThere) {
  const std::string directory = home_.path("mnt");
  const Json mounted = ask("POST", "/v1/mounts", "/v1/mounts", 200,
                           Json{{"source", "pets@v1"}, {"directory", directory}}.dump());
  EXPECT_EQ(mounted["directory"], directory);
  EXPECT_EQ(ask("GET", "/v1/mounts", "/v1/mounts", 200)["mounts"].size(), 1U);
  std::string encoded = directory;
  for (std::size_t at = 0; (at = encoded.find('/', at)) != std::string::npos;)
    encoded.replace(at, 1, "%2F");
  ask("DELETE", "/v1/mounts/{directory}", "/v1/mounts/" + encoded + "?lazy=1", 204);
  EXPECT_EQ(ask("GET", "/v1/mounts", "/v1/mounts", 200)["mounts"].size(), 0U);
}

TEST_F(OpenApi, TheCheckItselfFindsWhatDoesNotFit) {
  const YAML::Node schema = document_["components"]["schemas"]["Cache"];
  Json cache = world_.document("/v1/cache");
  EXPECT_TRUE(schema_errors(document_, schema, cache).empty());
  cache["extra"] = 1;
  cache["used_bytes"] = "many";
  cache.erase("counted");
  EXPECT_EQ(schema_errors(document_, schema, cache).size(), 3U);
  const YAML::Node time = document_["components"]["schemas"]["Time"];
  EXPECT_EQ(schema_errors(document_, time, Json("yesterday")).size(), 1U);
}

}  // namespace
}  // namespace millrace
