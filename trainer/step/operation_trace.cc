// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/operation_trace.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/isnan.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

constexpr size_t kMostTensors = 8;  // The most in the text of a call.

std::vector<at::Tensor> tensors_in(c10::ArrayRef<c10::IValue> values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) tensors.push_back(value.toTensor());
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        if (element.isTensor() && element.toTensor().defined()) {
          tensors.push_back(element.toTensor());
        }
      }
    }
  }
  return tensors;
}

/// A call that has begun.
struct Call {
  std::string name;  // "linear"
  std::vector<c10::IValue> inputs;
  int exceptions = 0;  // Those in flight as it began.
};

// "aten::linear" is "linear".
std::string short_name(const char* name) {
  const std::string_view text(name);
  const size_t colon = text.rfind(':');
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 1));
}

bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const std::string_view each : names) {
    if (name == each) return true;
  }
  return false;
}

std::optional<int64_t> integer_of(const Call& call, size_t place) {
  if (place >= call.inputs.size() || !call.inputs[place].isInt()) return std::nullopt;
  return call.inputs[place].toInt();
}

at::Tensor tensor_of(const Call& call, size_t place) {
  const bool is_there = place < call.inputs.size() && call.inputs[place].isTensor();
  return is_there ? call.inputs[place].toTensor() : at::Tensor();
}

bool are_integers(const at::Tensor& tensor) {
  return tensor.defined() && at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
}

// In x[indices], the dimension that the first indices are for.
std::optional<IndexRange> range_of_index(const Call& call) {
  const at::Tensor table = tensor_of(call, 0);
  if (!table.defined() || call.inputs.size() < 2 || !call.inputs[1].isList()) return std::nullopt;
  int64_t dimension = 0;
  for (const c10::IValue& element : call.inputs[1].toListRef()) {
    if (element.isTensor() && are_integers(element.toTensor()) && dimension < table.dim()) {
      const int64_t size = table.size(dimension);
      return IndexRange{
          .operation = call.name, .indices = element.toTensor(), .lowest = -size, .limit = size};
    }
    ++dimension;
  }
  return std::nullopt;
}

// The indices of the operations that look up by them.
std::optional<IndexRange> range_of(const Call& call) {
  if (call.name == "index") return range_of_index(call);
  const at::Tensor table = tensor_of(call, 0);
  if (!table.defined() || table.dim() == 0) return std::nullopt;
  IndexRange range{.operation = call.name};
  if (is_any(call.name, {"embedding", "embedding_bag"})) {
    range.indices = tensor_of(call, 1);
    range.limit = table.size(0);
  } else if (is_any(call.name, {"cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d"})) {
    range.indices = tensor_of(call, 1);
    range.limit = table.size(table.dim() == 1 ? 0 : 1);
    range.ignored = integer_of(call, 4);
  } else if (is_any(call.name, {"gather", "index_select", "scatter", "scatter_"})) {
    const int64_t dimension = integer_of(call, 1).value_or(0);
    range.indices = tensor_of(call, 2);
    range.limit = table.size(dimension);
  } else if (call.name == "one_hot") {
    range.indices = table;
    range.limit = integer_of(call, 1).value_or(-1);
    if (range.limit < 0) range.limit = std::numeric_limits<int64_t>::max();  // As many as it needs.
  }
  if (!are_integers(range.indices)) return std::nullopt;
  return range;
}

// New memory may hold any values, and a fill may mean its NaN or infinity: neither is a fault.
bool may_hold_anything(std::string_view name) {
  return name.starts_with("empty") || name.starts_with("new_") || name.starts_with("resize") ||
         is_any(name, {"full_like", "masked_fill", "masked_fill_", "fill_", "where", "detach"});
}

bool is_nonfinite(const at::Tensor& tensor) {
  const bool is_plain = tensor.layout() == at::kStrided && tensor.is_floating_point();
  if (!is_plain || tensor.numel() == 0) return false;
  return at::isnan(tensor).any().item<bool>() ||
         tensor.eq(std::numeric_limits<double>::infinity()).any().item<bool>();
}

/// Sees the calls of one thread begin and end.
class Tracer {
 public:
  Tracer(const TensorNames& parameters, const TensorNames& inputs)
      : parameters_(parameters), inputs_(inputs) {}

  void begin(const at::RecordFunction& function) {
    const int exceptions = std::uncaught_exceptions();
    if (exceptions == exceptions_) failed_.clear();  // The pass has caught that.
    const auto inputs = function.inputs();
    for (const at::Tensor& tensor : tensors_in(inputs)) {
      if (inputs_.has(tensor)) trace_.last_input = tensor;
    }
    running_.push_back({.name = short_name(function.name()),
                        .inputs = std::vector<c10::IValue>(inputs.begin(), inputs.end()),
                        .exceptions = exceptions});
  }

  void end(const at::RecordFunction& function) {
    if (running_.empty()) return;
    Call call = std::move(running_.back());
    running_.pop_back();
    if (std::uncaught_exceptions() > call.exceptions) {
      failed_.push_back(std::move(call));
      return;
    }
    if (!running_.empty()) return;  // Only those that the pass calls itself.
    if (const std::string name = parameter_of(call); !name.empty()) last_parameter_ = name;
    if (trace_.nonfinite || may_hold_anything(call.name) || tensors_in(call.inputs).empty()) return;
    for (const at::Tensor& result : tensors_in(function.outputs())) {
      if (is_nonfinite(result)) trace_.nonfinite = traced(call);
    }
  }

  // What was found, after the pass.
  OperationTrace take() {
    if (failed_.empty()) return std::move(trace_);
    trace_.failed = traced(failed_.back());
    for (auto call = failed_.rbegin(); call != failed_.rend() && !trace_.range; ++call) {
      trace_.range = range_of(*call);
    }
    return std::move(trace_);
  }

 private:
  std::string parameter_of(const Call& call) const {
    for (const at::Tensor& tensor : tensors_in(call.inputs)) {
      if (std::string name = parameters_.of(tensor); !name.empty()) return name;
    }
    return {};
  }

  TracedOperation traced(const Call& call) const {
    const std::string parameter = parameter_of(call);
    return {.call = fmt::format("{}({})", call.name, fmt::join(texts_of(call), ", ")),
            .parameter = parameter.empty() ? last_parameter_ : parameter,
            .has_parameter = !parameter.empty()};
  }

  std::vector<std::string> texts_of(const Call& call) const {
    std::vector<std::string> texts;
    for (const at::Tensor& tensor : tensors_in(call.inputs)) {
      if (texts.size() == kMostTensors) {
        texts.emplace_back("...");
        break;
      }
      std::string name = inputs_.of(tensor);
      if (name.empty()) name = parameters_.of(tensor);
      texts.push_back((name.empty() ? "" : name + " ") + shape_of(tensor));
    }
    return texts;
  }

  const TensorNames& parameters_;
  const TensorNames& inputs_;
  const int exceptions_ = std::uncaught_exceptions();
  std::vector<Call> running_;  // The innermost last.
  std::vector<Call> failed_;   // What the exception in flight has left, the innermost first.
  std::string last_parameter_;
  OperationTrace trace_;
};

thread_local Tracer* tracer = nullptr;

// LibTorch calls back a plain function. What it computes is not watched.
std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  if (tracer != nullptr) tracer->begin(function);
  return nullptr;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  const at::DisableRecordFunctionGuard unwatched;
  if (tracer != nullptr) tracer->end(function);
}

/// Has LibTorch call a tracer, for the length of a scope.
class Watch {
 public:
  explicit Watch(Tracer& watching)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(on_begin, on_end)
                                               .needsInputs(true)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {
    tracer = &watching;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    tracer = nullptr;
    at::removeCallback(handle_);
  }

 private:
  at::CallbackHandle handle_;
};

}  // namespace

void TensorNames::add(const at::Tensor& tensor, const std::string& name) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return;
  names_.emplace(tensor.const_data_ptr(), name);
}

void TensorNames::add(const Batch& batch) {
  for (const NamedTensor& named : named_tensors(batch)) add(named.tensor, named.name);
}

std::string TensorNames::of(const at::Tensor& tensor) const {
  if (!tensor.has_storage() || tensor.numel() == 0) return {};
  const auto found = names_.find(tensor.const_data_ptr());
  return found == names_.end() ? std::string() : found->second;
}

OperationTrace trace_operations(const std::function<void()>& pass, const TensorNames& parameters,
                                const TensorNames& inputs) {
  Tracer watching(parameters, inputs);
  try {
    const Watch watch(watching);
    pass();
  } catch (...) {
    // Its operations say where.
  }
  return watching.take();
}

}  // namespace phalanx
