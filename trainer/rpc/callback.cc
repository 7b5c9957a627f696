// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/callback.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/rpc/request_callback_no_python.h>
#include <torch/csrc/distributed/rpc/script_resp.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/custom_class.h>

#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "trainer/rpc/message.h"

namespace phalanx::rpc {
namespace {

namespace library = torch::distributed::rpc;
using c10::IValue;
using FuturePointer = c10::intrusive_ptr<c10::ivalue::Future>;

// A thread of the agent takes as many threads of its own as `at::set_num_threads` has said.
void use_threads_of_process() {
  [[maybe_unused]] static thread_local const bool is_done = (at::init_num_threads(), true);
}

class Callback final : public library::RequestCallbackNoPython {
 public:
  Callback(WireHooks hooks, std::shared_ptr<Gate> gate)
      : hooks_(std::move(hooks)), gate_(std::move(gate)) {}

 private:
  FuturePointer processScriptCall(library::RpcCommandBase& command,
                                  const std::vector<c10::Stream>& /*streams*/) const override {
    use_threads_of_process();
    auto& call = static_cast<library::ScriptCall&>(command);
    TORCH_CHECK(!call.hasOp(), "operators are not served");
    return run(call.stackRef())
        ->then(
            [](library::JitFuture& answer) {
              return library::withStorages(library::ScriptResp(answer.value()).toMessage());
            },
            c10::getCustomClassType<c10::intrusive_ptr<library::Message>>());
  }

  FuturePointer processScriptRemoteCall(
      library::RpcCommandBase& /*command*/,
      const std::vector<c10::Stream>& /*streams*/) const override {
    TORCH_CHECK(false, "LibTorch's own remote references are not served");
  }

  FuturePointer run(const std::vector<IValue>& stack) const {
    auto answer = c10::make_intrusive<c10::ivalue::Future>(c10::AnyType::get());
    serve(stack).when_done([answer, hooks = hooks_, gate = gate_](const Future& done) {
      try {
        if (const auto error = done.error()) std::rethrow_exception(error);
        const Values values = done.wait();
        hooks.retain(values).when_done([answer, gate, values](const Future& retained) {
          const auto error = retained.error();
          gate->complete(answer, error ? failure_of(error) : answer_of(values));
        });
      } catch (...) {
        gate->complete(answer, failure_of(std::current_exception()));
      }
    });
    return answer;
  }

  Future serve(const std::vector<IValue>& stack) const {
    try {
      Request request = request_in(stack, hooks_.receive);
      return hooks_.serve(request.function, std::move(request.arguments));
    } catch (...) {
      const Promise promise;
      promise.fail(std::current_exception());
      return promise.future();
    }
  }

  WireHooks hooks_;
  std::shared_ptr<Gate> gate_;
};

}  // namespace

void Gate::complete(const FuturePointer& answer, const IValue& value) {
  const std::shared_lock lock(mutex_);
  if (is_open_) answer->markCompleted(value);
}

void Gate::close() {
  const std::scoped_lock lock(mutex_);
  is_open_ = false;
}

std::unique_ptr<library::RequestCallback> make_callback(WireHooks hooks,
                                                        std::shared_ptr<Gate> gate) {
  return std::make_unique<Callback>(std::move(hooks), std::move(gate));
}

}  // namespace phalanx::rpc
