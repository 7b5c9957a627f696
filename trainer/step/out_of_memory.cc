// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/out_of_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <new>
#include <optional>

#include "trainer/api/parameters.h"
#include "trainer/memory/device_memory.h"
#include "trainer/memory/memory.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

std::string row(int64_t bytes, std::string_view what) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return fmt::format("\n  {:>9.1f} MiB  {}", static_cast<double>(bytes) / kMebibyte, what);
}

// The GPU that the model computes on; the CPU where it uses none.
at::Device device_of(ModelBase& model) {
  for (const auto& parameter : named_parameters(model)) {
    if (!parameter.tensor.is_cpu()) return parameter.tensor.device();
  }
  return at::kCPU;
}

// None where the device does not answer any more: what is known without it is still told.
std::optional<DeviceMemory> memory_of(at::Device device) {
  try {
    return device_memory(device);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string rows_of(at::Device device, const DeviceMemory& memory) {
  std::string text = fmt::format("\n{}, now:", device.str());
  text += row(memory.in_tensors, "in tensors");
  text += row(memory.reserved - memory.in_tensors,
              "kept by LibTorch's allocator for tensors to come, perhaps in pieces too small");
  const int64_t others = memory.total - memory.free - memory.reserved;
  text += row(others, "CUDA's and NCCL's own, and other processes'");
  return text + row(memory.free, fmt::format("free, of {:.1f} MiB",
                                             static_cast<double>(memory.total) / (1 << 20)));
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  return std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

std::string explain_out_of_memory(const std::exception& error, std::string_view where,
                                  const TaskModel& task_model,
                                  std::span<const OptimizerPart> optimizers,
                                  const std::vector<std::string>& advice) {
  std::string text =
      fmt::format("out of memory in {}: {}\nheld on this rank:", where, error_text(error));
  int64_t held = 0;
  for (const auto& use : task_model.memory()) {
    text += row(use.bytes, use.what);
    held += use.bytes;
  }
  int64_t state = 0;
  for (const OptimizerPart& part : optimizers) {
    int64_t own = 0;
    for (const auto& view : part.optimizer->state())
      own += static_cast<int64_t>(view.local.nbytes());
    text += row(own, part.name().empty() ? "the optimizer's state"
                                         : fmt::format("the state of optimizer '{}'", part.name()));
    state += own;
  }
  const at::Device device = device_of(task_model.model());
  const auto memory = memory_of(device);
  // Those of the pass are freed by now: the peak still shows them.
  const int64_t most = memory ? memory->most_in_tensors : most_large_tensor_bytes();
  if (const int64_t rest = most - held - state; rest > 0) {
    text += row(rest, "activations and what else was computed, at the most");
  }
  if (memory) text += rows_of(device, *memory);
  return text + fmt::format("\nWhat needs less: {}", fmt::join(advice, "; "));
}

}  // namespace phalanx
