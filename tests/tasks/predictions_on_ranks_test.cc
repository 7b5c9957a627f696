// SPDX-License-Identifier: Apache-2.0
// The predictions of every task that makes them, on any ranks, of any number of lines, in batches
// of any size: those of one rank.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/long.h"
#include "tests/trainer/mixins/run_dir.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/ranks/stores/group_store.h"
#include "trainer/run/build_trainer.h"
#include "trainer/run/load_config.h"

namespace phalanx {
namespace {

constexpr const char* kDocuments = R"(
name: supervised
task: {name: language_modeling, data: {path: nowhere.txt, sequence_length: 16}}
model: {name: gpt2, vocab_size: 256, n_positions: 16, n_layer: 1, n_head: 2, n_embd: 16}
optimizer: {name: adamw, lr: 0.001}
training: {max_steps: 1}
)";
constexpr const char* kInstructions = R"(
name: supervised
task:
  name: instruction_tuning
  data:
    pairs: {files: [nowhere.jsonl], input: "{text}=", target: "{a}"}
    tokenizer: bytes
    end_of_text: 256
    sequence_length: 16
  generation: {max_new_tokens: 4}
model: {name: gpt2, vocab_size: 257, n_positions: 16, n_layer: 1, n_head: 2, n_embd: 16}
optimizer: {name: adamw, lr: 0.001}
training: {max_steps: 1}
)";
constexpr const char* kSequences = R"(
name: supervised
task:
  name: sequence_to_sequence
  data:
    pairs: {files: [nowhere.jsonl], input: "{text}", target: "{a}"}
    tokenizer: bytes
    end_of_text: 256
    input_length: 16
    target_length: 8
  generation: {max_new_tokens: 4}
model: {name: t5, vocab_size: 257, d_model: 16, d_kv: 8, d_ff: 24, num_layers: 1, num_heads: 2}
optimizer: {name: adamw, lr: 0.001}
training: {max_steps: 1}
)";

constexpr const char* kLora = "lora={target_modules: ['*'], r: 2, lora_alpha: 4}";
constexpr const char* kBase = "checkpoint.load_from=nowhere";  // Adapters need one; it is not read.
constexpr const char* kBeams = "task.generation.num_beams=2";
constexpr const char* kDraws = "task.generation.temperature=1";

/// A task and model, and how they are used.
struct Way {
  std::string name;
  const char* config;
  std::vector<std::string> overrides;
};

std::vector<Way> ways() {
  return {{"instruction_tuning", kInstructions, {}},
          {"sequence_to_sequence", kSequences, {}},
          {"language_modeling", kDocuments, {}},
          {"instruction_tuning, LoRA", kInstructions, {kLora, kBase}},
          {"sequence_to_sequence, LoRA", kSequences, {kLora, kBase}},
          {"language_modeling, LoRA", kDocuments, {kLora, kBase}},
          {"instruction_tuning, beams", kInstructions, {kBeams}},
          {"sequence_to_sequence, beams", kSequences, {kBeams}},
          {"instruction_tuning, drawn", kInstructions, {kDraws}},
          {"sequence_to_sequence, drawn", kSequences, {kDraws}}};
}

struct Case {
  Way way;
  bool fsdp = false;
  int64_t lines = 0;
  int64_t batch_size = 1;

  std::string name() const {
    return fmt::format("{}{}, {} lines in batches of {}", way.name, fsdp ? ", FSDP" : "", lines,
                       batch_size);
  }
};

// All of them, in an order that is drawn once; what was wrong first comes first.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Way& way : ways()) {
    for (const bool fsdp : {false, true}) {
      for (int64_t lines = 0; lines < 10; ++lines) {
        for (const int64_t batch_size : {1, 2, 3, 8}) {
          all.push_back({.way = way, .fsdp = fsdp, .lines = lines, .batch_size = batch_size});
        }
      }
    }
  }
  std::shuffle(all.begin(), all.end(), std::mt19937(46));
  std::ranges::stable_partition(all, [](const Case& each) {
    return each.lines == 3 && each.batch_size == 8 && each.way.overrides.empty();
  });
  return all;
}

std::string name_of_file(int64_t lines) { return fmt::format("lines_{}.jsonl", lines); }

void write_lines(const std::filesystem::path& folder) {
  for (int64_t lines = 0; lines < 10; ++lines) {
    std::ofstream file(folder / name_of_file(lines));
    for (int64_t i = 0; i < lines; ++i) {
      const std::string text(static_cast<size_t>(2 + i * 7 % 10), static_cast<char>('a' + i));
      file << fmt::format("{{\"text\": \"{}\", \"a\": \"b\"}}\n", text);
    }
  }
}

std::string text_of(int64_t sample, const Prediction& prediction) {
  std::string text = std::to_string(sample);
  for (const auto& [name, value] : prediction) {
    text += fmt::format(" {}=", name);
    text += std::visit([](const auto& each) { return fmt::format("{}", each); }, value);
  }
  return text;
}

// What rank 0 is given; the message of a UserError.
std::vector<std::string> predicted(const Case& each, const std::filesystem::path& folder,
                                   const World& world) {
  config::Diagnostics mistakes;
  config::Node tree = config::parse_yaml(each.way.config, "test", mistakes);
  mistakes.throw_if_any();
  std::vector<std::string> overrides = each.way.overrides;
  if (each.fsdp && !world.ranks().is_single_rank())
    overrides.emplace_back("parallel.use_fsdp=true");
  const UserConfig user = config_of(std::move(tree), overrides);
  const config::Node resolved = resolve_config(user, folder.string());
  const auto trainer = build_trainer(*user.entry, plan_of(*user.entry, resolved), resolved, world,
                                     Purpose::evaluation);
  std::vector<std::string> texts;
  const PredictionRequest request{
      .files = {folder / name_of_file(each.lines)},
      .batch_size = each.batch_size,
      .format = text_of,
      .format_problem = [](int64_t, const std::string& problem) { return problem; },
      .done = [](const PredictionSource&) { return int64_t{0}; },
      .take =
          [&](const std::vector<std::string>& some) {
            texts.insert(texts.end(), some.begin(), some.end());
          }};
  try {
    trainer->predict([](const TaskModel&) {}, request);
  } catch (const UserError& error) {
    return {error.what()};
  }
  return texts;
}

class PredictionsOnRanks : public ::testing::TestWithParam<int64_t> {};

TEST_P(PredictionsOnRanks, AreThoseOfOneRank) {
  const tiny::RunDir folder;
  write_lines(folder.path());
  const std::vector<Case> chosen =
      sample_of(cases(), 9, fmt::format("predictions on {} ranks", GetParam()));
  const auto outcome = in_ranks(GetParam(), [&](World& world) {
    const World alone(Ranks(), world.device(), make_local_store());
    for (const Case& each : chosen) {
      const auto together = predicted(each, folder.path(), world);
      if (!world.ranks().is_first()) continue;
      const auto expected = predicted(each, folder.path(), alone);
      require(expected.size() == static_cast<size_t>(std::max<int64_t>(each.lines, 1)),
              "a text each: " + each.name());
      require(together == expected, each.name() + ": " +
                                        fmt::format("{}", fmt::join(together, "; ")) + " for " +
                                        fmt::format("{}", fmt::join(expected, "; ")));
    }
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

INSTANTIATE_TEST_SUITE_P(Ranks, PredictionsOnRanks, ::testing::Range<int64_t>(2, 5));

}  // namespace
}  // namespace phalanx
