// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/language_modeling.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "tasks/language_modeling/generate.h"
#include "tasks/language_modeling/printable.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/byte_blocks.h"
#include "trainer/data/byte_stream.h"
#include "trainer/data/text_files.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

constexpr int64_t kBytes = 256;

std::shared_ptr<const ByteStream> open_text(const std::string& field,
                                            const std::filesystem::path& path) {
  return std::make_shared<const ByteStream>(field, find_text_files(field, path));
}

// Throws UserError when `bytes` of a text do not hold one sequence.
void check_length(const std::string& what, int64_t bytes, int64_t sequence_length) {
  if (bytes == 0) throw UserError(what + " is empty");
  const int64_t needed = ByteBlocks::bytes_needed(sequence_length);
  if (bytes >= needed) return;
  throw UserError(fmt::format(
      "{} holds {} bytes, but one sequence needs {}: task.data.sequence_length ({}) and the byte "
      "after it; give more text or lower task.data.sequence_length",
      what, bytes, needed, sequence_length));
}

}  // namespace

void TextDataConfig::describe(config::Schema<TextDataConfig>& s) {
  s.field("path", &TextDataConfig::path,
          "the training text: a file, a folder (with all files below it) or a glob pattern")
      .mandatory()
      .resume_may_change();  // The data's fingerprint guards its content.
  s.field("validation_path", &TextDataConfig::validation_path,
          "the validation text, as path; null: the end of path's text")
      .resume_may_change();
  s.field("validation_fraction", &TextDataConfig::validation_fraction,
          "share of path's bytes, at the end, kept for validation if validation_path is not "
          "given; 0: no validation")
      .at_least(0)
      .less_than(1);
  s.field("sequence_length", &TextDataConfig::sequence_length, "length of a sample")
      .at_least(1)
      .unit("tokens");
  s.field("loader", &TextDataConfig::loader, "how samples are read");
  s.ineffective({"validation_fraction"}, "validation_path is given",
                [](const TextDataConfig& c) { return c.validation_path.has_value(); });
}

void TextSampleConfig::describe(config::Schema<TextSampleConfig>& s) {
  s.field("prompt", &TextSampleConfig::prompt, "how the text begins").resume_may_change();
  s.field("tokens", &TextSampleConfig::tokens, "how many follow; 0: no sample")
      .at_least(0)
      .unit("tokens")
      .resume_may_change();
  s.field("temperature", &TextSampleConfig::temperature,
          "below 1 prefers what is likely; 0 takes the likeliest")
      .at_least(0)
      .resume_may_change();
  s.field("seed", &TextSampleConfig::seed, "of the draws").at_least(0).resume_may_change();
  s.check([](const TextSampleConfig& c) -> std::optional<std::string> {
    if (!c.prompt.empty() || c.tokens == 0) return std::nullopt;
    return "prompt must hold at least one byte for the model to go on from";
  });
  s.ineffective({"prompt", "temperature", "seed"}, "tokens is 0",
                [](const TextSampleConfig& c) { return c.tokens == 0; });
  s.ineffective({"seed"}, "temperature is 0, so that nothing is drawn",
                [](const TextSampleConfig& c) { return c.temperature == 0; });
}

void LanguageModeling::Config::describe(config::Schema<Config>& s) {
  s.field("data", &Config::data, "the text and how it is cut into samples");
  s.field("sample", &Config::sample, "the text that the model writes at the end of training");
}

std::unique_ptr<BatchSource> LanguageModeling::build_data(Phase phase,
                                                          const BatchRequest& request) {
  const TextDataConfig& data = config_.data;
  const bool training = phase == Phase::train;
  const bool own_file = !training && data.validation_path.has_value();
  const std::string field = own_file ? "task.data.validation_path" : "task.data.path";
  const std::filesystem::path& path = own_file ? *data.validation_path : data.path;
  const double fraction = data.validation_path ? 0.0 : data.validation_fraction;
  if (!training && !own_file && fraction == 0) return nullptr;

  const auto text = open_text(field, path);
  const int64_t bytes = text->size();
  check_length(fmt::format("{}: the text in '{}'", field, path.string()), bytes,
               data.sequence_length);
  const int64_t kept_out = static_cast<int64_t>(fraction * static_cast<double>(bytes));
  const int64_t split = bytes - kept_out;
  const int64_t begin = training || own_file ? 0 : split;
  const int64_t end = training ? split : bytes;
  check_length(fmt::format("{}: the {} part (task.data.validation_fraction is {}) of the text in "
                           "'{}'",
                           field, training ? "training" : "validation", fraction, path.string()),
               end - begin, data.sequence_length);
  return load(std::make_shared<ByteBlocks>(text, begin, end, data.sequence_length), data.loader,
              request, training);
}

Loss LanguageModeling::compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                                    const State&) {
  at::Tensor logits = model.logits(batch.inputs);
  // Of numbers with 8 bits a loss would keep two digits (transformers' ForCausalLMLoss).
  if (at::isReducedFloatingType(logits.scalar_type())) logits = logits.to(at::kFloat);
  return at::cross_entropy_loss(logits.flatten(0, 1), batch.targets.flatten());
}

void LanguageModeling::check(const CausalLanguageModel& model) const {
  if (model.vocabulary_size() < kBytes) {
    throw UserError(
        fmt::format("the model knows {} tokens, but the task language_modeling reads "
                    "bytes and needs {}: raise the model's vocabulary (gpt2: model.vocab_size)",
                    model.vocabulary_size(), kBytes));
  }
  if (model.context_length() < config_.data.sequence_length) {
    throw UserError(fmt::format(
        "task.data.sequence_length is {}, but the model takes at most {} tokens: lower "
        "task.data.sequence_length or raise the model's context (gpt2: model.n_positions)",
        config_.data.sequence_length, model.context_length()));
  }
}

NamedValues LanguageModeling::metrics(const NamedValues& mean_losses) const {
  const double loss = value_of(mean_losses, "loss", std::nan(""));
  return {{"perplexity", std::exp(loss)}, {"bits_per_byte", loss / std::numbers::ln2}};
}

std::string LanguageModeling::show_sample(CausalLanguageModel& model, const State&) {
  const TextSampleConfig& sample = config_.sample;
  if (sample.tokens == 0) return {};
  return printable(generate_bytes(model, sample.prompt, sample.tokens, sample.temperature,
                                  static_cast<uint64_t>(sample.seed)));
}

REGISTER_TASK("language_modeling", LanguageModeling);

}  // namespace phalanx
