#include <variant>

#include "frontends/nfs4/rpc_message.h"
#include "fuzz/fuzz_input.h"

// The head of a call with its credentials, and of an answer to a callback.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const ByteView bytes = as_bytes(fuzz_text(data, size));
  XdrReader reader(bytes);
  const auto head = read_rpc_call(reader);
  if (!head) {
    fuzz_require(head.error() == StatusCode::kCorruption);
  } else if (const auto* const call = std::get_if<RpcCall>(&*head)) {
    fuzz_require(reader.ok() && reader.position() <= size);
    fuzz_require(call->caller.credentials.groups.size() <= kRpcGroupsMax);
    fuzz_require(call->caller.machine.size() <= kRpcMachineNameBytesMax);
    fuzz_require(rpc_message_of(XdrReader(bytes)) == RpcMessage::kCall);
  } else {
    XdrWriter answer;
    write_rpc_rejection(answer, std::get<RpcRejection>(*head));
    XdrReader again(answer.written());
    const auto rejected = read_rpc_answer(again);
    fuzz_require(rejected.has_value() && !rejected->outcome.ok());
  }
  XdrReader answer(bytes);
  (void)read_rpc_answer(answer);
  return 0;
}
