// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_fault.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <typeinfo>
#include <utility>
#include <vector>

#include "trainer/api/broken_sample.h"
#include "trainer/api/kept_buffers.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/api/units.h"
#include "trainer/base/user_error.h"
#include "trainer/ranks/collectives/alone.h"
#include "trainer/ranks/failures/failure.h"
#include "trainer/step/batch_look.h"
#include "trainer/step/operation_trace.h"
#include "trainer/tensors/error_text.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

// "the module h.3.mlp (Mlp)"; the model itself has no name.
std::string module_text(torch::nn::Module& model, const std::string& name) {
  if (name.empty()) return "the model itself";
  for (const auto& [path, module] : modules::descendants(model)) {
    if (path == name) return fmt::format("the module {} ({})", name, modules::class_name(*module));
  }
  return "the module " + name;
}

// "h.3.mlp" of "h.3.mlp.weight".
std::string module_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

// With the module whose parameter it computes with, or `around` it, or before it.
std::string text_of(torch::nn::Module& model, const TracedOperation& operation,
                    const std::string& around = {}) {
  const std::string module =
      operation.parameter.empty() ? "" : module_text(model, module_of(operation.parameter));
  if (operation.has_parameter) return fmt::format("{}: {}", module, operation.call);
  if (!around.empty()) return fmt::format("{}: {}", around, operation.call);
  return module.empty() ? operation.call : fmt::format("{}, behind {}", operation.call, module);
}

// The innermost module with hooks that the error has left; empty: none.
std::string failed_module_text(torch::nn::Module& model) {
  const HookedModule* const failed = failed_module(std::current_exception());
  if (failed == nullptr) return {};
  for (const NamedHooked& each : hooked_modules(model)) {
    if (each.hooks == failed) return module_text(model, each.name);
  }
  return {};
}

TensorNames names_of_model(torch::nn::Module& model) {
  TensorNames names;
  for (const auto& [name, tensor] : modules::named_parameters(model)) names.add(tensor, name);
  for (const auto& [name, tensor] : modules::named_buffers(model)) names.add(tensor, name);
  return names;
}

// Whether this rank holds all of the model, so that it can be called without the others.
bool is_whole(const TaskModel& task_model) {
  return std::ranges::all_of(named_parameters(task_model.model()), [&](const auto& parameter) {
    return task_model.local(parameter).tensor.is_same(parameter.tensor);
  });
}

// Calls the pass once more. What it changes in the model and draws is put back.
std::optional<OperationTrace> trace_of(const PassFault& fault) {
  const std::vector<NamedTensor> inputs = named_tensors(fault.batch);
  // Without its inputs nothing says that it would be the same pass.
  if (!fault.again || inputs.empty() || !is_whole(fault.task_model)) return std::nullopt;
  TensorNames input_names;
  for (const NamedTensor& named : inputs) input_names.add(named.tensor, named.name);
  ModelBase& model = fault.task_model.model();
  std::optional<Alone> alone;
  if (fault.task_model.has_engine()) alone.emplace();
  const RngGuard random_numbers(fault.device);
  const at::NoGradGuard no_grad;
  KeptBuffers buffers(model);
  TaskModel plain = fault.task_model.wrapped_by(nullptr);
  OperationTrace trace =
      trace_operations([&] { fault.again(plain); }, names_of_model(model.module()), input_names);
  buffers.give_back();
  return trace;
}

// What `find` finds; nothing where a device does not answer any more.
template <class Find>
auto unless_it_fails(const Find& find) -> decltype(find()) {
  try {
    return find();
  } catch (const std::exception&) {
    return {};
  }
}

// All of a micro-batch that may be to blame, one a line.
std::vector<std::string> lines_of(const BatchLook& look) {
  std::vector<std::string> lines = look.lines();
  std::ranges::move(look.nonfinite_samples(), std::back_inserter(lines));
  return lines;
}

}  // namespace

bool explains_itself(const std::exception& error) {
  return dynamic_cast<const UserError*>(&error) != nullptr ||
         dynamic_cast<const BrokenSampleError*>(&error) != nullptr ||
         dynamic_cast<const NoSample*>(&error) != nullptr || is_communication_error(error) ||
         typeid(error) == typeid(std::logic_error);
}

ExplainedFault explain_error(const std::exception& error, const std::string& where,
                             const PassFault& fault) {
  torch::nn::Module& model = fault.task_model.model().module();
  std::string module = failed_module_text(model);
  const auto trace = unless_it_fails([&] { return trace_of(fault); });
  if (trace && trace->failed) module = text_of(model, *trace->failed, module);
  ExplainedFault explained{.text = error_text(error)};
  const auto look =
      unless_it_fails([&] { return std::make_optional<BatchLook>(fault.batch, fault.samples); });
  if (look && trace && trace->range) {
    const auto beyond = unless_it_fails([&] { return look->samples_beyond(*trace->range); });
    explained.is_of_data = !beyond.empty();
    for (const std::string& line : beyond) explained.text += "\n" + line;
  }
  const std::vector<std::string> lines =
      look ? unless_it_fails([&] { return lines_of(*look); }) : std::vector<std::string>();
  if (module.empty() && lines.empty()) return explained;
  explained.text += fmt::format("\n  {}{}", where, module.empty() ? "" : ", " + module);
  if (!lines.empty()) {
    explained.text +=
        fmt::format("\n  a micro-batch of {} {}:\n    {}", fault.batch.samples,
                    fault.batch.samples == 1 ? "sample" : "samples", fmt::join(lines, "\n    "));
  }
  return explained;
}

NonfiniteOrigin nonfinite_origin(std::span<const PassFault> passes) {
  NonfiniteOrigin origin;
  for (const PassFault& pass : passes) {
    if (!pass.batch.counts) continue;
    const auto bad =
        unless_it_fails([&] { return BatchLook(pass.batch, pass.samples).nonfinite_samples(); });
    origin.data = fmt::format("{}", fmt::join(bad, "; "));
    if (!bad.empty()) return origin;
  }
  for (const PassFault& pass : passes) {
    if (!pass.batch.counts) continue;
    const auto trace = unless_it_fails([&] { return trace_of(pass); });
    if (!trace || !trace->nonfinite) continue;
    origin.module = text_of(pass.task_model.model().module(), *trace->nonfinite);
    return origin;
  }
  return origin;
}

}  // namespace phalanx
