// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/batch_source.h"
#include "trainer/api/task_model.h"
#include "trainer/cli/command.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/average_flag.h"
#include "trainer/commands/data/data_arguments.h"
#include "trainer/commands/positionals.h"
#include "trainer/commands/use/data_use.h"
#include "trainer/commands/use/measured_amount.h"
#include "trainer/commands/use/override_keys.h"
#include "trainer/commands/use/trained_model.h"
#include "trainer/commands/use/value_lines.h"
#include "trainer/config/syntax/compose.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/io/count_progress.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/run_in_ranks.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBound = "validation.max_batches";

std::string name_of_set(const std::vector<fs::path>& sets, size_t set) {
  return sets.empty() ? "validation" : sets[set].string();
}

void print_values(const std::string& model, const std::vector<fs::path>& sets,
                  const std::vector<NamedValues>& values) {
  const std::vector<std::string> lines = value_lines(values);
  fmt::print("{}\n", model);
  for (size_t set = 0; set < values.size(); ++set) {
    if (!sets.empty()) fmt::print("{}\n", name_of_set(sets, set));
    fmt::print("{}", lines[set]);
  }
}

// One object a set. JSON has no NaN: it is null.
void print_json(const std::string& model, const std::vector<fs::path>& sets,
                const std::vector<NamedValues>& values) {
  for (size_t set = 0; set < values.size(); ++set) {
    nlohmann::ordered_json line{{"model", model}, {"data", name_of_set(sets, set)}};
    for (const auto& [name, value] : values[set]) {
      line[name] = std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
    }
    fmt::print("{}\n", line.dump());
  }
}

// Whether the command line bounds what is measured, or the file of --config.
bool is_bounded_here(const DataUse& use) {
  if (use.layer) {
    config::Diagnostics mistakes;  // Told where the config is made.
    const config::Node layer = config::read_files(std::array{*use.layer}, mistakes);
    if (layer.find_path(kBound) != nullptr) return true;
  }
  return std::ranges::any_of(use.overrides, [](const auto& override) {
    const std::string key = key_of(override);
    return key == kBound || key == "validation";
  });
}

// A bound of the run's own validations is none for files that are named here: they are read whole,
// unless the command bounds them, too.
ValidationAmount amount_of(const config::Node& resolved, const DataUse& use) {
  ValidationAmount amount = validation_amount(resolved);
  if (!use.files.empty() && !is_bounded_here(use)) amount.max_batches.reset();
  return amount;
}

/// Says of each set of data, once it is open, how much of it is measured. What is referred to must
/// outlive it.
class AmountsOfSets {
 public:
  AmountsOfSets(const TrainerBase& trainer, const ValidationAmount& amount,
                const std::vector<std::vector<fs::path>>& sets, Console& console)
      : trainer_(trainer), amount_(amount), sets_(sets), console_(console) {}

  /// Before each part of an evaluation: a set may have several, such as named sets and texts.
  void say() {
    // The next set is opened before the one before it is closed.
    const BatchSource* open = trainer_.validation_data();
    if (set_ > 0 && open == said_) return;
    said_ = open;
    const std::string file = sets_.empty() ? "" : sets_[set_].front().string();
    ++set_;
    for (const std::string& line : measured_lines(trainer_, amount_, file)) console_.line(line);
  }

 private:
  const TrainerBase& trainer_;
  const ValidationAmount& amount_;
  const std::vector<std::vector<fs::path>>& sets_;
  Console& console_;
  const BatchSource* said_ = nullptr;
  size_t set_ = 0;  // The next one.
};

int run(const Invocation& invocation) {
  const TrainedModel trained(invocation.arguments.front(), invocation.has("--average"));
  const DataArguments asked =
      data_arguments(Arguments(invocation.arguments).subspan(1), "to evaluate");
  const DataUse use{.kind = DataUse::Kind::evaluate,
                    .files = asked.files,
                    .overrides = asked.overrides,
                    .layer = invocation.value("--config"),
                    .tokenizer = invocation.value("--tokenizer")};
  const UserConfig user = config_for(use, trained);
  config::Node resolved = trained.resolved(user);
  if (!asked.files.empty()) leave_out_validation_sets(resolved);
  const RunPlan plan = plan_of(*user.entry, resolved);
  std::vector<std::vector<fs::path>> sets;
  for (const fs::path& set : asked.files) sets.push_back({set});
  const ValidationAmount amount = amount_of(resolved, use);
  return run_in_ranks(plan, resolved, [&](World& world) {
    const auto trainer = build_trainer(*user.entry, plan, resolved, world, Purpose::evaluation);
    // What is measured goes to standard output, alone.
    Console console(STDERR_FILENO);
    TrainedModel::Loaded loaded;
    CountProgress progress;
    std::optional<ShownProgress> shown;
    AmountsOfSets amounts(dynamic_cast<const TrainerBase&>(*trainer), amount, sets, console);
    const WorkCount count{.begin =
                              [&](int64_t pieces, const char* unit) {
                                progress.begin_of(unit, static_cast<uint64_t>(pieces));
                                amounts.say();
                                if (!shown) shown.emplace(console, "evaluating", progress);
                              },
                          .one_done = [&] { ++progress.done; }};
    const std::vector<NamedValues> values = trainer->evaluate(
        [&](const TaskModel& model) {
          loaded = trained.load(console, world.ranks(), model, resolved);
        },
        {.sets = sets, .amount = amount, .count = world.ranks().is_first() ? count : WorkCount()});
    shown.reset();
    if (!world.ranks().is_first()) return 0;
    for (const auto& warning : loaded.warnings) print_warning(warning);
    (invocation.has("--json") ? print_json : print_values)(loaded.name, asked.files, values);
    return 0;
  });
}

}  // namespace

Command evaluate_command() {
  return {
      .name = "evaluate",
      .summary = "validate the model of a run, a checkpoint or a Hugging Face folder",
      .help =
          "Computes the validation loss of the newest good checkpoint in a run's folder, of one "
          "checkpoint, or of a model that save_pretrained wrote. By default with the config and "
          "the validation data of the run; DATA are other files, each a set of its own, which are "
          "read whole, as the config's task reads its validation data; validation.max_batches on "
          "the "
          "command line bounds it. Of a mixture task.data.validation_source says how they are "
          "read: "
          "'task.data.validation_source={name: bytes, files: [DATA]}', say. RUN@best and "
          "RUN@200 name a checkpoint of a run. A causal model of a Hugging Face folder reads all "
          "of DATA by its tokenizer, or --tokenizer, each document by itself; another folder needs "
          "a task: task.name=, and its data.",
      .examples = {"evaluate runs/quickstart/run_0",
                   "evaluate runs/quickstart/run_0/checkpoints/step-00000200",
                   "evaluate runs/quickstart/run_0 a.txt b.txt --json", "evaluate my_gpt2 a.txt"},
      .positionals = {{"FOLDER", Positional::Takes::run},
                      {"DATA", Positional::Takes::path, Positional::Count::any},
                      kOverrides},
      .flags = {average_flag(),
                layer_flag(),
                {"--json", "one JSON object a set of data"},
                {.name = "--tokenizer",
                 .summary = "a tokenizer's folder or one of its files, or bytes; default: the "
                            "model's own",
                 .takes = Flag::Takes::path}},
      .run = run,
  };
}

}  // namespace phalanx
