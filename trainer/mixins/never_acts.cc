// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/never_acts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "trainer/config/tree/ineffective.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/mixins/logging_config.h"

namespace phalanx {
namespace {

std::string counted(int64_t number, const char* noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::optional<int64_t> integer_at(const config::Node& tree, const std::string& path) {
  const config::Node* node = tree.find_path(path);
  return node == nullptr || !node->is_scalar() ? std::nullopt
                                               : config::parse_integer(node->text).value;
}

std::string text_at(const config::Node& tree, const std::string& path) {
  const config::Node* node = tree.find_path(path);
  return node == nullptr ? "" : node->text;
}

bool is_true(const config::Node& tree, const std::string& path) {
  return text_at(tree, path) == "true";
}

// Where the user has written a value, or the first one in it.
const config::Origin* origin_in(const config::Node& node) {
  if (node.origin.is_written()) return &node.origin;
  for (const config::Node& item : node.items) {
    if (const config::Origin* const found = origin_in(item)) return found;
  }
  for (const config::Entry& entry : node.entries) {
    if (const config::Origin* const found = origin_in(entry.value)) return found;
  }
  return nullptr;
}

// The first of these fields that the user has set; empty: none is.
std::string set_among(const config::Node& resolved, const std::vector<std::string>& paths) {
  const auto found = std::ranges::find_if(paths, [&](const std::string& path) {
    const config::Node* node = resolved.find_path(path);
    return node != nullptr && origin_in(*node) != nullptr;
  });
  return found == paths.end() ? "" : *found;
}

// How often a run of this length validates by its config.
int64_t validations_of(const config::Node& resolved, const RunLength& run) {
  const auto by_steps = integer_at(resolved, "validation.every_n_steps");
  const auto epochs = integer_at(resolved, "validation.every_n_epochs");
  int64_t by_epochs = 0;  // Steps between two; 0: there are none.
  const bool is_beyond =
      epochs &&
      (__builtin_mul_overflow(*epochs, run.steps_per_epoch, &by_epochs) || by_epochs > run.steps);
  if (is_beyond) by_epochs = 0;
  int64_t count = by_steps ? run.steps / *by_steps : 0;
  if (by_epochs > 0) {
    count += run.steps / by_epochs;
    if (by_steps && *by_steps <= run.steps) {
      // Both divide multiples of by_epochs * factor.
      const int64_t factor = *by_steps / std::gcd(*by_steps, by_epochs);
      count -= run.steps / by_epochs / factor;
    }
  }
  const bool ends_with_one =
      (by_steps && run.steps % *by_steps == 0) || (by_epochs > 0 && run.steps % by_epochs == 0);
  if (is_true(resolved, "validation.at_end") && !ends_with_one) ++count;
  if (is_true(resolved, "validation.at_start")) ++count;
  return count;
}

// The sections of schedules: that of the config, and those of its optimizers.
std::vector<std::string> schedule_sections(const config::Node& resolved) {
  std::vector<std::string> sections{"lr_scheduler"};
  const config::Node* optimizers = resolved.find("optimizers");
  if (optimizers == nullptr) return sections;
  for (const config::Entry& entry : optimizers->entries) {
    sections.push_back("optimizers." + entry.key + ".lr_scheduler");
  }
  return sections;
}

/// Collects the lines of one run.
class NeverActing {
 public:
  NeverActing(const config::Node& resolved, const RunLength& run)
      : resolved_(resolved), run_(run), validations_(validations_of(resolved, run)) {}

  std::vector<std::string> lines() {
    look_at_log();
    look_at_retention();
    look_at_guards();
    look_at_validations();
    for (const std::string& section : schedule_sections(resolved_)) look_at_schedule(section);
    if (run_.has_ranks) look_at_hook();
    return std::move(lines_);
  }

 private:
  // Adds a line for the first of these fields that the user has set; nothing where none is.
  void add(const std::vector<std::string>& paths, const std::string& why) {
    const std::string path = set_among(resolved_, paths);
    if (path.empty()) return;
    lines_.push_back(fmt::format("{}{} never acts: {}", path, place_of(resolved_, {path}), why));
  }

  std::string run_has() const { return "the run has " + counted(run_.steps, "step"); }

  // The default in a config that was printed is nobody's choice.
  void look_at_log() {
    const config::Node* node = resolved_.find_path("logging.every_n_steps");
    const auto every = integer_at(resolved_, "logging.every_n_steps");
    if (!every || *every <= run_.steps) return;
    const bool is_printed = node->origin.source &&
                            node->origin.source->text.starts_with(config::kWholeConfig) &&
                            *every == LoggingConfig().every_n_steps;
    if (is_printed) return;
    add({"logging.every_n_steps"},
        fmt::format("{}, and it is {}: only the first and the last step are logged; lower it",
                    run_has(), *every));
  }

  void look_at_retention() {
    const auto every = integer_at(resolved_, "checkpoint.keep_every_n_steps");
    if (!every || *every <= run_.steps) return;
    add({"checkpoint.keep_every_n_steps"},
        fmt::format("{}, and it is {}: no checkpoint stays for it; lower it", run_has(), *every));
  }

  // Of several optimizers each update may count, and a step may have several.
  void look_at_guards() {
    const auto window = integer_at(resolved_, "guards.window");
    const config::Node* several = resolved_.find("optimizers");
    const bool has_one = several == nullptr || several->entries.empty();
    const std::string on_spike = text_at(resolved_, "guards.on_spike");
    if (!window || *window < run_.steps || !has_one || on_spike == "none") return;
    add({"guards.window", "guards.on_spike"},
        fmt::format("no step is a spike before there are {} good ones (guards.window), and {}; "
                    "lower guards.window",
                    *window, run_has()));
  }

  void look_at_validations() {
    const bool is_asked_for = is_true(resolved_, "validation.at_end") ||
                              is_true(resolved_, "validation.at_start") ||
                              integer_at(resolved_, "validation.every_n_steps") ||
                              integer_at(resolved_, "validation.every_n_epochs");
    if (!run_.can_validate || !is_asked_for) return;  // warn_without_validation tells.
    if (validations_ == 0) return look_at_intervals();
    const auto patience = integer_at(resolved_, "early_stopping.patience");
    const bool is_on = !text_at(resolved_, "early_stopping.metric").empty() &&
                       text_at(resolved_, "early_stopping.threshold").empty();
    if (!run_.is_new || !is_on || !patience || validations_ > *patience) return;
    add({"early_stopping.patience", "early_stopping.metric"},
        fmt::format("the run has {}, and a patience of {} needs {} at least: the first value is "
                    "the best so far; validate more often (validation.every_n_steps), or lower "
                    "early_stopping.patience",
                    counted(validations_, "validation"), *patience, beyond(*patience, 1)));
  }

  // One more than the largest number is none.
  static std::string beyond(int64_t patience, int64_t more) {
    int64_t sum = 0;
    return __builtin_add_overflow(patience, more, &sum) ? "more" : std::to_string(sum);
  }

  // No validation comes.
  void look_at_intervals() {
    const std::string why = run_has() + ", and ends before its first validation";
    add({"validation.every_n_steps", "validation.every_n_epochs"},
        why + "; lower it, or set validation.at_end");
    for (const std::string& field : fields_in_need_of_validation(resolved_)) add({field}, why);
  }

  void look_at_schedule(const std::string& section) {
    const std::string name = text_at(resolved_, section + ".name");
    if (name == "plateau") return look_at_plateau(section);
    const config::Node* milestones = resolved_.find_path(section + ".milestones");
    if (milestones == nullptr || !milestones->is_list()) return;
    const bool is_by_epochs = text_at(resolved_, "training.step_lr_interval") == "epoch";
    const int64_t length =
        is_by_epochs ? (run_.steps + run_.steps_per_epoch - 1) / run_.steps_per_epoch : run_.steps;
    // What follows a part of a chain begins one step behind its milestone.
    const int64_t last = name == "chain" ? length - 1 : length;
    const auto late = std::ranges::find_if(milestones->items, [last](const config::Node& item) {
      return config::parse_integer(item.text).value.value_or(0) > last;
    });
    if (late == milestones->items.end()) return;
    const std::string path = set_among(resolved_, {section + ".milestones"});
    if (path.empty()) return;
    lines_.push_back(fmt::format(
        "the milestone {} of {}{} is never reached: the run has {}; lower it", late->text, path,
        place_of(resolved_, {path}), counted(length, is_by_epochs ? "epoch" : "step")));
  }

  // The first value is the best so far; `patience` more may be no better.
  void look_at_plateau(const std::string& section) {
    const auto patience = integer_at(resolved_, section + ".patience");
    const bool is_seen = run_.is_new && run_.can_validate && validations_ > 0;
    if (!is_seen || !patience || validations_ - 1 > *patience) return;
    add({section + ".patience", section + ".name", section},
        fmt::format("the run has {}, and a patience of {} needs {} at least until the rate falls; "
                    "validate more often (validation.every_n_steps), or lower {}.patience",
                    counted(validations_, "validation"), *patience, beyond(*patience, 2), section));
  }

  void look_at_hook() {
    for (const char* const field : {"start_powerSGD_iter", "start_localSGD_iter"}) {
      const std::string section = "parallel.ddp.comm_hook";
      const auto start = integer_at(resolved_, section + "." + field);
      if (!start || *start < run_.steps) continue;
      add({section + "." + field, section + ".name", section},
          fmt::format("{}, and {}.{} is {}: all gradients are reduced as without the hook; lower "
                      "it",
                      run_has(), section, field, *start));
    }
  }

  const config::Node& resolved_;
  const RunLength run_;
  const int64_t validations_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> never_acting(const config::Node& resolved, const RunLength& run) {
  return NeverActing(resolved, run).lines();
}

std::vector<std::string> never_acting(const TrainerBase& trainer) {
  const auto steps = trainer.total_steps();
  if (!steps || trainer.finished()) return {};
  return never_acting(trainer.resolved_config(), {.steps = *steps,
                                                  .steps_per_epoch = trainer.steps_per_epoch(),
                                                  .is_new = trainer.state().step == 0,
                                                  .can_validate = trainer.can_validate(),
                                                  .has_ranks = !trainer.ranks().is_single_rank()});
}

std::vector<std::string> fields_in_need_of_validation(const config::Node& resolved) {
  std::vector<std::string> fields{"checkpoint.keep_best", "early_stopping.metric"};
  for (const std::string& section : schedule_sections(resolved)) {
    fields.push_back(section + ".metric");
  }
  std::erase_if(fields, [&](const std::string& field) {
    const config::Node* value = resolved.find_path(field);
    return value == nullptr || value->is_null();
  });
  return fields;
}

std::string place_of(const config::Node& resolved, const std::vector<std::string>& paths) {
  const std::string path = set_among(resolved, paths);
  if (path.empty()) return "";
  return fmt::format(" ({})", origin_in(*resolved.find_path(path))->text());
}

}  // namespace phalanx
