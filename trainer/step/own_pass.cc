// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/own_pass.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/step/activity.h"
#include "trainer/step/batch_look.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

constexpr size_t kMostNamed = 4;

bool holds(const Batch& batch, const at::Tensor& tensor) {
  TensorNames names;
  names.add(batch);
  return names.has(tensor);
}

// The micro-batch that the pass was of; nullptr: not known. A pass that does not fail again goes on
// to other ones.
const Batch* batch_of(const OwnPass& pass, const FaultLook& look, bool has_failed_again) {
  if (pass.micro_batches.size() == 1) return pass.micro_batches.front().get();
  if (!has_failed_again || !look.trace || !look.trace->last_input.defined()) return nullptr;
  const auto found = std::ranges::find_if(
      pass.micro_batches, [&](const auto& batch) { return holds(*batch, look.trace->last_input); });
  return found == pass.micro_batches.end() ? nullptr : found->get();
}

// "'a.csv', line 2: is the first sample of micro-batch 1", a line each; empty where no sample is
// known.
std::vector<std::string> first_samples(const OwnPass& pass) {
  std::vector<std::string> lines;
  size_t number = 0;
  for (const auto& batch : pass.micro_batches) {
    ++number;
    if (batch->sample_numbers.empty()) continue;
    if (lines.size() == kMostNamed) {
      lines.emplace_back("and so on");
      break;
    }
    lines.push_back(
        pass.samples->describe(batch->sample_numbers.front(),
                               fmt::format("is the first sample of micro-batch {}", number)));
  }
  return lines;
}

std::string text_without_batch(const OwnPass& pass, const FaultLook& look) {
  const std::vector<std::string> lines = unless_it_fails([&] { return first_samples(pass); });
  if (look.module.empty() && lines.empty()) return look.error;
  std::string text = fmt::format("{}\n  {}{}", look.error, look.where,
                                 look.module.empty() ? "" : ", " + look.module);
  if (!lines.empty()) {
    text += fmt::format("\n  one of {} micro-batches:\n    {}", pass.micro_batches.size(),
                        fmt::join(lines, "\n    "));
  }
  return text;
}

}  // namespace

void explain_own_pass(const std::exception& error, const OwnPass& pass,
                      const PassContext& context) {
  context.errors.explain(error, {.activity = pass.activity}, /*again=*/{});  // memory
  if (explains_itself(error)) return;
  TensorNames inputs;
  for (const auto& batch : pass.micro_batches) inputs.add(*batch);
  bool has_failed_again = false;
  const auto again = [&](TaskModel& model) {
    has_failed_again = true;
    pass.again(model);
    has_failed_again = false;
  };
  const FaultLook look =
      look_into(error, place_of(context.state.step, pass.activity), context.parts.task_model(),
                context.parts.device(), pass.again ? PassAgain(again) : PassAgain(), inputs);
  const Batch* const batch = batch_of(pass, look, has_failed_again);
  const ExplainedFault explained = batch != nullptr
                                       ? explain_by(look, *batch, *pass.samples)
                                       : ExplainedFault{.text = text_without_batch(pass, look)};
  if (explained.is_of_data) throw UserError(explained.text);
  if (explained.text != look.error) throw std::runtime_error(explained.text);
}

}  // namespace phalanx
