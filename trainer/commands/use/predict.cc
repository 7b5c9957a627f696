// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/api/prediction.h"
#include "trainer/api/prediction_source.h"
#include "trainer/api/task_model.h"
#include "trainer/base/exit_codes.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/cli/command.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/average_flag.h"
#include "trainer/commands/data/data_arguments.h"
#include "trainer/commands/positionals.h"
#include "trainer/commands/use/data_use.h"
#include "trainer/commands/use/resumable_file.h"
#include "trainer/commands/use/trained_model.h"
#include "trainer/config/syntax/print.h"
#include "trainer/io/count_progress.h"
#include "trainer/memory/memory.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"
#include "trainer/mixins/predict_mixin.h"
#include "trainer/mixins/validation_mixin.h"
#include "trainer/ranks/collectives/numbers.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/run_in_ranks.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Six digits, so that the order in which a machine adds does not show; JSON has no NaN.
nlohmann::ordered_json six_digits(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

std::string row_of(int64_t sample, const Prediction& prediction) {
  nlohmann::ordered_json row{{"index", sample}};
  for (const auto& [name, value] : prediction) {
    if (const auto* number = std::get_if<double>(&value)) {
      row[name] = six_digits(*number);
    } else if (const auto* count = std::get_if<int64_t>(&value)) {
      row[name] = *count;
    } else {
      row[name] = std::get<std::string>(value);
    }
  }
  return row.dump();
}

std::string row_of_problem(int64_t sample, const std::string& problem) {
  return nlohmann::ordered_json{{"index", sample}, {"error", problem}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// A row of a task's own fields may have an error, too.
bool says_problem(const std::string& row) {
  const auto json = nlohmann::json::parse(row, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.size() == 2 && json.contains("index") && json.contains("error");
}

/// All that is known before a rank is there.
class Predicting {
 public:
  explicit Predicting(const Invocation& invocation);

  const UserConfig& user() const { return user_; }
  const config::Node& resolved() const { return resolved_; }

  /// The exit code of a command that no signal ends.
  int run(const RunPlan& plan, World& world) const;

 private:
  std::string identity(const std::string& model, const PredictionSource& source) const;
  PredictionRequest request() const;
  int tell_of_marked(int64_t marked, int64_t written, const Ranks& ranks) const;

  TrainedModel trained_;
  DataArguments asked_;
  UserConfig user_;
  config::Node resolved_;
  PredictConfig config_;
  fs::path output_;
};

Predicting::Predicting(const Invocation& invocation)
    : trained_(invocation.arguments.front(), invocation.has("--average")),
      asked_(data_arguments(Arguments(invocation.arguments).subspan(1), "to make predictions of")),
      user_(config_for({.kind = DataUse::Kind::predict,
                        .files = asked_.files,
                        .overrides = asked_.overrides,
                        .layer = invocation.value("--config"),
                        .tokenizer = invocation.value("--tokenizer")},
                       trained_)),
      resolved_(trained_.resolved(user_)),
      config_(predict_config(resolved_)) {
  leave_out_validation_sets(resolved_);
  if (asked_.files.empty()) throw UserError("name a file to make predictions of");
  output_ = invocation.required("--output");
}

// What the rows depend on. How many ranks there are is not among it, nor how they share the model.
std::string Predicting::identity(const std::string& model, const PredictionSource& source) const {
  nlohmann::ordered_json identity{{"model", model}, {"input", source.fingerprint()}};
  for (const char* section : {"model", "task", "mixed_precision", "predict"}) {
    if (const config::Node* node = resolved_.find(section)) {
      identity[section] = nlohmann::json::parse(config::to_json(*node));
    }
  }
  return identity.dump(2) + "\n";
}

PredictionRequest Predicting::request() const {
  return {.files = asked_.files,
          .batch_size = config_.batch_size,
          .marks_problems = config_.on_error == OnPredictError::mark,
          .format = row_of,
          .format_problem = row_of_problem,
          .done = {},
          .take = {}};
}

// The same on all ranks; `marked` are those that this rank has made or found in the file.
int Predicting::tell_of_marked(int64_t marked, int64_t written, const Ranks& ranks) const {
  const std::vector<int64_t> all =
      all_reduce_numbers(ranks, std::vector{marked, written}, Reduction::sum);
  if (all[0] == 0) return 0;
  const bool are_too_many =
      static_cast<double>(all[0]) > config_.max_marked * static_cast<double>(all[1]);
  if (ranks.is_first()) {
    print_warning(fmt::format(
        "{} of {} rows say why there is no prediction{}", all[0], all[1],
        are_too_many ? fmt::format(": more than predict.max_marked ({}) allows", config_.max_marked)
                     : ""));
  }
  return are_too_many ? kFailure : 0;
}

int Predicting::run(const RunPlan& plan, World& world) const {
  const Ranks& ranks = world.ranks();
  const auto trainer = build_trainer(*user_.entry, plan, resolved_, world, Purpose::use);
  Console console(STDERR_FILENO);
  std::string model;
  ResumableFile file(output_);
  CountProgress progress;
  std::optional<ShownProgress> shown;
  PredictionRequest request = this->request();
  int64_t marked = 0;
  int64_t written = 0;
  request.format_problem = [&](int64_t sample, const std::string& problem) {
    ++marked;
    return row_of_problem(sample, problem);
  };
  request.done = [&](const PredictionSource& source) {
    const int64_t samples = source.samples();
    const int64_t done = file.begin(identity(model, source), config_.batch_size, samples,
                                    [&](const std::string& row) {
                                      if (request.marks_problems && says_problem(row)) ++marked;
                                    });
    written = done;
    progress.begin_of("predictions", static_cast<uint64_t>(samples), static_cast<uint64_t>(done));
    shown.emplace(console, "predicting", progress);
    return done;
  };
  request.take = [&](const std::vector<std::string>& rows) {
    file.add(rows);
    written += std::ssize(rows);
    progress.done = static_cast<uint64_t>(file.written());
  };
  trainer->predict(
      [&](const TaskModel& filled) {
        const auto loaded = trained_.load(console, ranks, filled, resolved_);
        model = loaded.name;
        if (!ranks.is_first()) return;
        for (const auto& warning : loaded.warnings) print_warning(warning);
      },
      request);
  shown.reset();
  const int code = tell_of_marked(marked, written, ranks);
  if (ranks.is_first()) file.finish();
  return code;
}

int run(const Invocation& invocation) {
  const Predicting predicting(invocation);
  const RunPlan plan = plan_of(*predicting.user().entry, predicting.resolved());
  return run_in_ranks(plan, predicting.resolved(), [&](World& world) {
    StopSignal::install();
    use_caching_allocator();
    const int code = predicting.run(plan, world);
    const int signal = StopSignal::received();
    return signal == 0 ? code : exit_code_after(signal);
  });
}

}  // namespace

Command predict_command() {
  return {
      .name = "predict",
      .summary = "make predictions with the model of a run, a checkpoint or a Hugging Face folder",
      .help =
          "Makes a prediction of each line of INPUT, plain text or JSONL (.jsonl), or of each "
          "object of a JSON array (.json), and writes a line of JSON for each, in the same order. "
          "A language model gives the log-probability "
          "of the line's tokens but the first, their number, and the perplexity; a sequence-to- "
          "sequence model the text that it writes, one of instruction tuning its answer "
          "(task.generation). What is written does not depend on the number of ranks. FILE "
          "appears when it is whole; a command that was killed, started again, goes on from "
          "FILE.part. A line that cannot be read ends the command, or gets a row that says why: "
          "predict.on_error=mark. How many these are is said at the end; above predict.max_marked "
          "the "
          "exit code is 1. A Hugging Face folder needs a task, and no training data: "
          "task.name=language_modeling, for instance.",
      .examples = {"predict runs/my/run_0 documents.jsonl --output=scores.jsonl",
                   "predict runs/t5/run_0 articles.jsonl --output=summaries.jsonl "
                   "task.generation.num_beams=4 predict.batch_size=16"},
      .positionals = {{"FOLDER", Positional::Takes::run},
                      {"INPUT", Positional::Takes::path, Positional::Count::any},
                      kOverrides},
      .flags = {{.name = "--output",
                 .summary = "the file for the predictions",
                 .takes = Flag::Takes::new_file,
                 .is_required = true},
                average_flag(),
                layer_flag(),
                {.name = "--tokenizer",
                 .summary = "a tokenizer's folder or one of its files, or bytes; default: the "
                            "model's own",
                 .takes = Flag::Takes::path}},
      .run = run,
  };
}

}  // namespace phalanx
