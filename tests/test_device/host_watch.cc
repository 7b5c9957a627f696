// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tests/test_device/aliases.h"
#include "tests/test_device/kernel_scope.h"
#include "tests/test_device/memory.h"
#include "tests/test_device/races.h"

namespace phalanx::test_device {
namespace {

// They look at shapes, or call others that are seen themselves.
constexpr std::array<std::string_view, 11> kTouchNothing{
    "aten::_to_copy",     "aten::contiguous", "aten::empty_like", "aten::is_pinned",
    "aten::is_same_size", "aten::new_empty",  "aten::pin_memory", "aten::record_stream",
    "aten::reshape",      "aten::to",         "aten::zeros_like"};

template <class Look>
void each_tensor(const c10::IValue& value, const Look& look) {
  if (value.isTensor()) {
    look(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) look(tensor);
  }
}

bool is_view(const c10::FunctionSchema& schema) {
  return !schema.returns().empty() &&
         std::ranges::all_of(schema.returns(), [](const c10::Argument& result) {
           return result.alias_info() != nullptr && !result.alias_info()->isWrite();
         });
}

// A storage may refuse access to its memory, which is none of the pinned then.
bool lies_in_pinned_memory(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.has_storage()) return false;
  try {
    return is_pinned(tensor.storage().data());
  } catch (const c10::Error&) {
    return false;
  }
}

// Operators of the device look at what they touch themselves.
bool is_of_host_with_pinned_memory(c10::ArrayRef<const c10::IValue> inputs) {
  bool has_pinned = false;
  bool has_ours = false;
  for (const c10::IValue& input : inputs) {
    each_tensor(input, [&](const at::Tensor& tensor) {
      has_ours = has_ours || is_ours(tensor);
      has_pinned = has_pinned || lies_in_pinned_memory(tensor);
    });
  }
  return has_pinned && !has_ours;
}

std::unique_ptr<at::ObserverContext> look_at(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (KernelScope::is_active() || !name.starts_with("aten::")) return nullptr;
  if (std::ranges::count(kTouchNothing, name) > 0) return nullptr;
  if (!is_of_host_with_pinned_memory(function.inputs())) return nullptr;
  const auto schema = function.operator_schema();
  if (!schema || is_view(*schema)) return nullptr;
  const std::size_t count = std::min(function.inputs().size(), schema->arguments().size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const alias = schema->arguments()[i].alias_info();
    const Access access = alias != nullptr && alias->isWrite() ? Access::writes : Access::reads;
    each_tensor(function.inputs()[i], [&](const at::Tensor& tensor) {
      if (lies_in_pinned_memory(tensor)) note_access_of_host(tensor, access, name);
    });
  }
  return nullptr;
}

}  // namespace

void install_host_watch() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(&look_at).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

}  // namespace phalanx::test_device
