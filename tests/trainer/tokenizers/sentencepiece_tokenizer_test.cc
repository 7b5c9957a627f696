// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/trainer/tokenizers/small_sentencepiece.h"
#include "tests/trainer/tokenizers/streamed.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using sentencepiece::ModelProto;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int32_t kBytes = 3;

// Also expects that nothing is printed.
std::string error_of(const std::string& model) {
  testing::internal::CaptureStderr();
  std::string error = "no error";
  try {
    SentencePieceTokenizer{model};
  } catch (const UserError& e) {
    error = e.what();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  return error;
}

TEST(SentencePieceTokenizer, EncodesByTheLibrary) {
  const SentencePieceTokenizer tokenizer(small_model().SerializeAsString());
  EXPECT_THAT(encode(tokenizer, "ab  a"), ElementsAre(262, 261)) << "spaces are removed";
  EXPECT_THAT(encode(tokenizer, "a\u00e9"), ElementsAre(261, kBytes + 0xC3, kBytes + 0xA9));
  EXPECT_THAT(encode(tokenizer, ""), ElementsAre());
  EXPECT_EQ(encode(tokenizer, "a\xFF"), encode(tokenizer, "a\uFFFD"));
  EXPECT_EQ(tokenizer.vocabulary_size(), 263);
  EXPECT_EQ(tokenizer.end_of_text(), 2);
}

TEST(SentencePieceTokenizer, TakesControlTextAsTokenWhereAsked) {
  const SentencePieceTokenizer tokenizer(small_model().SerializeAsString());
  EXPECT_THAT(encode(tokenizer, "ab</s>a", SpecialText::token), ElementsAre(262, 2, 261));
  EXPECT_THAT(encode(tokenizer, "</s>"), testing::Not(testing::Contains(2)));
}

TEST(SentencePieceTokenizer, DecodesAsTheLibraryDoes) {
  const SentencePieceTokenizer tokenizer(small_model().SerializeAsString());
  const auto text = [&](std::vector<int32_t> tokens) { return decode(tokenizer, tokens); };
  EXPECT_EQ(text({1, 262, 261, 2}), "ab a");
  EXPECT_EQ(text({259, 259, 262}), "ab") << "all leading spaces";
  EXPECT_EQ(text({0, 261}), " \u2047  a") << "the unknown token's surface";
  EXPECT_EQ(text({kBytes + 0xC3, kBytes + 0xA9, 261}), "\u00e9 a");
  EXPECT_EQ(text({kBytes + 0xE2, kBytes + 0x82, 260}), "\uFFFD\uFFFDa") << "one for each byte";
  EXPECT_EQ(text({kBytes + 0xC3, 2, kBytes + 0xA9}), "\uFFFD\uFFFD");
  EXPECT_EQ(text({260, 263, -1}), "a\uFFFD\uFFFD");
}

TEST(SentencePieceTokenizer, LeavesOutSpacesAsTheModelSays) {
  ModelProto model = small_model();
  model.mutable_normalizer_spec()->set_remove_extra_whitespaces(false);
  const std::vector<int32_t> tokens{259, 1, 259, 261};
  EXPECT_EQ(decode(SentencePieceTokenizer(model.SerializeAsString()), tokens), "  a");
  model.mutable_normalizer_spec()->set_add_dummy_prefix(false);
  EXPECT_EQ(decode(SentencePieceTokenizer(model.SerializeAsString()), tokens), "   a");
}

TEST(SentencePieceTokenizer, DecodesTheSameTokenByToken) {
  std::mt19937 random(6);
  ModelProto model = small_model();
  for (const bool removes : {true, false}) {
    model.mutable_normalizer_spec()->set_remove_extra_whitespaces(removes);
    expect_streamed(SentencePieceTokenizer(model.SerializeAsString()), random);
  }
}

struct Change {
  const char* what;
  std::function<void(ModelProto&)> change;
  const char* message;
};

TEST(SentencePieceTokenizer, SaysWhatIsWrongWithAModel) {
  const std::string model = small_model().SerializeAsString();
  EXPECT_THAT(error_of("some text"), HasSubstr("another format, or cut off"));
  EXPECT_THAT(error_of(model.substr(0, model.size() / 2)), HasSubstr("cut off"));
  EXPECT_THAT(error_of(""), HasSubstr("no pieces"));
  const std::vector<Change> changes{
      {"no unknown token",
       [](ModelProto& m) { m.mutable_pieces(0)->set_type(ModelProto::SentencePiece::CONTROL); },
       "unk is not defined"},
      {"a piece twice", [](ModelProto& m) { *m.add_pieces() = m.pieces(260); }, "already defined"},
      {"an empty piece", [](ModelProto& m) { m.mutable_pieces(260)->set_piece(""); }, "empty"},
      {"a byte less",
       [](ModelProto& m) { m.mutable_pieces(5)->set_type(ModelProto::SentencePiece::NORMAL); },
       "256 byte pieces"},
      {"a denormalizer",
       [](ModelProto& m) { m.mutable_denormalizer_spec()->set_precompiled_charsmap("x"); },
       "denormalizer"},
      {"a broken normalizer",
       [](ModelProto& m) { m.mutable_normalizer_spec()->set_precompiled_charsmap("xyz"); },
       "no model of SentencePiece"},
  };
  for (const Change& change : changes) {
    ModelProto changed = small_model();
    change.change(changed);
    EXPECT_THAT(error_of(changed.SerializeAsString()), HasSubstr(change.message)) << change.what;
  }
}

}  // namespace
}  // namespace phalanx
