// Doubles for the tests of credentials: an environment, a folder, an HTTP client, a provider.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "base/mutex.h"
#include "objectstore/s3/credentials_environment.h"
#include "objectstore/s3/credentials_http.h"

namespace millrace::s3 {

inline Environment fake_environment(std::map<std::string, std::string, std::less<>> variables) {
  return Environment(
      [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
      });
}

// A folder that goes away with the test.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "credXXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and returns its path; folders in between are made.
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const std::string file = path(name);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
    return file;
  }

 private:
  std::string path_;
};

// Answers from a function, on the caller's thread, and remembers what was asked.
class FakeHttpClient final : public HttpClient {
 public:
  using Handler = std::function<Result<HttpResponse>(const RequestContext&, const HttpRequest&)>;

  explicit FakeHttpClient(Handler handler) : handler_(std::move(handler)) {}

  void send(const RequestContext& context, HttpRequest request,
            Completion<HttpResponse> done) override {
    {
      MutexLock lock(mutex_);
      requests_.push_back(request);
    }
    done.complete(handler_(context, request));
  }

  std::vector<HttpRequest> requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }

 private:
  const Handler handler_;
  mutable Mutex mutex_;
  std::vector<HttpRequest> requests_ MR_GUARDED_BY(mutex_);
};

inline HttpResponse answer(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.body = Slice::from_string(std::move(body));
  return response;
}

inline std::string header_of(const HttpRequest& request, std::string_view name) {
  for (const HttpHeader& header : request.headers) {
    if (header.name == name) return header.value;
  }
  return "";
}

// A server that takes the connection and then says nothing: time passes until the deadline.
inline FakeHttpClient::Handler hanging(ManualClock& clock) {
  return [&clock](const RequestContext& context, const HttpRequest&) -> Result<HttpResponse> {
    clock.advance_to(context.deadline());
    return failure(StatusCode::kDeadlineExceeded, "no answer");
  };
}

inline FakeHttpClient::Handler always(int status, std::string body) {
  return [=](const RequestContext&, const HttpRequest&) -> Result<HttpResponse> {
    return answer(status, body);
  };
}

inline FakeHttpClient::Handler nobody_there() {
  return [](const RequestContext&, const HttpRequest&) -> Result<HttpResponse> {
    return failure(StatusCode::kUnavailable, "connection refused");
  };
}

}  // namespace millrace::s3
