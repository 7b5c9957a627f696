// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/adapter_base.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "trainer/api/adapters.h"
#include "trainer/api/task_model.h"
#include "trainer/api/task_modules.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/fingerprint.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/load/sources.h"
#include "trainer/checkpoint/load/warm_start.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/checkpoint_config.h"
#include "trainer/mixins/checkpoint_progress.h"
#include "trainer/mixins/first_weights.h"
#include "trainer/mixins/task_weights.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

AdapterBase::AdapterBase(std::filesystem::path source, std::string fingerprint,
                         std::vector<std::string> notes)
    : source_(std::move(source)), fingerprint_(std::move(fingerprint)), notes_(std::move(notes)) {}

void AdapterBase::require_that_of(const Checkpoint& checkpoint) const {
  const std::string& theirs = checkpoint.manifest.base;
  if (fingerprint_.empty() || theirs == fingerprint_) return;
  throw UserError(fmt::format(
      "'{}' holds {}, and checkpoint.load_from is '{}': name what they were trained beside",
      checkpoint.path.string(),
      theirs.empty() ? std::string("a whole model, no adapters")
                     : fmt::format("adapters of another model (its fingerprint is {}, here it is "
                                   "{})",
                                   theirs, fingerprint_),
      source_.string()));
}

void require_adapter_base(const CheckpointConfig& config) {
  if (!config.load_from) {
    throw UserError(
        "lora.target_modules is set, and checkpoint.load_from is null: adapters are trained beside "
        "a model that is there; name its folder in checkpoint.load_from");
  }
  if (config.load_vocabulary) {
    throw UserError(
        "lora.target_modules is set, and checkpoint.load_vocabulary, too: adapters leave the "
        "vocabulary of their model as it is");
  }
  if (config.load_strict && config.load_model_only) return;
  throw UserError(
      "lora.target_modules is set, and adapters need the whole model that they are trained beside, "
      "and only that: leave out checkpoint.load_strict=false and checkpoint.load_model_only=false");
}

namespace {

// With those of the task's modules, which a model without adapters of the same task has, too.
std::vector<ShardedTensorView> views_of_base(const TaskModel& model) {
  std::vector<ShardedTensorView> views = model.base_views();
  for (auto& view : model.views()) {
    if (is_of_task(view.name)) views.push_back(std::move(view));
  }
  return views;
}

}  // namespace

AdapterBase load_adapter_base(Console& console, const Ranks& ranks, const TaskModel& model,
                              const config::Node& resolved) {
  if (!has_adapters(model.model())) return {};
  const CheckpointConfig config = checkpoint_config(resolved);
  std::vector<std::filesystem::path> sources;
  on_first_rank(ranks, [&] {
    check_first_weights(config, resolved);
    sources = sources_at(*config.load_from);
  });
  std::optional<Checkpoint> base;
  std::vector<std::string> notes;
  const auto load = [&](const Checkpoint& checkpoint) {
    base = named_as_ours(checkpoint, config, resolved);
    const SharedModules shared = shared_modules(*base, views_of_base(model), model.model());
    notes = shared.notes;
    show_on_first_rank(
        console, ranks, "loading " + config.load_from->string(), [&](ByteProgress& progress) {
          warm_start(shared.source, shared.views, {.strict = true, .prefixes = {}}, &progress);
        });
  };
  load_first_good(ranks, sources, load, {.open = open_source});
  return {*config.load_from, fingerprint_of(*base, ranks), std::move(notes)};
}

}  // namespace phalanx
