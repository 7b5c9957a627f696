// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/distributed_context.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/autograd/autograd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/rpc/agent.h"
#include "trainer/rpc/context_id.h"
#include "trainer/rpc/rpc_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::rpc {
namespace {

using torch::distributed::autograd::DistAutogradContainer;

constexpr int64_t kNone = -1;
// A worker that is gone refuses at once; a busy host's needs a while.
constexpr std::chrono::milliseconds kPatience{2500};

std::vector<at::Tensor> gradients_in(int64_t context, std::span<const at::Tensor> parameters) {
  const auto all = DistAutogradContainer::getInstance().retrieveContext(context)->getGradients();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    const auto found = all.find(parameter);
    gradients.push_back(found == all.end() ? at::Tensor() : found->value());
  }
  return gradients;
}

// "Error on Node 1: text", as LibTorch says it, by the worker's name; else empty.
std::string text_of_worker(const std::string& text, const Agent& agent) {
  constexpr std::string_view kStart = "Error on Node ";
  const size_t start = text.find(kStart);
  if (start == std::string::npos) return {};
  const std::string rest = text.substr(start + kStart.size());
  const size_t colon = rest.find(": ");
  if (colon == std::string::npos) return {};
  const auto rank = static_cast<size_t>(std::atoll(rest.c_str()));
  if (rank >= agent.workers().size()) return {};
  return fmt::format("worker '{}' (rank {}) failed in the backward pass: {}", agent.workers()[rank],
                     rank, rest.substr(colon + 2));
}

// Within the handler of the error.
[[noreturn]] void refuse(const Agent& agent, const std::string& text) {
  const std::string silent = agent.silent_workers(kPatience);
  if (!silent.empty()) {
    throw WorkerLost(fmt::format(
        "the backward pass failed, and these workers do not answer: {}: {}", silent, text));
  }
  if (text.starts_with("RPCErr:1")) {
    throw WorkerLost(fmt::format(
        "the backward pass was not over within the timeout of {} s, and all workers answer: does "
        "each remote answer that needs a gradient take part in the loss?",
        std::chrono::duration<double>(agent.timeout()).count()));
  }
  const std::string of_worker = text_of_worker(text, agent);
  if (of_worker.empty()) throw;  // an error of this worker's own
  throw RemoteError(of_worker);
}

}  // namespace

DistributedContext::DistributedContext(const Agent& agent)
    : agent_(agent), id_(DistAutogradContainer::getInstance().newContext()->contextId()) {}

DistributedContext::~DistributedContext() {
  try {
    DistAutogradContainer::getInstance().releaseContext(id_);
  } catch (const std::exception&) {
    // Without an agent nobody else has to hear of it.
  }
}

void DistributedContext::backward(std::vector<at::Tensor> roots, bool retain_graph) const {
  try {
    torch::distributed::autograd::backward(id_, roots, retain_graph);
  } catch (const std::exception& error) {
    refuse(agent_, error_text(error));
  }
}

std::vector<at::Tensor> DistributedContext::gradients(
    std::span<const at::Tensor> parameters) const {
  return gradients_in(id_, parameters);
}

std::vector<at::Tensor> gradients_of_call(std::span<const at::Tensor> parameters) {
  const int64_t context = current_context();
  if (context == kNone) {
    throw std::logic_error("gradients_of_call: the caller is in no DistributedContext");
  }
  return gradients_in(context, parameters);
}

}  // namespace phalanx::rpc
