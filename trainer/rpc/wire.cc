// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/wire.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/autograd/autograd.h>
#include <torch/csrc/distributed/rpc/request_callback_no_python.h>
#include <torch/csrc/distributed/rpc/script_resp.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/distributed/rpc/torchscript_functions.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/csrc/jit/frontend/script_type_parser.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "trainer/base/blocked_signals.h"
#include "trainer/ranks/failures/failure.h"
#include "trainer/rpc/message.h"
#include "trainer/rpc/rpc_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::rpc {
namespace {

namespace library = torch::distributed::rpc;
using c10::IValue;
using FuturePointer = c10::intrusive_ptr<c10::ivalue::Future>;

// What a transport is registered as: LibTorch's own of TCP, at an address of ours.
constexpr const char* kTransport = "phalanx";
// All calls go to one function of the library, which has the name of ours among its arguments: the
// library takes names with dots apart.
constexpr const char* kFunction = "phalanx";

// Where the next agent of this process listens; registries give creators no arguments.
std::string& next_address() {
  static std::string address;
  return address;
}

}  // namespace
}  // namespace phalanx::rpc

namespace torch::distributed::rpc {
namespace {

std::unique_ptr<TransportRegistration> make_transport() {
  auto transport = TensorPipeTransportRegistry()->Create("uv");
  transport->address = phalanx::rpc::next_address();
  return transport;
}

C10_REGISTER_CREATOR(TensorPipeTransportRegistry, phalanx, make_transport)

}  // namespace
}  // namespace torch::distributed::rpc

namespace phalanx::rpc {
namespace {

// A thread of the agent takes as many threads of its own as `at::set_num_threads` has said.
void use_threads_of_process() {
  [[maybe_unused]] static thread_local const bool is_done = (at::init_num_threads(), true);
}

/// Lets answers pass until the agent ends: the library sends each by a bare pointer to the agent,
/// and a function may answer at any time.
class Gate {
 public:
  void complete(const FuturePointer& answer, const IValue& value) {
    const std::shared_lock lock(mutex_);
    if (is_open_) answer->markCompleted(value);
  }
  /// Returns once none is passing.
  void close() {
    const std::scoped_lock lock(mutex_);
    is_open_ = false;
  }

 private:
  std::shared_mutex mutex_;
  bool is_open_ = true;
};

/// What other workers call here.
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

// In seconds, as the library takes a timeout. It counts milliseconds in an int, where 0 is none.
float library_timeout(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kLeast{1};
  constexpr std::chrono::milliseconds kMost{2'000'000'000};
  return std::chrono::duration<float>(std::clamp(time, kLeast, kMost)).count();
}

// TensorPipe says where in its sources an error comes from.
std::string plain_text(std::string text) {
  const size_t origin = text.find(" (this error originated at");
  if (origin != std::string::npos) text.resize(origin);
  const size_t line = text.find('\n');
  if (line != std::string::npos) text.resize(line);
  return text;
}

}  // namespace

struct Wire::Impl {
  WireOptions options;
  WireHooks hooks;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::shared_ptr<library::TensorPipeAgent> agent;

  std::string worker(int64_t rank) const {
    return worker_text(options.workers.at(static_cast<size_t>(rank)), rank);
  }

  // An answer of the library, which has come.
  void take(library::JitFuture& answer, int64_t rank, const std::string& function,
            std::chrono::milliseconds timeout, const Promise& promise) const {
    try {
      if (!answer.hasError()) {
        const auto elements = answer.value().toTuple();
        return promise.set(
            values_in(elements->elements().vec(), worker(rank), function, hooks.receive));
      }
      const std::string text = answer.tryRetrieveErrorMessage();
      if (library::getRPCErrorType(answer) == library::RPCErrorType::TIMEOUT) {
        throw not_answered(worker(rank), function, timeout);
      }
      if (text.starts_with("Error on Node")) {
        throw RemoteError(
            fmt::format("{} could not run '{}': {}", worker(rank), function, plain_text(text)));
      }
      throw WorkerLost(
          fmt::format("{} is gone: '{}': {}", worker(rank), function, plain_text(text)));
    } catch (...) {
      promise.fail(std::current_exception());
    }
  }
};

Wire::Wire(c10::intrusive_ptr<c10d::Store> store, WireOptions options, WireHooks hooks)
    : impl_(std::make_shared<Impl>()) {
  impl_->options = std::move(options);
  impl_->hooks = std::move(hooks);
  const WireOptions& at = impl_->options;
  torch::distributed::autograd::DistAutogradContainer::init(at.rank);
  // Without shared memory, whose thread spins, and without a port for each of many connections.
  const library::TensorPipeRpcBackendOptions backend(
      static_cast<int>(at.threads), std::vector<std::string>{kTransport},
      std::vector<std::string>{"cma", "basic"}, library_timeout(at.timeout), "");
  const BlockedSignals for_its_threads;
  next_address() = at.address;
  auto agent = std::make_shared<library::TensorPipeAgent>(
      store, at.workers.at(static_cast<size_t>(at.rank)),
      static_cast<library::worker_id_t>(at.rank), static_cast<int>(at.workers.size()), backend,
      std::unordered_map<std::string, library::DeviceMap>{}, std::vector<c10::Device>{},
      std::make_unique<Callback>(impl_->hooks, impl_->gate));
  library::RpcAgent::setCurrentRpcAgent(agent);
  impl_->agent = agent;
  agent->setTypeResolver(
      std::make_shared<library::TypeResolver>([](const c10::QualifiedName& name) {
        return c10::StrongTypePtr{nullptr,
                                  torch::jit::ScriptTypeParser().parseType(name.qualifiedName())};
      }));
  try {
    agent->start();
  } catch (...) {
    stop();
    throw;
  }
}

Wire::~Wire() { stop(); }

void Wire::stop() {
  if (!impl_->agent) return;
  try {
    impl_->agent->shutdown();
  } catch (const std::exception&) {
    // Its connections go with it.
  }
  impl_->gate->close();
  library::RpcAgent::setCurrentRpcAgent(nullptr);
  impl_->agent.reset();
}

Future Wire::call(int64_t rank, const std::string& function, Values arguments,
                  std::chrono::milliseconds timeout) const {
  static const c10::FunctionSchema schema("phalanx", "", {},
                                          {c10::Argument("", c10::AnyType::get())});
  const Promise promise;
  const std::shared_ptr<Impl> impl = impl_;
  impl->hooks.retain(arguments).when_done([=](const Future& retained) {
    try {
      if (const auto error = retained.error()) std::rethrow_exception(error);
      const auto answer = library::rpcTorchscript(
          impl->options.workers.at(static_cast<size_t>(rank)), c10::QualifiedName(kFunction),
          schema, request_of(function, arguments), library_timeout(timeout));
      answer->addCallback(
          [=](library::JitFuture& done) { impl->take(done, rank, function, timeout, promise); });
    } catch (const CommunicationError&) {
      promise.fail(std::current_exception());
    } catch (const std::logic_error&) {
      promise.fail(std::current_exception());
    } catch (const std::exception& error) {
      promise.fail(std::make_exception_ptr(
          WorkerLost(fmt::format("{} cannot be called: '{}': {}", impl->worker(rank), function,
                                 plain_text(error_text(error))))));
    }
  });
  return promise.future();
}

bool Wire::drain(std::chrono::milliseconds timeout) const {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (impl_->agent->getMetrics().at("agent.client_active_calls") != "0") {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace phalanx::rpc
