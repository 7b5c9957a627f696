// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/measured_amount.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/api/batch_source.h"
#include "trainer/api/task.h"
#include "trainer/api/task_model.h"

namespace phalanx {
namespace {

MeasuredAmount amount_of(const TrainerBase& trainer, const BatchSource& data,
                         const ValidationAmount& amount) {
  const int64_t all = data.samples_per_epoch();
  if (!amount.max_batches || *amount.max_batches >= data.batches_per_epoch()) {
    return {.samples = all, .all = all};
  }
  const int64_t of_round = trainer.training().batch_size * trainer.shares();
  return {.samples = std::min(all, *amount.max_batches * of_round),
          .all = all,
          .max_batches = *amount.max_batches};
}

bool is_bounded(const MeasuredAmount& amount) { return amount.samples < amount.all; }

}  // namespace

std::string measured_line(const MeasuredAmount& amount, std::string_view of) {
  if (is_bounded(amount)) {
    return fmt::format(
        "evaluating {} of {} samples (validation.max_batches={}; null takes all) of {}",
        amount.samples, amount.all, amount.max_batches, of);
  }
  if (amount.all == 1) return fmt::format("evaluating the only sample of {}", of);
  return fmt::format("evaluating all {} samples of {}", amount.all, of);
}

std::vector<std::string> measured_lines(const TrainerBase& trainer, const ValidationAmount& amount,
                                        std::string_view file) {
  std::vector<std::string> lines;
  if (const BatchSource* data = trainer.validation_data()) {
    const MeasuredAmount own = amount_of(trainer, *data, amount);
    const std::string held_back = file.empty() ? trainer.task_model().task().held_back() : "";
    if (!held_back.empty()) {
      lines.push_back(measured_line(own, "what is held back for validation: " + held_back));
    } else if (is_bounded(own)) {
      lines.push_back(measured_line(own, file.empty() ? "the validation data" : file));
    }
  }
  for (const ValidationSet& set : trainer.validation_sets()) {
    const MeasuredAmount of_set = amount_of(trainer, *set.data, amount);
    if (is_bounded(of_set)) lines.push_back(measured_line(of_set, "the set " + set.name));
  }
  return lines;
}

}  // namespace phalanx
