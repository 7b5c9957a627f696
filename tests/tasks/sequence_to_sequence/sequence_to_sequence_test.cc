// SPDX-License-Identifier: Apache-2.0
#include "tasks/sequence_to_sequence/sequence_to_sequence.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/data/stored_numbers.h"
#include "tests/trainer/data/text_folder.h"
#include "tests/trainer/registered.h"
#include "trainer/base/user_error.h"
#include "trainer/data/sequence_pair_batch.h"
#include "trainer/tokenizers/special_reading.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Predicts each token from the one before it: a row of a table, which is all zeros. Keeps what it
/// has been given.
class Table : public ModelBase, public SequenceToSequenceModel {
 public:
  explicit Table(int64_t vocabulary = 400)
      : table_(tensors::zeros({vocabulary, vocabulary}).requires_grad_()) {}

  torch::nn::Module& module() override { return module_; }
  at::Tensor encode(const at::Tensor& read, const at::Tensor& mask) override {
    inputs = read;
    input_mask = mask;
    return tensors::zeros({read.size(0), read.size(1), 1});
  }
  HiddenStates decode(const at::Tensor& written, const at::Tensor& encoded,
                      const at::Tensor& mask) override {
    EXPECT_EQ(encoded.size(1), inputs.size(1));
    EXPECT_TRUE(mask.is_same(input_mask));
    outputs = written;
    const at::Tensor states = table_.index_select(0, written.flatten());
    return {.states = states.view({written.size(0), written.size(1), -1}),
            .head = tensors::ones({table_.size(0)}).diag()};
  }
  int64_t vocabulary_size() const override { return table_.size(0); }
  int64_t decoder_start_token() const override { return 7; }

  at::Tensor inputs;
  at::Tensor input_mask;
  at::Tensor outputs;

 private:
  torch::nn::Module module_;
  at::Tensor table_;
};

std::shared_ptr<AnyTask> task_of(const std::string& data, const std::string& others = "") {
  return make_registered<AnyTask>(
      "sequence_to_sequence",
      "{" + others + "data: {loader: {num_workers: 0, shuffle: false}, " + data + "}}");
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

std::string pairs_in(const TextFolder& folder) {
  return "tokenizer: bytes, end_of_text: 1, pairs: {validation_fraction: 0, input: '{q}', target: "
         "'{a}', files: ['" +
         folder.write("a.jsonl", "{\"q\": \"abc\", \"a\": \"xy\"}\n{\"q\": \"d\", \"a\": \"z\"}\n")
             .string() +
         "']}";
}

// A line with a sentinel in the input, and two in the target.
std::string pairs_with_sentinels(const TextFolder& folder, const std::string& options) {
  const auto file =
      folder.write("s.jsonl", "{\"q\": \"a<extra_id_0>\", \"a\": \"<extra_id_0>b<extra_id_1>\"}\n");
  return "tokenizer: bytes, end_of_text: 1, pairs: {validation_fraction: 0, input: '{q}', target: "
         "'{a}', " +
         options + "files: ['" + file.string() + "']}";
}

std::string spans_in(const TextFolder& folder, const std::string& options = "") {
  return "tokenizer: bytes, end_of_text: 0, input_length: 36, span_corruption: {" + options +
         "source: {name: bytes, files: ['" + folder.write("text", std::string(4000, 'a')).string() +
         "']}}";
}

TEST(SequenceToSequence, ShiftsTargetsBehindTheStart) {
  const at::Tensor targets =
      at::tensor(at::ArrayRef<int64_t>{5, 6, 1, 8, 1, kNoTarget}).view({2, 3});
  EXPECT_THAT(numbers_in(shifted_right(targets, 7)), ElementsAre(7, 5, 6, 7, 8, 1));
  const at::Tensor padded =
      at::tensor(at::ArrayRef<int64_t>{5, 1, kNoTarget, kNoTarget}).view({1, 4});
  EXPECT_THAT(numbers_in(shifted_right(padded, 7)), ElementsAre(7, 5, 1, 0));
}

TEST(SequenceToSequence, LearnsPairsWithTheTrueTokensBefore) {
  const TextFolder folder;
  const auto task = task_of(pairs_in(folder));
  Table model;
  task->check_model(model);
  const auto source = task->build_data(Phase::train, {.batch_size = 2});
  source->start_epoch(0, 0);
  const auto batch = source->next();
  const at::Tensor loss = task->loss(model, *batch, {}).total();
  EXPECT_NEAR(loss.item<double>(), std::log(400), 1e-5);
  EXPECT_THAT(numbers_in(model.inputs), ElementsAre('a', 'b', 'c', 1, 'd', 1, 0, 0));
  EXPECT_THAT(numbers_in(model.input_mask.to(at::kLong)), ElementsAre(1, 1, 1, 1, 1, 1, 0, 0));
  EXPECT_THAT(numbers_in(model.outputs), ElementsAre(7, 'x', 'y', 7, 'z', 1));
  EXPECT_EQ(batch->tokens, 5);
  EXPECT_EQ(task->build_data(Phase::validate, {}), nullptr);
}

TEST(SequenceToSequence, ComputesTheLossInChunks) {
  const TextFolder folder;
  const auto loss_of = [&](const std::string& options) {
    const auto task = task_of(pairs_in(folder), options);
    Table model;
    task->check_model(model);
    const auto source = task->build_data(Phase::train, {.batch_size = 2});
    source->start_epoch(0, 0);
    return task->loss(model, *source->next(), {}).total();
  };
  const at::Tensor plain = loss_of("");
  const at::Tensor in_chunks = loss_of("loss: {chunk: 2}, ");
  EXPECT_NEAR(in_chunks.item<double>(), plain.item<double>(), 1e-5);
  EXPECT_THAT(in_chunks.grad_fn()->name(), HasSubstr("ChunkedTokenLoss"));
  EXPECT_THAT(plain.grad_fn()->name(), Not(HasSubstr("ChunkedTokenLoss")));
}

TEST(SequenceToSequence, SentinelsComeBehindTheTokenizersTokens) {
  const TextFolder folder;
  const auto task = task_of(spans_in(folder));
  Table model;
  task->check_model(model);
  const auto source = task->build_data(Phase::train, {.batch_size = 4});
  source->start_epoch(0, 0);
  task->loss(model, *source->next(), {});
  EXPECT_FALSE(model.input_mask.defined());
  EXPECT_EQ(model.inputs.max().item<int64_t>(), 355);
  EXPECT_EQ(model.outputs.select(1, 1).min().item<int64_t>(), 355);
  EXPECT_GT(task->build_data(Phase::validate, {})->samples_per_epoch(), 5);
}

// Training's source could not read them: they are no 16-bit tokens of this vocabulary.
TEST(SequenceToSequence, ReadsFilesAsItsValidationSourceDoes) {
  const TextFolder folder;
  const auto tokens = folder.write("tokens.bin", std::string(4000, '\0'));
  const auto text = folder.write("other", std::string(4000, 'b'));
  const auto task = task_of(
      "tokenizer: bytes, end_of_text: 0, input_length: 36, span_corruption: {source: {name: "
      "nanogpt, files: ['" +
      tokens.string() + "']}, validation_source: {name: bytes, files: ['" + text.string() + "']}}");
  const auto samples = task->build_data(Phase::validate, {})->samples_per_epoch();
  BatchRequest of_file;
  of_file.files = {text};
  EXPECT_EQ(task->build_data(Phase::validate, of_file)->samples_per_epoch(), samples);
}

// The numbers of sentinels, of runs that are there and of data, stay what they are.
TEST(SequenceToSequence, ReadsAndWritesSentinelsInTextsAlone) {
  const TextFolder folder;
  const auto task = task_of(spans_in(folder));
  Table model(356);
  task->check_model(model);  // needs no more tokens than without
  for (int i = 0; i < 2; ++i) {
    const auto tokenizer = task->text().tokenizer;
    EXPECT_EQ(task->text().tokenizer, tokenizer) << "made once";
    EXPECT_THAT(encode(*tokenizer, "a<extra_id_0>b<extra_id_99>"), ElementsAre('a', 355, 'b', 256));
    EXPECT_EQ(decode(*tokenizer, std::vector<int32_t>{355, 'x'}), "<extra_id_0>x");
    const auto source = task->build_data(Phase::train, {.batch_size = 4});
    source->start_epoch(0, 0);
    task->loss(model, *source->next(), {});
    EXPECT_EQ(model.inputs.max().item<int64_t>(), 355);
  }
  const auto chosen = task_of(spans_in(folder, "sentinels: 10, first_sentinel: 265, "));
  EXPECT_THAT(encode(*chosen->text().tokenizer, "<extra_id_1><extra_id_10>").front(), 264);
  EXPECT_EQ(encode(*chosen->text().tokenizer, "<extra_id_1><extra_id_10>").size(), 14);
}

TEST(SequenceToSequence, ReadsSentinelsOfPairsAsItsSpecialTokens) {
  const TextFolder folder;
  const auto task = task_of(pairs_with_sentinels(folder, "special_tokens: true, "));
  Table model(356);
  task->check_model(model);
  const auto source = task->build_data(Phase::train, {.batch_size = 1});
  source->start_epoch(0, 0);
  task->loss(model, *source->next(), {});
  EXPECT_THAT(numbers_in(model.inputs), ElementsAre('a', 355, 1));
  EXPECT_THAT(numbers_in(model.outputs), ElementsAre(7, 355, 'b', 354));
  const auto tokenizer = task->text().tokenizer;
  EXPECT_THAT(encode(*tokenizer, "a<extra_id_0>"), ElementsAre('a', 355));
  EXPECT_EQ(decode(*tokenizer, std::vector<int32_t>{354, 'x'}), "<extra_id_1>x");
  EXPECT_EQ(encode(*reading_as_told(tokenizer), "<extra_id_0>").size(), 12);

  const auto texts = task->prediction_data(
      {.files = {folder.write("in.jsonl", "{\"q\": \"<extra_id_2>c\"}\n")}, .ranks = {}});
  const PredictionBatch read = texts->batch(0, 1);
  EXPECT_THAT(numbers_in(static_cast<const SequencePairBatch&>(*read.batch).inputs),
              ElementsAre(353, 'c', 1));

  // A model that has no such tokens learns pairs without them, as before.
  Table small(256);
  task_of(pairs_with_sentinels(folder, "special_tokens: true, "))->check_model(small);
}

TEST(SequenceToSequence, ReadsSentinelsOfPairsAsTextWithoutSpecialTokens) {
  const TextFolder folder;
  const auto task = task_of(pairs_with_sentinels(folder, ""));
  Table model(356);
  task->check_model(model);
  const auto source = task->build_data(Phase::train, {.batch_size = 1});
  source->start_epoch(0, 0);
  task->loss(model, *source->next(), {});
  EXPECT_EQ(model.inputs.size(1), 1 + 12 + 1);
  EXPECT_EQ(model.inputs.max().item<int64_t>(), 'x');
  EXPECT_EQ(encode(*task->text().tokenizer, "<extra_id_0>").size(), 12);
}

TEST(SequenceToSequence, RefusesAModelThatKnowsTooFewTokens) {
  const TextFolder folder;
  const auto error = [&](const std::string& data, int64_t vocabulary) {
    Table model(vocabulary);
    return error_of([&] { task_of(data)->check_model(model); });
  };
  EXPECT_EQ(error(pairs_in(folder), 256), "no error");
  EXPECT_THAT(error(pairs_in(folder), 255),
              AllOf(HasSubstr("255"), HasSubstr("needs 256"), HasSubstr("model.vocab_size")));
  EXPECT_EQ(error(spans_in(folder), 356), "no error");
  EXPECT_THAT(error(spans_in(folder), 355), AllOf(HasSubstr("needs 356"), HasSubstr("sentinels")));
  EXPECT_EQ(error(spans_in(folder, "sentinels: 10, first_sentinel: 265, "), 266), "no error");
}

TEST(SequenceToSequence, NamesMistakesInTheConfig) {
  const TextFolder folder;
  const auto error = [&](const std::string& data, Phase phase = Phase::train) {
    return error_of([&] { task_of(data)->build_data(phase, {}); });
  };
  EXPECT_THAT(error("tokenizer: bytes"), HasSubstr("give task.data.pairs or"));
  EXPECT_THAT(error("pairs: {files: [x], input: '{q}', target: '{a}'}"),
              HasSubstr("need task.data.tokenizer"));
  EXPECT_THAT(error("tokenizer: bytes, pairs: {files: [x], input: '{q}', target: '{a}'}"),
              HasSubstr("task.data.end_of_text"));
  EXPECT_THAT(error("tokenizer: bytes, pairs: {files: [x], input: 'q', target: '{a}'}"),
              HasSubstr("input: the template 'q' names no field"));
  EXPECT_THAT(error(spans_in(folder, "noise_density: 0.6, ")), HasSubstr("noise_density"));
  EXPECT_THAT(error(spans_in(folder, "sentinels: 1, ")),
              HasSubstr("an input of 36 tokens has 2 spans of noise, but there are 1 sentinels"));
  EXPECT_THAT(
      error(spans_in(folder, "validation_fraction: 0.005, "), Phase::validate),
      AllOf(HasSubstr("there are 20 bytes for validation"), HasSubstr("validation_fraction")));
  EXPECT_THAT(error("end_of_text: 1, span_corruption: {source: {name: nanogpt, files: ['" +
                    folder.write("tokens", std::string(4000, '\3')).string() + "']}}"),
              HasSubstr("first_sentinel: without task.data.tokenizer"));
  EXPECT_THAT(error("tokenizer: '" + folder.write("characters.txt", "abc").string() +
                    "', end_of_text: 3, span_corruption: {source: {name: bytes, files: ['" +
                    folder.write("text", std::string(4000, 'a')).string() + "']}}"),
              HasSubstr("task.data.span_corruption.source: the tokens are of the tokenizer 'bytes' "
                        "(256 tokens), but task.data.tokenizer is "));
}

// A tokenizer that gives more than it says would be met so.
TEST(SequenceToSequence, RefusesTokensThatTheModelDoesNotKnow) {
  const TextFolder folder;
  Table model('x');
  const auto refusal = [&](const std::string& data, const std::string& expected) {
    const auto task = task_of(data);
    EXPECT_THROW(task->check_model(model), UserError);
    const auto source = task->build_data(Phase::train, {.batch_size = 2});
    source->start_epoch(0, 0);
    EXPECT_THAT([&] { source->next(); },
                testing::ThrowsMessage<BrokenSampleError>(
                    AllOf(HasSubstr(expected), HasSubstr("only tokens below 120"))));
    return task;
  };
  refusal(spans_in(folder), "of the input is");
  const auto task = refusal(pairs_in(folder), "a.jsonl', line 1: token 0 of the target is 120");
  const auto texts = task->prediction_data(
      {.files = {folder.write("b.jsonl", "{\"q\": \"d\"}\n{\"q\": \"dz\"}\n")}, .ranks = {}});
  const PredictionBatch made = texts->batch(0, 2);
  EXPECT_EQ(made.problems[0], std::nullopt);
  EXPECT_THAT(made.problems[1].value(), HasSubstr("line 2: token 1 of the input is 122"));
}

}  // namespace
}  // namespace phalanx
