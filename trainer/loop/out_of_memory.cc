// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/out_of_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>
#include <new>
#include <vector>

#include "trainer/config/tree/node.h"
#include "trainer/memory/memory.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

std::string row(int64_t bytes, std::string_view what) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return fmt::format("\n  {:>9.1f} MiB  {}", static_cast<double>(bytes) / kMebibyte, what);
}

// A value's text; empty where the composition has no such option.
std::string text_at(const config::Node& config, std::initializer_list<const char*> path) {
  const config::Node* node = &config;
  for (const char* name : path) {
    node = node->find(name);
    if (node == nullptr) return {};
  }
  return node->text;
}

std::vector<std::string> sharding_advice(const config::Node& config) {
  const std::string sharded = text_at(config, {"parallel", "use_fsdp"});
  if (sharded == "false") {
    return {
        "parallel.use_fsdp: true with FULL_SHARD on several ranks (parameters, gradients, "
        "optimizer)"};
  }
  if (sharded.empty()) return {};
  std::vector<std::string> advice;
  if (text_at(config, {"parallel", "sharding_strategy"}) != "FULL_SHARD") {
    advice.emplace_back("parallel.sharding_strategy: FULL_SHARD (parameters)");
  }
  if (text_at(config, {"parallel", "fsdp", "accumulated_gradients"}) == "whole" &&
      text_at(config, {"training", "gradient_accumulation_steps"}) != "1") {
    advice.emplace_back("parallel.fsdp.accumulated_gradients: sharded (gradients)");
  }
  return advice;
}

std::vector<std::string> advice_for(const config::Node& config) {
  std::vector<std::string> advice;
  if (text_at(config, {"training", "batch_size"}) != "1") {
    advice.emplace_back(
        "a smaller training.batch_size with more gradient_accumulation_steps (activations)");
  }
  if (text_at(config, {"activation_checkpointing", "policy"}) == "none") {
    advice.emplace_back("activation_checkpointing.policy: unit (activations)");
  }
  if (text_at(config, {"mixed_precision", "enabled"}) == "false") {
    advice.emplace_back("mixed_precision: bf16 (activations)");
  }
  for (auto& line : sharding_advice(config)) advice.push_back(std::move(line));
  advice.emplace_back("more ranks that share the model, or a smaller one");
  return advice;
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  return std::string_view(error.what()).find("can't allocate memory") != std::string_view::npos;
}

std::string explain_out_of_memory(const std::exception& error, std::string_view where,
                                  const TaskModel& task_model, Optimizer& optimizer,
                                  const config::Node& resolved_config) {
  std::string text =
      fmt::format("out of memory in {}: {}\nheld on this rank:", where, error_text(error));
  int64_t held = 0;
  for (const auto& use : task_model.memory()) {
    text += row(use.bytes, use.what);
    held += use.bytes;
  }
  int64_t state = 0;
  for (const auto& view : optimizer.state()) state += static_cast<int64_t>(view.local.nbytes());
  text += row(state, "the optimizer's state");
  // Those of the pass are freed by now: the most that there was tells of them.
  if (const int64_t rest = most_large_tensor_bytes() - held - state; rest > 0) {
    text += row(rest, "activations and what else was computed, at the most");
  }
  return text + fmt::format("\nWhat needs less: {}", fmt::join(advice_for(resolved_config), "; "));
}

}  // namespace phalanx
