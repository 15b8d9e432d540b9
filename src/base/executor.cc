#include "base/executor.h"

namespace millrace {

namespace {

class InlineExecutor final : public Executor {
 public:
  Status submit(Task task) override {
    task();
    return {};
  }
  void resume(Task task) override { task(); }
  std::string_view name() const override { return "inline"; }
};

}  // namespace

Executor& inline_executor() {
  // Never destroyed: completions may still be answered while statics are being torn down.
  static auto* const executor = new InlineExecutor;
  return *executor;
}

}  // namespace millrace
