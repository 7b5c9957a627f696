// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/task_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "trainer/api/task_model.h"
#include "trainer/api/task_modules.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/checkpoint/load/sources.h"
#include "trainer/checkpoint/load/task_tensors.h"
#include "trainer/checkpoint/load/warm_start.h"
#include "trainer/config/tree/node.h"
#include "trainer/hugging_face/folder.h"
#include "trainer/hugging_face/model_of_folder.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/hugging_face/our_tensors.h"
#include "trainer/metrics/console.h"
#include "trainer/mixins/checkpoint_progress.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::string prefix_of(const TaskModule& module) {
  return fmt::format("{}{}.", kTaskPrefix, module.name);
}

// The tensors of a module by their names in it.
std::vector<ShardedTensorView> views_within(const TaskModel& model, const TaskModule& module) {
  const std::string prefix = prefix_of(module);
  std::vector<ShardedTensorView> views = model.views();
  std::erase_if(views, [&](const auto& view) { return !view.name.starts_with(prefix); });
  for (ShardedTensorView& view : views) view.name.erase(0, prefix.size());
  return views;
}

// A model under our names, without what its own task had.
Checkpoint model_in(const Checkpoint& source) {
  Checkpoint model = source;
  if (is_hugging_face_folder(source.path)) {
    config::Node tree = config::Node::map();
    take_model_of(source.path, tree);
    const config::Node section = resolved_model(*tree.find("model"));
    const HuggingFaceModel table =
        hugging_face_model_of(hugging_face_model(section.find("name")->text), section);
    static_cast<Contents&>(model.manifest) = OurTensors(source, table).contents();
  }
  leave_out_unknown_modules(model.manifest, {});
  return model;
}

void require_fit(const TaskModule& module, const Checkpoint& source,
                 const std::vector<ShardedTensorView>& views) {
  const Mismatches found = find_mismatches(source.manifest, kModelPart, views);
  std::vector<std::string> lines = found.missing;
  lines.insert(lines.end(), found.unexpected.begin(), found.unexpected.end());
  lines.insert(lines.end(), found.shapes.begin(), found.shapes.end());
  if (lines.empty()) return;
  throw UserError(fmt::format(
      "'{}' does not fit the task's module '{}':\n  {}\nname the weights of a module of "
      "this size",
      source.path.string(), module.name, fmt::join(lines, "\n  ")));
}

}  // namespace

SharedModules shared_modules(const Checkpoint& source, std::vector<ShardedTensorView> views,
                             ModelBase& model) {
  SharedModules shared{.source = source, .views = std::move(views), .notes = {}};
  const std::string from = source.path.string();
  for (const std::string& name : leave_out_unknown_modules(shared.source.manifest, shared.views)) {
    shared.notes.push_back(
        fmt::format("{} of '{}' is left there: the task has no such module", name, from));
  }
  for (const TaskModule& module : task_modules(model)) {
    if (!module.load_from) continue;
    const std::string prefix = prefix_of(module);
    std::erase_if(shared.views, [&](const auto& view) { return view.name.starts_with(prefix); });
  }
  for (const std::string& name : leave_out_absent_modules(shared.views, shared.source.manifest)) {
    shared.notes.push_back(fmt::format("'{}' has nothing of {}: it is initialised", from, name));
  }
  leave_out_unknown_modules(shared.source.manifest, shared.views);
  return shared;
}

std::vector<std::string> load_task_modules(Console& console, const Ranks& ranks,
                                           const TaskModel& model) {
  std::vector<std::string> taken;
  for (const TaskModule& module : task_modules(model.model())) {
    if (!module.load_from) continue;
    std::vector<fs::path> sources;
    on_first_rank(ranks, [&] { sources = sources_of(module); });
    const std::vector<ShardedTensorView> views = views_within(model, module);
    const auto load = [&](const Checkpoint& found) {
      const Checkpoint source = model_in(found);
      require_fit(module, source, views);
      show_on_first_rank(console, ranks, "loading " + module.load_from->string(),
                         [&](ByteProgress& progress) {
                           warm_start(source, views, {.strict = true, .prefixes = {}}, &progress);
                         });
    };
    const LoadedCheckpoint loaded = load_first_good(ranks, sources, load, {.open = open_source});
    taken.push_back(fmt::format("{}{}: {}: {} tensors", kTaskPrefix, module.name,
                                loaded.checkpoint->path.string(), views.size()));
  }
  return taken;
}

}  // namespace phalanx
