// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/other_validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/api/batch_source.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/retention/best.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/mixins/checkpoint_config.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/plan/run_plan.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

// A field by which a run compares values of its validations, and the name of these.
struct Compared {
  std::string field;
  std::string metric;
};

std::optional<int64_t> integer_at(const config::Node& tree, const char* path) {
  const config::Node* node = tree.find_path(path);
  return node == nullptr ? std::nullopt : config::parse_integer(node->text).value;
}

// Among how many of so many ranks the composition of this run deals samples.
int64_t shares_of(const config::Node& resolved, int64_t ranks) {
  const config::Node* name = resolved.find("name");
  const TrainerRegistry& trainers = TrainerRegistry::instance();
  if (name == nullptr || !trainers.table().contains(name->text)) return ranks;  // a program's own
  RunPlan plan;
  trainers.at(name->text).fill_plan(resolved, plan);
  return plan.data_ranks(ranks);
}

// How many of all samples a validation takes.
int64_t taken(int64_t all, std::optional<int64_t> max_batches, int64_t batch_size, int64_t shares) {
  int64_t most = 0;
  if (!max_batches || __builtin_mul_overflow(*max_batches, batch_size, &most) ||
      __builtin_mul_overflow(most, shares, &most)) {
    return all;
  }
  return std::min(most, all);
}

// Whether a part of a checkpoint holds a value that later ones are compared with: that of early
// stopping, or of a schedule, whose state has its name beside it.
bool holds_best(const Manifest& manifest, const std::string& part) {
  const auto found = manifest.parts.find(part);
  if (found == manifest.parts.end()) return false;
  const auto json = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto& state = json.contains("state") ? json["state"] : json;
  return state.is_object() && state.contains("best") && state["best"].is_number();
}

bool holds_best(const std::filesystem::path& checkpoints, const KeepBest& by) {
  try {
    return best_checkpoint(checkpoints, by).has_value();
  } catch (const std::exception&) {
    return false;  // A folder that cannot be read has its own error.
  }
}

std::vector<Compared> compared_values(const TrainerBase& trainer, const Manifest& manifest) {
  const config::Node& resolved = trainer.resolved_config();
  std::vector<Compared> found;
  if (const auto best = checkpoint_config(resolved).keep_best;
      best && holds_best(std::filesystem::path(trainer.config().exp_dir) / "checkpoints", *best)) {
    found.push_back({"checkpoint.keep_best", best->metric});
  }
  const auto add = [&](const std::string& section, const std::string& part) {
    const config::Node* metric = resolved.find_path(section + ".metric");
    if (metric == nullptr || metric->is_null() || !holds_best(manifest, part)) return;
    found.push_back({section, metric->text});
  };
  add("early_stopping", "early_stopping");
  for (const OptimizerPart& part : trainer.optimizers()) {
    add(part.schedule_field, part.name().empty() ? "lr_scheduler" : "lr_scheduler_" + part.name());
  }
  return found;
}

// Whether it is a value of the texts that a validation writes (validation.generate): for the first
// samples of the data, as many on any number of ranks.
bool is_of_texts(const std::string& metric) {
  return metric == "exact_match" || metric.starts_with("rouge");
}

// Validation data, and by what values of it the run goes.
struct Measured {
  std::string what;  // " of the set books", or empty
  const BatchSource* data = nullptr;
  std::vector<std::string> fields;
};

std::vector<Measured> measured_data(const TrainerBase& trainer, const Manifest& manifest) {
  std::vector<Measured> all;
  if (trainer.validation_data() != nullptr) all.push_back({"", trainer.validation_data(), {}});
  for (const ValidationSet& set : trainer.validation_sets()) {
    all.push_back({" of the set " + set.name, set.data.get(), {}});
  }
  for (const Compared& value : compared_values(trainer, manifest)) {
    const std::string set = value.metric.substr(0, value.metric.find('/'));
    const bool is_of_set = set != value.metric;
    if (!is_of_set && is_of_texts(value.metric)) continue;
    for (Measured& measured : all) {
      const bool is_its = is_of_set ? measured.what == " of the set " + set : measured.what.empty();
      if (is_its) measured.fields.push_back(value.field);
    }
  }
  std::erase_if(all, [](const Measured& measured) { return measured.fields.empty(); });
  return all;
}

// What measures the earlier samples again, if a number of micro-batches does.
std::string remedy(int64_t then, int64_t all, int64_t samples_of_batches) {
  if (then < all && then % samples_of_batches == 0) {
    return fmt::format("validation.max_batches={} measures the earlier ones again",
                       then / samples_of_batches);
  }
  return fmt::format("validation.max_batches=null measures all {}{}", all,
                     then < all ? " on any number of ranks from now on" : " again");
}

}  // namespace

std::vector<std::string> other_validations(const TrainerBase& trainer, const Manifest& manifest,
                                           const config::Node& earlier) {
  const auto earlier_batch_size = integer_at(earlier, "training.batch_size");
  if (!earlier_batch_size) return {};
  const int64_t batch_size = trainer.training().batch_size;
  const auto max_batches = validation_amount(trainer.resolved_config()).max_batches;
  std::vector<std::string> lines;
  for (const Measured& measured : measured_data(trainer, manifest)) {
    const int64_t all = measured.data->samples_per_epoch();
    const int64_t then =
        taken(all, integer_at(earlier, "validation.max_batches"), *earlier_batch_size,
              shares_of(trainer.resolved_config(), manifest.world_size));
    const int64_t now = taken(all, max_batches, batch_size, trainer.shares());
    if (then == now) continue;
    lines.push_back(fmt::format(
        "validations{} measured {} samples before this resume and measure {} now "
        "(validation.max_batches, on each rank): {} will compare values of different samples; {}",
        measured.what, then, now, fmt::join(measured.fields, " and "),
        remedy(then, all, batch_size * trainer.shares())));
  }
  return lines;
}

}  // namespace phalanx
