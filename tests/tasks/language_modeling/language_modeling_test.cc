// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/language_modeling.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>

#include "tests/tasks/language_modeling/bigram.h"
#include "tests/trainer/data/text_folder.h"
#include "tests/trainer/registered.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

LanguageModeling::Config config_of(const std::filesystem::path& path) {
  LanguageModeling::Config config;
  config.data.path = path;
  config.data.sequence_length = 4;
  config.data.loader.shuffle = false;
  config.data.loader.num_workers = 0;
  return config;
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

std::string data_error_of(const LanguageModeling::Config& config, Phase phase = Phase::train) {
  return error_of([&] { LanguageModeling(config).build_data(phase, {}); });
}

/// All input bytes of an epoch.
std::string inputs_of(BatchSource& source) {
  std::string text;
  source.start_epoch(0, 0);
  while (const auto batch = source.next()) {
    const at::Tensor& inputs = static_cast<const TokenBatch&>(*batch).inputs;
    for (int64_t i = 0; i < inputs.numel(); ++i) {
      text += static_cast<char>(inputs.const_data_ptr<int64_t>()[i]);
    }
  }
  return text;
}

std::string digits(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += static_cast<char>('0' + i % 10);
  return text;
}

TEST(LanguageModeling, SplitsTheEndOffForValidation) {
  const TextFolder folder;
  auto config = config_of(folder.write("text", std::string(32, 't') + std::string(8, 'v')));
  config.data.validation_fraction = 0.2;
  LanguageModeling task(config);
  EXPECT_EQ(inputs_of(*task.build_data(Phase::train, {})), std::string(28, 't'));
  EXPECT_EQ(inputs_of(*task.build_data(Phase::validate, {})), std::string(4, 'v'));
}

TEST(LanguageModeling, TakesValidationFromItsOwnPath) {
  const TextFolder folder;
  auto config = config_of(folder.write("text", digits(13)));
  config.data.validation_path = folder.write("other", std::string(5, 'v'));
  LanguageModeling task(config);
  EXPECT_EQ(inputs_of(*task.build_data(Phase::train, {})), digits(12));
  EXPECT_EQ(inputs_of(*task.build_data(Phase::validate, {})), "vvvv");
}

TEST(LanguageModeling, HasNoValidationDataAtAFractionOfZero) {
  const TextFolder folder;
  auto config = config_of(folder.write("text", digits(13)));
  config.data.validation_fraction = 0;
  LanguageModeling task(config);
  EXPECT_EQ(task.build_data(Phase::validate, {}), nullptr);
  EXPECT_EQ(inputs_of(*task.build_data(Phase::train, {})), digits(12));
}

// Two sources of bytes: 8 samples of "a", 2 of "b".
std::string mixture_of(const TextFolder& folder, const std::string& shares_a,
                       const std::string& shares_b) {
  const auto a = folder.write("a", std::string(33, 'a'));
  const auto b = folder.write("b", std::string(9, 'b'));
  return "{data: {sequence_length: 4, validation_fraction: 0, loader: {num_workers: 0}, mixture: ["
         "{source: {name: bytes, files: ['" +
         a.string() + "']}" + shares_a + "}, {source: {name: bytes, files: ['" + b.string() +
         "']}" + shares_b + "}]}, sample: {tokens: 0}}";
}

int64_t count(const std::string& text, char c) { return std::count(text.begin(), text.end(), c); }

TEST(LanguageModeling, MixesSourcesByTheirSharesOrEpochs) {
  const TextFolder folder;
  const auto inputs = [&](const std::string& shares_a, const std::string& shares_b) {
    const auto task =
        make_registered<AnyTask>("language_modeling", mixture_of(folder, shares_a, shares_b));
    return inputs_of(*task->build_data(Phase::train, {}));
  };
  for (const auto& [shares_a, shares_b, of_a, of_b] :
       {std::tuple(", share: 1", ", share: 1", 20, 20),
        {", share: 3", ", share: 1", 32, 8},
        {"", "", 32, 8},
        {"", ", epochs: 3", 32, 24},
        {", epochs: 0.5", ", epochs: 2", 16, 16}}) {
    const std::string text = inputs(shares_a, shares_b);
    EXPECT_EQ(count(text, 'a'), of_a) << shares_a << shares_b;
    EXPECT_EQ(count(text, 'b'), of_b) << shares_a << shares_b;
  }
}

TEST(LanguageModeling, SharesMayBeOfTokens) {
  const TextFolder folder;
  const auto file = [&](const char* name, const std::string& text) {
    std::string tokens;
    for (const char c : text) tokens += {c, '\0'};
    return "{source: {name: nanogpt, end_of_text: 95, files: ['" +
           folder.write(name, tokens).string() + "']}, share: 1}";
  };
  std::string long_ones;
  std::string short_ones;
  for (int i = 0; i < 20; ++i) {
    long_ones += "aaaaaaaaa_";  // 9 targets.
    short_ones += "bbb_";       // 3 targets.
  }
  const auto count_of = [&](const std::string& shares_of) {
    const auto task = make_registered<AnyTask>(
        "language_modeling",
        "{data: {sequence_length: 16, validation_fraction: 0, loader: {num_workers: 0}, documents: "
        "padded, mixture_shares_of: " +
            shares_of + ", mixture: [" + file("a", long_ones) + ", " + file("b", short_ones) +
            "]}, sample: {tokens: 0}}");
    return count(inputs_of(*task->build_data(Phase::train, {})), 'b');
  };
  EXPECT_EQ(count_of("samples"), 20 * 3);
  EXPECT_EQ(count_of("tokens"), 30 * 3);
}

TEST(LanguageModeling, RefusesAMixtureThatIsNone) {
  const TextFolder folder;
  const auto error = [&](const std::string& shares_a, const std::string& shares_b) {
    return error_of([&] {
      make_registered<AnyTask>("language_modeling", mixture_of(folder, shares_a, shares_b))
          ->build_data(Phase::train, {});
    });
  };
  EXPECT_THAT(error(", share: 1", ""), HasSubstr("give every source a share, or none"));
  EXPECT_THAT(error(", share: 1, epochs: 2", ", share: 1"), HasSubstr("drop one"));
  EXPECT_THAT(error(", share: 0", ", share: 1"), HasSubstr("share"));
  EXPECT_THAT(error(", share: 1", ", share: 0.001"),
              AllOf(HasSubstr("task.data.mixture[1]"), HasSubstr("raise its share")));
}

TEST(LanguageModeling, KeepsTheEndOfEachSourceForValidation) {
  const TextFolder folder;
  std::string config = mixture_of(folder, "", "");
  config.replace(config.find("validation_fraction: 0"), 22, "validation_fraction: 0.6");
  const auto task = make_registered<AnyTask>("language_modeling", config);
  EXPECT_EQ(inputs_of(*task->build_data(Phase::validate, {})), std::string(16, 'a') + "bbbb");
}

TEST(LanguageModeling, FingerprintsOfPhasesAndLengthsDiffer) {
  const TextFolder folder;
  auto config = config_of(folder.write("text", digits(100)));
  const auto fingerprint = [&](Phase phase) {
    return LanguageModeling(config).build_data(phase, {})->fingerprint();
  };
  const std::string train = fingerprint(Phase::train);
  EXPECT_EQ(train, fingerprint(Phase::train));
  EXPECT_NE(train, fingerprint(Phase::validate));
  config.data.sequence_length = 5;
  EXPECT_NE(train, fingerprint(Phase::train));
}

TEST(LanguageModeling, SaysWhatIsWrongWithTheText) {
  const TextFolder folder;
  EXPECT_THAT(data_error_of(config_of(folder.path() / "gone")),
              AllOf(HasSubstr("task.data.path"), HasSubstr("gone")));
  EXPECT_THAT(data_error_of(config_of(folder.write("empty", ""))),
              AllOf(HasSubstr("task.data.path"), HasSubstr("is empty")));
  EXPECT_THAT(data_error_of(config_of(folder.write("short", "abc"))),
              AllOf(HasSubstr("holds 3 bytes"), HasSubstr("needs 5"),
                    HasSubstr("task.data.sequence_length")));
  auto config = config_of(folder.write("text", digits(20)));
  EXPECT_THAT(data_error_of(config, Phase::validate),
              AllOf(HasSubstr("validation part"), HasSubstr("holds 2 bytes"),
                    HasSubstr("task.data.validation_fraction is 0.1")));
  config.data.validation_path = folder.path() / "missing";
  EXPECT_THAT(data_error_of(config, Phase::validate), HasSubstr("task.data.validation_path"));
}

TEST(LanguageModeling, LossIsTheMeanCrossEntropyInTheModelsDtype) {
  const TextFolder folder;
  LanguageModeling task(config_of(folder.write("text", digits(100))));
  const auto source = task.build_data(Phase::train, {.batch_size = 3});
  source->start_epoch(0, 0);
  const auto batch = source->next();
  EXPECT_EQ(batch->tokens, 12);
  Bigram model;
  const at::Tensor loss = task.loss(model, *batch, {}).total();
  EXPECT_NEAR(loss.item<double>(), std::log(256), 1e-5);
  loss.backward();
  EXPECT_TRUE(model.table().grad().defined());
  to_double(model);
  model.table().set_data(model.table().detach().to(at::kDouble));
  EXPECT_EQ(task.loss(model, *batch, {}).total().scalar_type(), at::kDouble);
}

TEST(LanguageModeling, RefusesAModelThatIsTooSmall) {
  LanguageModeling task(config_of("unused"));
  Bigram fits(256, 4);
  EXPECT_EQ(error_of([&] { task.check_model(fits); }), "no error");
  Bigram short_context(256, 3);
  EXPECT_THAT(error_of([&] { task.check_model(short_context); }),
              AllOf(HasSubstr("task.data.sequence_length is 4"), HasSubstr("at most 3 tokens")));
  Bigram few_tokens(255, 4);
  EXPECT_THAT(error_of([&] { task.check_model(few_tokens); }),
              AllOf(HasSubstr("255"), HasSubstr("256"), HasSubstr("vocab_size")));
}

// A model that sees one token only: how documents are cut changes nothing but its batches.
class SeparatingBigram : public Bigram {
 public:
  SeparatingBigram() : Bigram(256, 16) {}
  at::Tensor logits_by_document(const at::Tensor& tokens, const at::Tensor& positions) override {
    EXPECT_EQ(positions.sizes(), tokens.sizes());
    return logits(tokens);
  }
  bool separates_documents() const override { return true; }
};

std::string documents_config(const TextFolder& folder, const std::string& documents,
                             const std::string& text = "abc_de_f_ghijklm_no_") {
  std::string tokens;
  for (const char c : text) tokens += {c, '\0'};
  return "{data: {sequence_length: 16, validation_fraction: 0, loader: {num_workers: 0}, source: "
         "{name: nanogpt, files: ['" +
         folder.write("tokens", tokens).string() + "'], end_of_text: 95}, documents: " + documents +
         "}, sample: {tokens: 0}}";
}

TEST(LanguageModeling, LossLeavesOutWhatIsNoTarget) {
  const TextFolder folder;
  const auto sum_of_losses = [&](const std::string& documents) {
    const auto task =
        make_registered<AnyTask>("language_modeling", documents_config(folder, documents));
    SeparatingBigram model;
    const at::Tensor ones = tensors::zeros({256, 256}).fill_(1);
    model.table().set_data(ones.cumsum(0).mul(ones.cumsum(1)).sin());
    task->check_model(model);
    const auto source = task->build_data(Phase::train, {.batch_size = 8});
    source->start_epoch(0, 0);
    const auto batch = source->next();
    const double loss = task->loss(model, *batch, {}).total().item<double>();
    return std::pair(batch->tokens, loss * static_cast<double>(batch->tokens));
  };
  const auto [padded_targets, padded_loss] = sum_of_losses("padded");
  const auto [separated_targets, separated_loss] = sum_of_losses("separated");
  EXPECT_EQ(padded_targets, 3 + 2 + 1 + 7 + 2);
  EXPECT_EQ(separated_targets, 13);  // 16 without the first tokens of three documents.
  EXPECT_EQ(sum_of_losses("joined").first, 16);
  EXPECT_GT(padded_loss, separated_loss);  // It has the last document in addition.
}

TEST(LanguageModeling, LossOfNoTargetIsZeroWithAGradient) {
  LanguageModeling task(config_of("unused"));
  Bigram model;
  TokenBatch batch;
  batch.samples = 1;
  batch.inputs = tensors::zeros({1, 4}, at::kLong);
  batch.targets = tensors::empty({1, 4}, at::kLong).fill_(kNoTarget);
  const at::Tensor loss = task.loss(model, batch, {}).total();
  EXPECT_EQ(loss.item<double>(), 0);
  loss.backward();
  EXPECT_TRUE(model.table().grad().eq(0).all().item<bool>());
}

TEST(LanguageModeling, RefusesDocumentsThatItCannotKeepApartOrFind) {
  const TextFolder folder;
  const auto separated =
      make_registered<AnyTask>("language_modeling", documents_config(folder, "separated"));
  Bigram model(256, 16);
  EXPECT_THAT(error_of([&] { separated->check_model(model); }),
              AllOf(HasSubstr("task.data.documents"), HasSubstr("joined or padded")));
  const auto padded =
      make_registered<AnyTask>("language_modeling", documents_config(folder, "padded", "____"));
  EXPECT_THAT(error_of([&] { padded->build_data(Phase::train, {}); }),
              AllOf(HasSubstr("task.data.documents"), HasSubstr("end_of_text")));
}

TEST(LanguageModeling, MetricsFollowFromTheLoss) {
  const auto metrics = LanguageModeling(config_of("unused")).metrics({{"loss", std::log(8)}});
  EXPECT_NEAR(value_of(metrics, "perplexity", 0), 8, 1e-12);
  EXPECT_NEAR(value_of(metrics, "bits_per_byte", 0), 3, 1e-12);
}

TEST(LanguageModeling, BitsPerByteCountTheTextOfTheTokens) {
  const TextFolder folder;
  const std::string tokenizer = folder.write("tok/characters.txt", "aé").parent_path().string();
  // One sample of four targets, "aéaé".
  const std::string file =
      folder.write("tokens.bin", std::string("\1\0\0\0\1\0\0\0\1\0", 10)).string();
  const std::string source = "source: {name: nanogpt, files: ['" + file + "']}, ";
  const auto task =
      make_registered<AnyTask>("language_modeling", "{data: {" + source + "validation_" + source +
                                                        "sequence_length: 4, tokenizer: '" +
                                                        tokenizer + "'}, sample: {tokens: 0}}");
  EXPECT_NE(task->build_data(Phase::validate, {}), nullptr);
  const auto metrics = task->metrics({{"loss", std::numbers::ln2}});
  EXPECT_NEAR(value_of(metrics, "bits_per_byte", 0), 1 / 1.5, 1e-12);
}

TEST(LanguageModeling, ShowsASampleThatATerminalCanPrint) {
  auto config = config_of("unused");
  config.sample->prompt = "a";
  config.sample->tokens = 30;
  Bigram model;
  const std::string sample = LanguageModeling(config).sample(model, {});
  EXPECT_TRUE(sample.starts_with('a'));
  EXPECT_THAT(sample, HasSubstr("\\x"));  // 30 bytes at random are not all printable.
  config.sample->tokens = 0;
  EXPECT_EQ(LanguageModeling(config).sample(model, {}), "");
}

std::string attached_by(const std::string& yaml) {
  std::string all;
  for (const auto& [name, content] :
       make_registered<AnyTask>("language_modeling", yaml)->attachments()) {
    all += name + ": " + content;
  }
  return all;
}

TEST(LanguageModeling, AttachesItsTokenizersFiles) {
  const TextFolder folder;
  folder.write("characters.txt", "0123456789\n");
  const std::string text = folder.write("text", digits(100)).string();
  const std::string tokenizer = folder.path().string();
  const std::string expected = "characters.txt: 0123456789\n";
  EXPECT_EQ(attached_by("{data: {source: {name: bytes, files: [" + text + "]}}}"), "");
  EXPECT_EQ(attached_by("{data: {path: " + text + "}}"), "");
  EXPECT_EQ(attached_by("{data: {source: {name: nanogpt, files: [" + text +
                        "]}, tokenizer: " + tokenizer + "}}"),
            expected);
  EXPECT_EQ(attached_by("{data: {source: {name: text, files: [" + text +
                        "], tokenizer: " + tokenizer + "}}}"),
            expected);
}

TEST(LanguageModeling, RefusesAModelThatDoesNotKnowItsTokenizersTokens) {
  const TextFolder folder;
  folder.write("characters.txt", "0123456789\n");
  const std::string text = folder.write("text", "0123456789").string();
  const auto task = make_registered<AnyTask>(
      "language_modeling", "{data: {source: {name: nanogpt, files: [unused]}, tokenizer: " +
                               folder.path().string() + ", sequence_length: 4}}");
  Bigram fits(11, 4);
  EXPECT_EQ(error_of([&] { task->check_model(fits); }), "no error");
  Bigram few_tokens(10, 4);
  EXPECT_THAT(error_of([&] { task->check_model(few_tokens); }),
              AllOf(HasSubstr("the model knows 10 tokens (model.vocab_size), but the tokenizer '" +
                              folder.path().string() + "' (task.data.tokenizer) has 11"),
                    HasSubstr("set model.vocab_size=11 or more")));
  // A source of texts names its own.
  const auto of_texts =
      make_registered<AnyTask>("language_modeling", "{data: {source: {name: text, files: [" + text +
                                                        "], tokenizer: " + folder.path().string() +
                                                        "}, sequence_length: 4}}");
  EXPECT_THAT(error_of([&] { of_texts->check_model(few_tokens); }),
              HasSubstr("(task.data.source.tokenizer) has 11"));
  const auto of_bytes =
      make_registered<AnyTask>("language_modeling", "{data: {path: unused, sequence_length: 4}}");
  EXPECT_THAT(error_of([&] { of_bytes->check_model(few_tokens); }),
              HasSubstr("but task.data.path reads bytes, of which there are 256: set "));
}

TEST(LanguageModeling, IsBuiltByItsName) {
  const TextFolder folder;
  const auto file = folder.write("text", digits(100));
  const auto task = make_registered<AnyTask>(
      "language_modeling",
      "{data: {path: " + file.string() + ", sequence_length: 8, loader: {shuffle: false}}}");
  const auto source = task->build_data(Phase::train, {});
  EXPECT_EQ(inputs_of(*source), digits(88));
  EXPECT_EQ(Registry<AnyTask>::instance().at("language_modeling").required_interface,
            CausalLanguageModel::kInterface);
}

TEST(LanguageModeling, ConfigRefusesWhatCannotBe) {
  const auto error = [](const std::string& yaml) {
    return error_of([&] { make_registered<AnyTask>("language_modeling", yaml); });
  };
  EXPECT_THAT(error("{}"), HasSubstr("data.path"));
  EXPECT_THAT(error("{data: {path: x, validation_fraction: 1}}"), HasSubstr("validation_fraction"));
  EXPECT_THAT(error("{data: {path: x, sequence_length: 0}}"), HasSubstr("sequence_length"));
  EXPECT_THAT(error("{data: {path: x, loader: {num_workers: -1}}}"), HasSubstr("num_workers"));
  EXPECT_THAT(error("{data: {path: x}, sample: {prompt: ''}}"), HasSubstr("prompt"));
}

// A tokenizer that gives more than it says would be met so.
TEST(LanguageModeling, RefusesTokensThatTheModelDoesNotKnow) {
  const TextFolder folder;
  auto config = config_of(folder.write("text", "aaaaaaaz" + std::string(32, 'a')));
  config.data.validation_path = folder.write("other", "aaaza");
  LanguageModeling task(config);
  Bigram model('z');
  EXPECT_THROW(task.check_model(model), UserError);
  for (const Phase phase : {Phase::train, Phase::validate}) {
    const auto source = task.build_data(phase, {.batch_size = 2});
    source->start_epoch(0, 0);
    EXPECT_THAT([&] { source->next(); },
                testing::ThrowsMessage<BrokenSampleError>(
                    AllOf(HasSubstr(phase == Phase::train ? "text', token 7" : "other', token 3"),
                          HasSubstr("is 122, but the model knows only tokens below 122"))));
  }
  const auto documents =
      task.prediction_data({.files = {folder.write("b.txt", "abc\naz\n")}, .ranks = {}});
  const PredictionBatch made = documents->batch(0, 2);
  EXPECT_EQ(made.problems[0], std::nullopt);
  EXPECT_THAT(made.problems[1].value(), HasSubstr("line 2: token 0 of the target is 122"));
}

}  // namespace
}  // namespace phalanx
