// SPDX-License-Identifier: Apache-2.0
#include "tasks/instruction_tuning/instruction_tuning.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/tasks/language_modeling/bigram.h"
#include "tests/trainer/data/text_folder.h"
#include "tests/trainer/registered.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::shared_ptr<AnyTask> task_of(const TextFolder& folder, const std::string& options) {
  const auto file =
      folder.write("a.jsonl", "{\"q\": \"ab\", \"a\": \"xyz\"}\n{\"q\": \"c\", \"a\": \"z\"}\n");
  return make_registered<AnyTask>(
      "instruction_tuning",
      "{data: {loader: {num_workers: 0, shuffle: false}, tokenizer: bytes, " + options +
          "pairs: {validation_fraction: 0, input: '>{q}', target: '{a}', files: ['" +
          file.string() + "']}}}");
}

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(InstructionTuning, GivesTheGradientOfAnswersAlone) {
  const TextFolder folder;
  const auto task = task_of(folder, "sequence_length: 8, end_of_text: 0, ");
  Bigram model;
  task->check_model(model);
  const auto source = task->build_data(Phase::train, {.batch_size = 2});
  source->start_epoch(0, 0);
  const auto batch = source->next();
  EXPECT_EQ(batch->tokens, 6);
  const at::Tensor loss = task->loss(model, *batch, {}).total();
  EXPECT_NEAR(loss.item<double>(), std::log(256), 1e-5);
  loss.backward();
  // Rows of the table with a gradient: those of the tokens before one of an answer.
  std::string learned_from;
  const at::Tensor moved = model.table().grad().abs().sum(1);
  for (int token = 0; token < 256; ++token) {
    if (moved.select(0, token).item<double>() > 0) learned_from += static_cast<char>(token);
  }
  EXPECT_EQ(learned_from, "bcxyz");
}

TEST(InstructionTuning, RefusesAModelThatIsTooSmall) {
  const TextFolder folder;
  const auto error = [&](int64_t vocabulary, int64_t context) {
    Bigram model(vocabulary, context);
    return error_of(
        [&] { task_of(folder, "sequence_length: 8, end_of_text: 256, ")->check_model(model); });
  };
  EXPECT_EQ(error(257, 8), "no error");
  EXPECT_THAT(error(256, 8), AllOf(HasSubstr("knows 256 tokens"), HasSubstr("needs 257")));
  EXPECT_THAT(error(257, 7),
              AllOf(HasSubstr("task.data.sequence_length is 8"), HasSubstr("at most 7 tokens")));
}

// A tokenizer that gives more than it says would be met so.
TEST(InstructionTuning, RefusesTokensThatTheModelDoesNotKnow) {
  const TextFolder folder;
  const auto task = task_of(folder, "sequence_length: 8, end_of_text: 0, ");
  Bigram model('y');
  EXPECT_THROW(task->check_model(model), UserError);
  const auto source = task->build_data(Phase::train, {.batch_size = 2});
  source->start_epoch(0, 0);
  EXPECT_THAT([&] { source->next(); },
              testing::ThrowsMessage<BrokenSampleError>(
                  AllOf(HasSubstr("a.jsonl', line 1: token 4 of the input is 121"),
                        HasSubstr("only tokens below 121"))));
  const auto prompts =
      task->prediction_data({.files = {folder.write("b.txt", "abc\nz\n")}, .ranks = {}});
  const PredictionBatch made = prompts->batch(0, 2);
  EXPECT_EQ(made.problems[0], std::nullopt);
  EXPECT_THAT(made.problems[1].value(), HasSubstr("line 2: token 0 of the input is"));
}

TEST(InstructionTuning, NeedsAnEndOfText) {
  const TextFolder folder;
  EXPECT_THAT(error_of([&] { task_of(folder, ""); }), HasSubstr("task.data.end_of_text"));
}

}  // namespace
}  // namespace phalanx
