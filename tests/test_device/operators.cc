// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/operators.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/test_device/aliases.h"
#include "tests/test_device/failure.h"
#include "tests/test_device/generator.h"
#include "tests/test_device/kernel_scope.h"
#include "tests/test_device/operator_facts.h"
#include "tests/test_device/races.h"
#include "tests/test_device/test_device.h"
#include "tests/test_device/timeline.h"

namespace phalanx::test_device {
namespace {

using c10::IValue;
using torch::jit::Stack;

// Puts `change` of each tensor into its place, also in lists.
template <class Change>
void change_tensors(IValue& value, const Change& change) {
  if (value.isTensor()) {
    if (const at::Tensor tensor = value.toTensor(); tensor.defined()) value = change(tensor);
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> changed;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      changed.push_back(tensor.defined() ? change(tensor) : tensor);
    }
    value = std::move(changed);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> changed;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      changed.push_back(tensor && tensor->defined() ? std::optional(change(*tensor)) : tensor);
    }
    value = std::move(changed);
  }
}

// One call of an operator: its arguments become the CPU's, its results the device's.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack& stack) : op_(op), facts_(facts_of(op)), stack_(stack) {
    const auto arguments = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
    arguments_.assign(std::prev(stack.end(), arguments), stack.end());
  }

  void run() {
    translate_arguments();
    const c10::DeviceGuard guard(test_device::device(device_));
    if (!facts_.is_view) enqueue_on(current_number(device_));
    compute();
    translate_results();
  }

 private:
  void translate_arguments() {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      IValue& argument =
          *std::prev(stack_.end(), static_cast<std::ptrdiff_t>(arguments_.size() - i));
      change_tensors(argument, [&](const at::Tensor& tensor) { return translated(tensor, i); });
      if (argument.isDevice() && argument.toDevice().type() == kType) {
        const at::Device named = argument.toDevice();
        if (device_ < 0) device_ = named.has_index() ? named.index() : current_device();
        argument = IValue(c10::Device(c10::kCPU));
      } else if (argument.isGenerator() && argument.toGenerator().device().type() == kType) {
        argument = IValue(cpu_generator_of(argument.toGenerator()));
      }
    }
    if (device_ < 0) device_ = current_device();
    TORCH_CHECK(!has_host_tensor_ || facts_.takes_host_indices,
                "Expected all tensors to be on the same device, but ", facts_.name,
                " got one of the host");
  }

  at::Tensor translated(const at::Tensor& tensor, std::size_t argument) {
    if (!is_ours(tensor)) {
      // A tensor without dimensions is a number, which goes with the call.
      if (tensor.dim() > 0 && tensor.numel() > 0) has_host_tensor_ = true;
      return tensor;
    }
    const int index = tensor.device().index();
    TORCH_CHECK(device_ < 0 || device_ == index,
                "Expected all tensors to be on the same device: ", facts_.name);
    device_ = index;
    has_mask_ = has_mask_ || (argument > 0 && tensor.scalar_type() == at::kBool);
    if (facts_.is_view) return aliases_.of(tensor, Aliases::Use::looks_at);
    const bool writes = facts_.writes[argument];
    accesses_.push_back({tensor, writes ? Access::writes : Access::reads});
    return aliases_.of(tensor, writes ? Aliases::Use::writes : Aliases::Use::reads);
  }

  void enqueue_on(uint32_t stream) {
    require_answer();
    ++counters().operators;
    enqueue(stream);
    for (const auto& [tensor, access] : accesses_) {
      note_access(stream, tensor, access, facts_.name);
    }
    const Clock clock = clock_of(stream);
    if (facts_.reads_values || (facts_.takes_host_indices && has_mask_)) {
      synchronize(facts_.name, clock);
    } else if (has_host_tensor_) {
      synchronize(kCopyToDevice, clock);
    } else {
      finish_late_work(clock);
    }
  }

  void compute() {
    std::optional<SwappedGenerators> swapped;
    if (facts_.is_random && !facts_.generator) swapped.emplace(device_);
    if (facts_.is_random && facts_.generator) {
      IValue& generator = *std::prev(
          stack_.end(), static_cast<std::ptrdiff_t>(arguments_.size() - *facts_.generator));
      if (generator.isNone()) generator = IValue(cpu_generator_of(default_generator(device_)));
    }
    const KernelScope scope(device_);
    const at::AutoDispatchBelowADInplaceOrView below;
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    aliases_.write_back(device_);
  }

  void translate_results() {
    const std::size_t count = facts_.returned_argument.size();
    for (std::size_t i = 0; i < count; ++i) {
      IValue& result = *std::prev(stack_.end(), static_cast<std::ptrdiff_t>(count - i));
      if (const auto argument = facts_.returned_argument[i]) {
        result = arguments_[*argument];
        continue;
      }
      change_tensors(result, [&](const at::Tensor& tensor) {
        const Aliases::Result made = aliases_.back(tensor, device_);
        if (made.is_fresh) {
          note_access(current_number(device_), made.tensor, Access::writes, facts_.name);
        }
        return made.tensor;
      });
    }
  }

  struct Touched {
    at::Tensor tensor;
    Access access;
  };

  const c10::OperatorHandle& op_;
  const OperatorFacts& facts_;
  Stack& stack_;
  std::vector<IValue> arguments_;
  Aliases aliases_;
  std::vector<Touched> accesses_;
  int device_ = -1;
  bool has_host_tensor_ = false;
  bool has_mask_ = false;
};

void run_on_device(const c10::OperatorHandle& op, Stack* stack) { Call(op, *stack).run(); }

// Which kernel scaled_dot_product_attention takes: the CPU's choice, which looks at whether
// gradients are wanted.
int64_t choose_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>& mask, double dropout, bool is_causal,
                         std::optional<double> scale, bool enable_gqa) {
  const auto alias = [](const at::Tensor& tensor) {
    return cpu_alias(tensor).set_requires_grad(tensor.requires_grad());
  };
  std::optional<at::Tensor> mask_alias;
  if (mask && mask->defined()) mask_alias = cpu_alias(*mask);
  return at::_fused_sdp_choice(alias(query), alias(key), alias(value), mask_alias, dropout,
                               is_causal, scale, enable_gqa);
}

}  // namespace

void install_operators() {
  static torch::Library every(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  every.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_device>());
  // An operator that has a kernel of the CPU's and is composed of others as well would take the
  // latter, for the fallback comes last; the CPU takes the former.
  static torch::Library aten(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  constexpr std::string_view kPrefix = "aten::";
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with(kPrefix)) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    if (op->hasKernelForDispatchKey(kKey)) continue;
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    aten.impl((name.name.substr(kPrefix.size()) + overload).c_str(),
              torch::CppFunction::makeFromBoxedFunction<&run_on_device>());
  }
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choose_attention);
}

}  // namespace phalanx::test_device
