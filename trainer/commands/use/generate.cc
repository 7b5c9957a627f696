// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/interfaces/sequence_to_sequence_model.h"
#include "trainer/api/model_base.h"
#include "trainer/api/modules.h"
#include "trainer/api/task_model.h"
#include "trainer/base/exit_codes.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/cli/command.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/average_flag.h"
#include "trainer/commands/positionals.h"
#include "trainer/commands/use/generate_output.h"
#include "trainer/commands/use/generate_prompts.h"
#include "trainer/commands/use/generate_settings.h"
#include "trainer/commands/use/override_keys.h"
#include "trainer/commands/use/text_in_use.h"
#include "trainer/commands/use/trained_model.h"
#include "trainer/config/syntax/print.h"
#include "trainer/generation/generate_in_ranks.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/memory/memory.h"
#include "trainer/metrics/console.h"
#include "trainer/ranks/collectives/numbers.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/products.h"
#include "trainer/run/run_in_ranks.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// All that is known before a rank is there.
class Generation {
 public:
  explicit Generation(const Invocation& invocation);

  const UserConfig& user() const { return user_; }
  const config::Node& resolved() const { return resolved_; }
  /// Whether the command line says what computes products.
  bool chooses_products() const;

  void run(const RunPlan& plan, World& world) const;
  const PromptList& prompts() const { return prompts_; }

 private:
  void prepare_prompts();
  std::optional<int64_t> start_of_text() const;
  std::optional<int64_t> end_of_input() const;
  std::string identity(const std::string& model) const;
  void write_texts(const std::string& name, ModelBase& model, const Ranks& ranks) const;

  TrainedModel trained_;
  GenerateSettings settings_;
  UserConfig user_;
  config::Node resolved_;
  TextInUse text_;
  PromptList prompts_;
  bool goes_on_ = true;  // From a prompt; otherwise it reads one sequence and writes another.
  std::vector<GenerationInput> inputs_;
  std::optional<fs::path> output_;
};

// One process, unless the user asks for more: most models need no more to write.
UserConfig config_for_use(const TrainedModel& trained, const std::vector<std::string>& overrides) {
  std::vector<std::string> all{"launcher.processes=1"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return trained.config(all);
}

TextModel text_model(ModelBase& model, const TextInUse& text) {
  TextModel writer{.model = {}, .tokenizer = text.tokenizer.get(), .end_of_text = text.ends};
  if (auto* causal = model.as<CausalLanguageModel>()) {
    writer.model = causal;
  } else if (auto* sequence = model.as<SequenceToSequenceModel>()) {
    writer.model = sequence;
  } else {
    throw UserError(
        "this model writes no texts: it has neither the interface CausalLanguageModel nor "
        "SequenceToSequenceModel");
  }
  return writer;
}

// The numbers, from 1, of the prompts that something holds for.
template <class Holds>
std::vector<int64_t> numbers_of(const PromptList& prompts, const Holds& holds) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < prompts.all.size(); ++i) {
    if (holds(prompts.all[i])) numbers.push_back(static_cast<int64_t>(i) + 1);
  }
  return numbers;
}

void warn_of_long_prompts(const PromptList& prompts, const CausalLanguageModel& model) {
  const std::vector<int64_t> numbers = numbers_of(prompts, [&](const Prompt& prompt) {
    return std::ssize(prompt.tokens) > model.context_length();
  });
  if (numbers.empty()) return;
  const Prompt& first = prompts.all[static_cast<size_t>(numbers.front()) - 1];
  if (numbers.size() == 1) {
    print_warning(fmt::format("{} has {} tokens: the model sees the last {} of a text", first.place,
                              first.tokens.size(), model.context_length()));
  } else {
    print_warning(fmt::format(
        "{} have more tokens than the model sees, the last {} of a text; the first is {}",
        prompts_by_number(numbers), model.context_length(), first.place));
  }
}

// The exit code, the same on all ranks: 0 if something was written for each.
int tell_of_problems(const PromptList& prompts, const Ranks& ranks) {
  const std::vector<int64_t> numbers =
      numbers_of(prompts, [](const Prompt& prompt) { return !prompt.problem.empty(); });
  if (numbers.empty()) return 0;
  if (!ranks.is_first()) return kFailure;
  print_warning(fmt::format("nothing is written for {} of {}, {}: their lines have the field error",
                            numbers.size(), prompts.all.size(), prompts_by_number(numbers)));
  return kFailure;
}

Generation::Generation(const Invocation& invocation)
    : trained_(invocation.arguments.front(), invocation.has("--average")),
      settings_(generate_settings(trained_, Arguments(invocation.arguments).subspan(1),
                                  invocation.value("--config"))),
      user_(config_for_use(trained_, settings_.of_config)),
      resolved_(trained_.resolved_for_use(user_)),
      text_(text_in_use(trained_, {user_, resolved_, settings_.of_config},
                        {.tokenizer = invocation.value("--tokenizer"),
                         .special_tokens = settings_.command.special_tokens})),
      prompts_(read_prompts(invocation)) {
  if (const auto file = invocation.value("--output")) output_ = *file;
  if (!settings_.generation.stop.empty() && !text_.tokenizer) {
    throw UserError("stop names texts, and the model has no tokenizer: name one by --tokenizer");
  }
  prepare_prompts();
}

bool Generation::chooses_products() const {
  return std::ranges::any_of(settings_.of_config,
                             [](const auto& each) { return first_key(each) == "compute"; });
}

void Generation::prepare_prompts() {
  const ModelWithoutValues sizes = model_without_values(*chosen_section<ModelBase>(resolved_));
  const TextModel writer = text_model(*sizes.model, text_);
  const auto* causal = std::get_if<CausalLanguageModel*>(&writer.model);
  goes_on_ = causal != nullptr;
  const int64_t vocabulary_size =
      std::visit([](auto* each) { return each->vocabulary_size(); }, writer.model);
  encode_prompts(
      prompts_, text_.tokenizer.get(), vocabulary_size,
      goes_on_ ? PromptFrame{.start = start_of_text()} : PromptFrame{.end = end_of_input()});
  if (goes_on_) warn_of_long_prompts(prompts_, **causal);
  for (size_t i = 0; i < prompts_.all.size(); ++i) {
    const Prompt& prompt = prompts_.all[i];
    if (!prompt.problem.empty()) continue;
    inputs_.push_back({.tokens = prompt.tokens, .number = static_cast<int64_t>(i)});
  }
}

// What the folder or checkpoint names; else the token between two texts, behind which each began.
std::optional<int64_t> Generation::start_of_text() const {
  if (const auto start = trained_.start_of_text()) return start;
  return text_.ends.empty() ? std::nullopt : std::optional(text_.ends.front());
}

// Behind what a model reads that writes another sequence: a folder without a tokenizer names the
// token among its settings.
std::optional<int64_t> Generation::end_of_input() const {
  if (!text_.ends.empty()) return text_.ends.front();
  const auto& set = settings_.generation.eos_token_id;
  return set && !set->empty() ? std::optional(set->front()) : std::nullopt;
}

void convert(const TaskModel& model, ComputeDtype dtype) {
  if (dtype == ComputeDtype::as_loaded) return;
  if (model.has_engine()) {
    throw UserError(
        "dtype is for one process: on several, set mixed_precision.enabled=true and "
        "mixed_precision.dtype");
  }
  modules::convert_to(model.model().module(),
                      dtype == ComputeDtype::bfloat16 ? at::kBFloat16 : at::kHalf);
}

void Generation::run(const RunPlan& plan, World& world) const {
  const auto trainer = build_trainer(*user_.entry, plan, resolved_, world, Purpose::use);
  TrainedModel::Loaded loaded;
  const LoadModel load = [&](const TaskModel& model) {
    Console console(STDERR_FILENO);
    loaded = trained_.load(console, world.ranks(), model, resolved_);
    if (world.ranks().is_first()) {
      for (const auto& warning : loaded.warnings) print_warning(warning);
    }
    convert(model, settings_.command.dtype);
  };
  trainer->use(load, [&](const TaskModel& model) {
    write_texts(loaded.name, model.model(), world.ranks());
  });
}

// What the texts follow from. How many are written at a time is not among it.
std::string Generation::identity(const std::string& model) const {
  std::string prompts;
  for (const Prompt& prompt : prompts_.all) {
    prompts += fmt::format("{} {}\n", prompt.line.dump(), fmt::join(prompt.tokens, " "));
  }
  nlohmann::ordered_json identity{{"model", model},
                                  {"prompts", checksum_digits(checksum_of(prompts))},
                                  {"settings", nlohmann::json::parse(settings_.of_texts)}};
  for (const char* section : {"model", "mixed_precision"}) {
    if (const config::Node* node = resolved_.find(section)) {
      identity[section] = nlohmann::json::parse(config::to_json(*node));
    }
  }
  return identity.dump(2) + "\n";
}

void Generation::write_texts(const std::string& name, ModelBase& model, const Ranks& ranks) const {
  GenerateOutput out(prompts_, output_, goes_on_, settings_.generation.max_new_tokens);
  int64_t done = 0;
  on_first_rank(ranks, [&] { done = out.begin(identity(name)); });
  done = broadcast_number(ranks, done);
  const auto first = std::ranges::find_if(
      inputs_, [done](const GenerationInput& input) { return input.number >= done; });
  RankedTexts texts{.inputs = std::span(first, inputs_.end()),
                    .batch_size = settings_.command.batch_size};
  const bool shows_parts = out.streams() && settings_.generation.num_beams == 1;
  if (shows_parts) texts.on_first_text = [&](std::string_view part) { out.add(part); };
  texts.on_token = [&] { out.count_token(); };
  texts.take = [&](std::span<const GeneratedText> written) {
    if (out.streams() && !shows_parts) out.add(written.front().text);
    out.take(written);
  };
  generate_in_ranks(text_model(model, text_), settings_.generation, ranks, texts);
  if (ranks.is_first()) out.finish();
}

int run(const Invocation& invocation) {
  const Generation generation(invocation);
  RunPlan plan = plan_of(*generation.user().entry, generation.resolved());
  if (!generation.chooses_products()) plan.products.gemm = gemm_for_writing();
  return run_in_ranks(plan, generation.resolved(), [&](World& world) {
    StopSignal::install();
    use_caching_allocator();
    generation.run(plan, world);
    if (const int signal = StopSignal::received()) return exit_code_after(signal);
    return tell_of_problems(generation.prompts(), world.ranks());
  });
}

}  // namespace

Command generate_command() {
  return {
      .name = "generate",
      .summary = "write texts with the model of a run, a checkpoint or a Hugging Face folder",
      .help =
          "Goes on from a prompt, or answers it where the model reads one sequence and writes "
          "another. The prompt is --prompt, a file, or standard input. A file of JSONL has many: "
          "objects with the field 'prompt', or 'prompt_token_ids', a list of numbers; each comes "
          "back, in the same order, with 'generated', 'generated_tokens' and 'finish_reason' "
          "(length, eos or stop). Ctrl-C keeps what is written; with JSONL in --output the same "
          "command goes on from there. key=value sets the fields below, or fields of the run's "
          "config: launcher.processes=2 parallel.use_fsdp=true shares a large model.",
      .examples = {"generate runs/quickstart/run_0 --prompt=\"The first\"",
                   "generate my_gpt2 --input=prompts.jsonl --output=texts.jsonl temperature=0.8 "
                   "top_k=50",
                   "generate my_t5 num_beams=4 < article.txt"},
      .positionals = {{"FOLDER", Positional::Takes::run}, kOverrides},
      .flags = {{.name = "--prompt",
                 .summary = "the text to go on from; of an empty one the token that begins a text",
                 .takes = Flag::Takes::text},
                {.name = "--config",
                 .summary = "a YAML file with fields below; key=value counts more",
                 .takes = Flag::Takes::path},
                {.name = "--input",
                 .summary = "a file with one prompt, or JSONL with many",
                 .takes = Flag::Takes::path},
                {.name = "--output",
                 .summary = "the file for what is written; default: standard output",
                 .takes = Flag::Takes::new_file},
                average_flag(),
                {.name = "--tokenizer",
                 .summary = "a tokenizer's folder or one of its files, or bytes; default: the "
                            "model's own",
                 .takes = Flag::Takes::path}},
      .run = run,
      .details = generate_fields,
  };
}

}  // namespace phalanx
