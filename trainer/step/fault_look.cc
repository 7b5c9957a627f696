// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/fault_look.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "trainer/api/kept_buffers.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/api/units.h"
#include "trainer/ranks/collectives/alone.h"
#include "trainer/step/batch_look.h"
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

// All of a micro-batch that may be to blame, one a line.
std::vector<std::string> lines_of(const BatchLook& look) {
  std::vector<std::string> lines = look.lines();
  std::ranges::move(look.nonfinite_samples(), std::back_inserter(lines));
  return lines;
}

}  // namespace

std::optional<OperationTrace> trace_again(const TaskModel& task_model, c10::Device device,
                                          const PassAgain& again, const TensorNames& inputs) {
  if (!again || inputs.empty() || !is_whole(task_model)) return std::nullopt;
  ModelBase& model = task_model.model();
  std::optional<Alone> alone;
  if (task_model.has_engine()) alone.emplace();
  const RngGuard random_numbers(device);
  const at::NoGradGuard no_grad;
  KeptBuffers buffers(model);
  TaskModel plain = task_model.wrapped_by(nullptr);
  OperationTrace trace =
      trace_operations([&] { again(plain); }, names_of_model(model.module()), inputs);
  buffers.give_back();
  return trace;
}

std::string operation_text(const TaskModel& task_model, const TracedOperation& operation,
                           const std::string& around) {
  torch::nn::Module& model = task_model.model().module();
  const std::string module =
      operation.parameter.empty() ? "" : module_text(model, module_of(operation.parameter));
  if (operation.has_parameter) return fmt::format("{}: {}", module, operation.call);
  if (!around.empty()) return fmt::format("{}: {}", around, operation.call);
  return module.empty() ? operation.call : fmt::format("{}, behind {}", operation.call, module);
}

FaultLook look_into(const std::exception& error, const std::string& where,
                    const TaskModel& task_model, c10::Device device, const PassAgain& again,
                    const TensorNames& inputs) {
  // The pass that is called again may leave modules by errors, too.
  const std::string around = failed_module_text(task_model.model().module());
  FaultLook look{.error = error_text(error), .where = where, .module = around};
  look.trace = unless_it_fails([&] { return trace_again(task_model, device, again, inputs); });
  if (look.trace && look.trace->failed) {
    look.module = operation_text(task_model, *look.trace->failed, around);
  }
  return look;
}

ExplainedFault explain_by(const FaultLook& fault, const Batch& batch, const KnownSamples& samples) {
  ExplainedFault explained{.text = fault.error};
  const auto look = unless_it_fails([&] { return std::make_optional<BatchLook>(batch, samples); });
  if (look && fault.trace && fault.trace->range) {
    const auto beyond = unless_it_fails([&] { return look->samples_beyond(*fault.trace->range); });
    explained.is_of_data = !beyond.empty();
    for (const std::string& line : beyond) explained.text += "\n" + line;
  }
  const std::vector<std::string> lines =
      look ? unless_it_fails([&] { return lines_of(*look); }) : std::vector<std::string>();
  if (fault.module.empty() && lines.empty()) return explained;
  explained.text +=
      fmt::format("\n  {}{}", fault.where, fault.module.empty() ? "" : ", " + fault.module);
  if (!lines.empty()) {
    explained.text +=
        fmt::format("\n  a micro-batch of {} {}:\n    {}", batch.samples,
                    batch.samples == 1 ? "sample" : "samples", fmt::join(lines, "\n    "));
  }
  return explained;
}

}  // namespace phalanx
