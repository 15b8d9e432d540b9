#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app/application.h"
#include "app/settings.h"
#include "base/request_context.h"
#include "cli/interrupt.h"
#include "cli/location.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace millrace::cli {

// What a command works with: the settings, the output, the right to stop, and the object graph,
// which is made when a command first needs it.
//
// request(), store() and clock() are safe from any thread, the rest belongs to the main thread.
class Session {
 public:
  Session(LoadedSettings loaded, EnvironmentLookup environment, Output& output,
          Interrupt& interrupt, RequestContext context, bool quiet);
  ~Session();

  const LoadedSettings& loaded() const { return loaded_; }
  const Settings& settings() const { return loaded_.settings; }
  const EnvironmentLookup& environment() const { return environment_; }
  Output& output() { return output_; }
  Interrupt& interrupt() { return interrupt_; }
  Clock& clock() { return system_clock(); }

  // The whole command: no deadline, ended by a signal.
  const RequestContext& context() const { return context_; }
  // One request of it: the setting `timeout` from now.
  RequestContext request() { return request(context_); }
  // One request of a part of it.
  RequestContext request(const RequestContext& part);

  // The object graph. Fails when it cannot be started.
  Result<Application*> application();
  // Where a URL or a path inside --store points, and the store behind it.
  Result<Location> locate(const std::string& text) const;
  // Nothing was said about the store: it is the embedded one, which is made when it is absent.
  bool store_is_embedded() const;
  // Only a store that is written to is made when its directory is absent; the embedded default
  // always.
  enum class Access : std::uint8_t { kRead, kWrite };
  Result<std::shared_ptr<ObjectStore>> store(const StoreUrl& url, Access access = Access::kRead);

  // Drawn only when standard error is a terminal and nobody asked for quiet or JSON.
  std::unique_ptr<Progress> progress(std::string label);
  // A sentence for people about what was done. On standard error, and not with --quiet or --json.
  void note(std::string_view sentence);
  // Asks on the terminal. False without a terminal, and for anything but "y" or "yes".
  bool confirm(std::string_view question);
  // True when both standard input and standard error are a terminal, so that confirm() can ask.
  static bool can_ask();

 private:
  const LoadedSettings loaded_;
  const EnvironmentLookup environment_;
  Output& output_;
  Interrupt& interrupt_;
  const RequestContext context_;
  const bool quiet_;
  std::unique_ptr<Application> application_;
};

}  // namespace millrace::cli
