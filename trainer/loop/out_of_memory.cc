// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/out_of_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <new>

#include "trainer/memory/memory.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

std::string row(int64_t bytes, std::string_view what) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return fmt::format("\n  {:>9.1f} MiB  {}", static_cast<double>(bytes) / kMebibyte, what);
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  return std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

std::string explain_out_of_memory(const std::exception& error, std::string_view where,
                                  const TaskModel& task_model, Optimizer* optimizer,
                                  const std::vector<std::string>& advice) {
  std::string text =
      fmt::format("out of memory in {}: {}\nheld on this rank:", where, error_text(error));
  int64_t held = 0;
  for (const auto& use : task_model.memory()) {
    text += row(use.bytes, use.what);
    held += use.bytes;
  }
  int64_t state = 0;
  if (optimizer != nullptr) {
    for (const auto& view : optimizer->state()) state += static_cast<int64_t>(view.local.nbytes());
    text += row(state, "the optimizer's state");
  }
  // Those of the pass are freed by now: the peak still shows them.
  if (const int64_t rest = most_large_tensor_bytes() - held - state; rest > 0) {
    text += row(rest, "activations and what else was computed, at the most");
  }
  return text + fmt::format("\nWhat needs less: {}", fmt::join(advice, "; "));
}

}  // namespace phalanx
