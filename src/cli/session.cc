#include "cli/session.h"

#include <unistd.h>

#include <fmt/format.h>

#include "cli/local_file.h"

namespace millrace::cli {

Session::Session(LoadedSettings loaded, EnvironmentLookup environment, Output& output,
                 Interrupt& interrupt, RequestContext context, bool quiet)
    : loaded_(std::move(loaded)),
      environment_(std::move(environment)),
      output_(output),
      interrupt_(interrupt),
      context_(std::move(context)),
      quiet_(quiet) {}

Session::~Session() = default;

RequestContext Session::request(const RequestContext& part) {
  return part.with_deadline(clock().now() + settings().timeout);
}

Result<Application*> Session::application() {
  if (!application_) {
    MR_ASSIGN_OR_RETURN(application_, Application::start(settings(), environment_));
  }
  return application_.get();
}

Result<Location> Session::locate(const std::string& text) const {
  return resolve_location(text, settings().store);
}

bool Session::store_is_embedded() const {
  return loaded_.origins.front().source == SettingSource::kDefault;
}

Result<std::shared_ptr<ObjectStore>> Session::store(const StoreUrl& url, Access access) {
  const bool embedded = store_is_embedded() && url == settings().store;
  MR_ASSIGN_OR_RETURN(Application* const app, application());
  return app->store(
      url, access == Access::kWrite || embedded ? MissingRoot::kCreate : MissingRoot::kRefuse);
}

std::unique_ptr<Progress> Session::progress(std::string label) {
  const bool enabled = ::isatty(STDERR_FILENO) == 1 && !quiet_ && !output_.json();
  return std::make_unique<Progress>(enabled, clock(), std::move(label));
}

void Session::note(std::string_view sentence) {
  if (quiet_ || output_.json()) return;
  fmt::print(stderr, "{}\n", printable(sentence));
}

bool Session::can_ask() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

bool Session::confirm(std::string_view question) {
  if (!can_ask()) return false;
  fmt::print(stderr, "{} [y/N] ", printable(question));
  Buffer buffer = Buffer::allocate(256);
  const auto length = read_some(STDIN_FILENO, buffer.bytes(), interrupt_.fd(), "standard input");
  if (!length) return false;
  const std::string_view answer = as_text(ByteView(buffer.bytes()).first(*length));
  return answer == "y\n" || answer == "yes\n" || answer == "Y\n";
}

}  // namespace millrace::cli
