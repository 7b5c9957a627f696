// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/start_screen.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/api/task_modules.h"
#include "trainer/config/tree/node.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/parallel/device.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

// "12 of 7087872 parameters each; 39383808 parameters outside": equal neighbours are told once.
std::string units_line(const std::vector<UnitSummary>& units) {
  std::vector<std::string> parts;
  for (size_t i = 0; i + 1 < units.size();) {
    size_t same = 1;
    while (i + same + 1 < units.size() && units[i + same].parameters == units[i].parameters) ++same;
    parts.push_back(
        fmt::format("{} of {} parameters{}", same, units[i].parameters, same == 1 ? "" : " each"));
    i += same;
  }
  if (parts.empty()) parts.emplace_back("none");
  return fmt::format("{}; {} parameters outside", fmt::join(parts, ", "), units.back().parameters);
}

std::string name_of(const TrainerBase& trainer, const char* section) {
  return trainer.resolved_config().find(section)->find("name")->text;
}

// "adamw"; of several "critic: adamw", and the schedule where it has its own.
std::string optimizer_text(const TrainerBase& trainer, const auto& part) {
  if (part.name().empty()) return name_of(trainer, "optimizer");
  const config::Node& resolved = trainer.resolved_config();
  std::string text = fmt::format("{}: {}", part.name(),
                                 resolved.find_path("optimizers." + part.name() + ".name")->text);
  if (part.schedule_field != "lr_scheduler") {
    text += ", lr_scheduler " + resolved.find_path(part.schedule_field + ".name")->text;
  }
  return text;
}

std::string counted(int64_t number, const char* noun, const char* plural) {
  return fmt::format("{} {}", number, number == 1 ? noun : plural);
}

// How much of validation data is used: "3 micro-batches a rank of 125 (validation.max_batches)".
std::string used_text(const TrainerBase& trainer, const BatchSource& data) {
  const int64_t all = data.batches_per_epoch();
  const auto most = validation_amount(trainer.resolved_config()).max_batches;
  return fmt::format(
      "{} a rank{}", counted(std::min(most.value_or(all), all), "micro-batch", "micro-batches"),
      most && *most < all ? fmt::format(" of {} (validation.max_batches)", all) : "");
}

// The task's own validation data, then each named set: "125 micro-batches a rank; held back: the
// last 1000 of 10000 bytes", "books: 300 samples, 75 micro-batches a rank".
std::vector<std::string> validation_lines(const TrainerBase& trainer) {
  std::vector<std::string> lines;
  if (const BatchSource* const data = trainer.validation_data()) {
    const std::string held_back = trainer.task_model().task().held_back();
    lines.push_back(used_text(trainer, *data) +
                    (held_back.empty() ? "" : "; held back: " + held_back));
  }
  for (const ValidationSet& set : trainer.validation_sets()) {
    lines.push_back(fmt::format("{}: {}, {}", set.name,
                                counted(set.data->samples_per_epoch(), "sample", "samples"),
                                used_text(trainer, *set.data)));
  }
  return lines;
}

// "900 training samples, 100 validation samples, 300 more in 2 sets".
std::string data_line(const TrainerBase& trainer) {
  const BatchSource* const own = trainer.validation_data();
  const auto& sets = trainer.validation_sets();
  int64_t in_sets = 0;
  for (const ValidationSet& set : sets) in_sets += set.data->samples_per_epoch();
  return fmt::format(
      "{} training samples, {} validation samples{}", trainer.training_data().samples_per_epoch(),
      own != nullptr ? own->samples_per_epoch() : 0,
      sets.empty()
          ? ""
          : fmt::format(", {} more in {}", in_sets, counted(std::ssize(sets), "set", "sets")));
}

// "12 steps; each 8 samples = 2 ranks x 1 micro-batch of 4"; without the ranks where all have the
// same samples.
std::string length_line(const TrainerBase& trainer) {
  const auto total = trainer.total_steps();
  const int64_t ranks = trainer.shares();
  const int64_t of_rank = trainer.global_batch_size() / ranks;
  const bool are_dealt = trainer.data_ranks().world_size() == trainer.ranks().world_size();
  return fmt::format(
      "{}; each {} = {}{} of {}",
      total ? counted(*total, "step", "steps") : "steps until the time is over",
      counted(trainer.global_batch_size(), "sample", "samples"),
      are_dealt ? counted(ranks, "rank", "ranks") + " x " : std::string(),
      counted(of_rank / trainer.training().batch_size, "micro-batch", "micro-batches"),
      trainer.training().batch_size);
}

std::string threads_text() { return counted(at::get_num_threads(), "thread", "threads"); }

// What the launcher or parallel.numa_binding has left to this rank.
std::string cores_line(const Ranks& ranks) {
  const std::string cores = describe(allowed_units());
  if (ranks.is_single_rank()) return fmt::format("{}; {}", cores, threads_text());
  return fmt::format("rank {} on {}", ranks.rank(), cores);
}

std::string ranks_line(const Ranks& ranks) {
  return fmt::format("{}, {} on this host; {} each", ranks.world_size(), ranks.local_world_size(),
                     threads_text());
}

}  // namespace

RunDescription describe_run(TrainerBase& trainer) {
  RunDescription run;
  run.exp_name = trainer.config().exp_name.value_or("");
  run.exp_dir = trainer.config().exp_dir;
  run.log_dir = (std::filesystem::path(run.exp_dir) / trainer.config().log_dir_name).string();
  run.max_steps = trainer.total_steps();
  run.model = name_of(trainer, "model");
  run.validation_due = trainer.state().validation_due;
  run.parameters = count_parameters(trainer.model());

  const auto add = [&](std::string_view name, const std::string& text) {
    run.lines.push_back(fmt::format("{:<11}{}", name, text));
  };
  add("run", run.exp_dir);
  add("task", name_of(trainer, "task"));
  add("model", fmt::format("{}, {} parameters{}", run.model, run.parameters,
                           trainer.config().use_double_weight_precision ? ", double" : ""));
  for (const std::string& line : describe_task_modules(trainer.model())) add("with", line);
  add("units", units_line(summarize_units(trainer.model())));
  for (const auto& part : trainer.optimizers()) {
    add("optimizer", optimizer_text(trainer, part));
    for (const auto& group : part.group_summaries) add("", group);
  }
  add("data", data_line(trainer));
  const char* name = "validation";
  for (const std::string& line : validation_lines(trainer)) {
    add(name, line);
    name = "";
  }
  add("length", length_line(trainer));
  add("device", describe_device(trainer.device()));
  for (const auto& line : trainer.screen_lines()) add(line.name, line.text);
  if (!trainer.ranks().is_single_rank()) add("ranks", ranks_line(trainer.ranks()));
  add("cores", cores_line(trainer.ranks()));
  if (const auto& autocast = trainer.task_model().autocast()) {
    add("precision", fmt::format("{} by autocast", c10::toString(autocast->dtype)));
  }
  for (const auto& line : trainer.task_model().description()) add("sharding", line);
  add("logs", run.log_dir);
  add("saves", (std::filesystem::path(run.exp_dir) / "checkpoints").string());
  if (trainer.state().step > 0) {
    add("resumed", fmt::format("after step {} (epoch {}, {} samples)", trainer.state().step,
                               trainer.state().epoch, trainer.state().samples));
  }
  return run;
}

}  // namespace phalanx
