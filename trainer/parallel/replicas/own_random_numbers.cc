// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/own_random_numbers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <utility>

namespace phalanx {
namespace {

// LibTorch keeps this key for wrappers that no backend knows, beside the one of DeferredInit.
constexpr auto kMode = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

thread_local const at::Generator* current = nullptr;

bool is_generator(const c10::Argument& argument) { return argument.type()->str() == "Generator?"; }

bool takes_generator(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), is_generator);
}

// Looks at the tensors that are drawn into or from. Without any, as in torch.randn, the operator
// calls another one that has some.
bool computes_on_host(at::ArrayRef<c10::IValue> arguments) {
  const auto* const tensor = std::ranges::find_if(arguments, [](const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined();
  });
  return tensor != arguments.end() && tensor->toTensor().device().is_cpu();
}

void draw(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& declared = op.schema().arguments();
  const size_t first = stack->size() - declared.size();
  if (current != nullptr &&
      computes_on_host(at::ArrayRef<c10::IValue>(stack->data() + first, declared.size()))) {
    for (size_t i = 0; i < declared.size(); ++i) {
      c10::IValue& value = (*stack)[first + i];
      if (is_generator(declared[i]) && value.isNone()) value = c10::IValue(*current);
    }
  }
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kMode), stack);
}

// Operators that draw go through `draw` where the mode is on; others do not see it.
struct Kernels {
  torch::Library others{torch::Library::IMPL, "_", kMode, __FILE__, __LINE__};
  torch::Library drawing{torch::Library::IMPL, "aten", kMode, __FILE__, __LINE__};

  Kernels() {
    others.fallback(torch::CppFunction::makeFallthrough());
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (!name.name.starts_with("aten::")) continue;
      const auto op = dispatcher.findSchema(name);
      if (!op || !takes_generator(op->schema())) continue;
      const std::string full =
          name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      drawing.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&draw>());
    }
  }
};

const at::Generator* exchange_current(const at::Generator* generator) {
  OwnRandomNumbers::prepare();
  return std::exchange(current, generator);
}

}  // namespace

OwnRandomNumbers::OwnRandomNumbers(uint64_t seed)
    : generator_(at::detail::createCPUGenerator(seed)),
      before_(exchange_current(&generator_)),
      mode_(kMode) {}

OwnRandomNumbers::~OwnRandomNumbers() { current = before_; }

void OwnRandomNumbers::prepare() { static const Kernels kernels; }

}  // namespace phalanx
