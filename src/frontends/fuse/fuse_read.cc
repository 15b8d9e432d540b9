#include <memory>

#include "base/at_hand.h"
#include "base/log.h"
#include "frontends/fuse/fuse_operations.h"

namespace millrace {
namespace {

void answer_read(FuseCall call, const Result<Slice>& bytes) {
  if (bytes) {
    call.connection().parts.metrics.counter(MetricId::kFuseReadBytes).add(bytes->size());
    return call.answer(bytes->bytes());
  }
  // The tree has said which file it is, where the store is to blame.
  log_debug("a read failed", {{"node", call.node().value()}, {"error", bytes.error().to_string()}});
  call.fail(bytes.error(), FuseAttempt::kData);
}

}  // namespace

void fuse_read(FuseCall call, const FuseRequest& request) {
  const Result<fuse_read_in> in = request.body<fuse_read_in>();
  if (!in) return call.fail(in.error(), FuseAttempt::kData);
  FuseConnection& connection = call.connection();
  const Result<std::shared_ptr<OpenFile>> file = connection.file(call.context(), call.node());
  if (!file) return call.fail(file.error(), FuseAttempt::kData);
  // A read that will be done again is counted once.
  if (const Status last = AtHandOnly::may_note(); !last.ok()) {
    return call.fail(last, FuseAttempt::kData);
  }
  const RequestContext context = call.context();
  (*file)->read(context, {in->offset, in->size},
                Completion<Slice>(connection.replies,
                                  [call = std::move(call)](const Result<Slice>& bytes) mutable {
                                    answer_read(std::move(call), bytes);
                                  }));
}

}  // namespace millrace
