// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/wire.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/autograd/autograd.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/distributed/rpc/torchscript_functions.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/csrc/jit/frontend/script_type_parser.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "trainer/base/blocked_signals.h"
#include "trainer/rpc/callback.h"
#include "trainer/rpc/calls_under_way.h"
#include "trainer/rpc/message.h"
#include "trainer/rpc/rpc_error.h"
#include "trainer/rpc/transport.h"

namespace phalanx::rpc {
namespace {

namespace library = torch::distributed::rpc;

// All calls go to one function of the library, which has the name of ours among its arguments: the
// library takes names with dots apart.
constexpr const char* kFunction = "phalanx";

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
  std::atomic<bool> is_over = false;
  CallsUnderWay under_way;

  std::string worker(int64_t rank) const {
    return worker_text(options.workers.at(static_cast<size_t>(rank)), rank);
  }

  // An answer of the library, which has come.
  void take(library::JitFuture& answer, int64_t rank, const std::string& function,
            std::chrono::milliseconds timeout, const Promise& promise) {
    under_way.end(worker(rank), function);
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
  listen_at(at.address);
  auto agent = std::make_shared<library::TensorPipeAgent>(
      store, at.workers.at(static_cast<size_t>(at.rank)),
      static_cast<library::worker_id_t>(at.rank), static_cast<int>(at.workers.size()), backend,
      std::unordered_map<std::string, library::DeviceMap>{}, std::vector<c10::Device>{},
      make_callback(impl_->hooks, impl_->gate));
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
  impl_->is_over = true;
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
    if (const auto error = retained.error()) return promise.fail(error);
    impl->under_way.begin(impl->worker(rank), function);
    try {
      const auto answer = library::rpcTorchscript(
          impl->options.workers.at(static_cast<size_t>(rank)), c10::QualifiedName(kFunction),
          schema, request_of(function, arguments), library_timeout(timeout));
      answer->addCallback(
          [=](library::JitFuture& done) { impl->take(done, rank, function, timeout, promise); });
    } catch (...) {
      // This worker's own: whether another one can be reached, the answer tells.
      impl->under_way.end(impl->worker(rank), function);
      promise.fail(impl->is_over ? std::make_exception_ptr(std::logic_error("the RPC agent has "
                                                                            "ended"))
                                 : std::current_exception());
    }
  });
  return promise.future();
}

std::string Wire::drain(std::chrono::milliseconds timeout) const {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (impl_->agent->getMetrics().at("agent.client_active_calls") != "0") {
    if (std::chrono::steady_clock::now() >= end) {
      const std::string calls = impl_->under_way.text();
      return calls.empty() ? "messages of LibTorch's autograd" : calls;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

}  // namespace phalanx::rpc
