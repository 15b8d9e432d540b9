#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "frontends/fuse/fuse_operations.h"

namespace millrace {
namespace {

constexpr std::string_view kFactPrefix = "user.millrace.";

// The answer to a question for a value or for its size, as the kernel asks for both.
void answer_sized(FuseCall call, std::uint32_t size, std::string_view value) {
  if (size == 0) {
    fuse_getxattr_out out{};
    out.size = static_cast<std::uint32_t>(value.size());
    return call.answer_with(out);
  }
  if (value.size() > size) return call.fail_with(ERANGE);
  call.answer(std::as_bytes(std::span(value)));
}

}  // namespace

void fuse_getxattr(FuseCall call, const FuseRequest& request) {
  const Result<fuse_getxattr_in> in = request.body<fuse_getxattr_in>();
  if (!in) return call.fail(in.error(), FuseAttempt::kNode);
  const Result<std::string_view> name = request.name(sizeof(fuse_getxattr_in));
  if (!name) return call.fail(name.error(), FuseAttempt::kNode);
  if (!name->starts_with(kFactPrefix)) {
    // `ls -l` asks for the label and the access list of every file, unless it hears that there are
    // none here.
    return call.fail_with(name->starts_with("user.") ? ENODATA : EOPNOTSUPP);
  }
  const Result<std::vector<NodeFact>> facts =
      call.connection().parts.tree.facts(call.context(), call.node());
  if (!facts) return call.fail(facts.error(), FuseAttempt::kNode);
  for (const NodeFact& fact : *facts) {
    if (name->substr(kFactPrefix.size()) == fact.name) {
      return answer_sized(std::move(call), in->size, fact.value);
    }
  }
  call.fail_with(ENODATA);
}

void fuse_listxattr(FuseCall call, const FuseRequest& request) {
  const Result<fuse_getxattr_in> in = request.body<fuse_getxattr_in>();
  if (!in) return call.fail(in.error(), FuseAttempt::kNode);
  const Result<std::vector<NodeFact>> facts =
      call.connection().parts.tree.facts(call.context(), call.node());
  if (!facts) return call.fail(facts.error(), FuseAttempt::kNode);
  std::string names;
  for (const NodeFact& fact : *facts)
    names += fmt::format("{}{}{}", kFactPrefix, fact.name, '\0');
  answer_sized(std::move(call), in->size, names);
}

}  // namespace millrace
