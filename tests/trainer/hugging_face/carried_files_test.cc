// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/carried_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/user_error.h"
#include "trainer/hugging_face/generation_file.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> names_of(const Attachments& files) {
  std::vector<std::string> names;
  for (const Attachment& file : files) names.push_back(file.name);
  return names;
}

const Attachments kTheirs{{"tokenizer.json", "t"},
                          {"tokenizer_config.json", "c"},
                          {"special_tokens_map.json", "s"},
                          {"chat_template.jinja", "j"},
                          {"tokenizer.model", "m"},
                          {"notes.txt", "n"},
                          {kGenerationFile, R"({"top_k": 5, "eos_token_id": [7, 9]})"}};

TEST(CarriedFiles, AreTheTasksAndThoseThatGoWithItsTokenizer) {
  const Attachments of_task{{"tokenizer.json", "t"}, {"tokenizer_config.json", "c"}};
  const Attachments files = carried_files(of_task, kTheirs, 9);
  EXPECT_THAT(names_of(files),
              ElementsAre("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                          "chat_template.jinja", "tokenizer.model", kGenerationFile));
  EXPECT_EQ(files.back().content, kTheirs.back().content) << "it names the end already";
  // The checkpoint that carries them gives them to the next one.
  EXPECT_EQ(names_of(carried_files(of_task, files, 9)), names_of(files));
}

TEST(CarriedFiles, ChangeNoTokenizer) {
  // A folder of all of them would be read by tokenizer.json.
  const Attachments files = carried_files({{"tokenizer.model", "m"}}, kTheirs, 7);
  EXPECT_THAT(names_of(files),
              ElementsAre("tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
                          "chat_template.jinja", kGenerationFile));
  EXPECT_THAT(names_that_go_along(names_of(files)),
              UnorderedElementsAre("tokenizer_config.json", "special_tokens_map.json",
                                   "chat_template.jinja", kGenerationFile));
}

TEST(CarriedFiles, OfAnotherTokenizerStayBehind) {
  for (const Attachments& of_task : {Attachments{}, Attachments{{"tokenizer.json", "other"}}}) {
    const Attachments files = carried_files(of_task, kTheirs, 3);
    EXPECT_EQ(files.size(), of_task.size() + 1);
    EXPECT_THAT(end_tokens(files.back().content, "it"), ElementsAre(3));
    EXPECT_THAT(files.back().content, testing::HasSubstr("\"top_k\": 5"));
  }
}

TEST(CarriedFiles, NameTheEndThatARunLearns) {
  EXPECT_THAT(carried_files({}, {}, std::nullopt), IsEmpty());
  const Attachments made = carried_files({}, {}, 4);
  EXPECT_EQ(made.back().content, "{\n  \"eos_token_id\": 4\n}\n");
  const Attachments own{{kGenerationFile, "the task's"}};
  EXPECT_EQ(carried_files(own, kTheirs, 4).back().content, "the task's");
  EXPECT_EQ(carried_files({}, kTheirs, std::nullopt).back().content, kTheirs.back().content);
}

TEST(CarriedFiles, ThatATaskReadsAreNeeded) {
  EXPECT_THAT(names_that_go_along({"tokenizer.json", "tokenizer_config.json", kGenerationFile}),
              ElementsAre(kGenerationFile));
  EXPECT_THAT(names_that_go_along({"spiece.model", "tokenizer.json", "words.txt"}),
              ElementsAre("tokenizer.json"));
  EXPECT_THAT(names_that_go_along({"vocab.json", "words.txt"}), IsEmpty());
}

TEST(GenerationFile, HasOneEndSeveralOrNone) {
  EXPECT_THAT(end_tokens(R"({"eos_token_id": 2})", "it"), ElementsAre(2));
  EXPECT_THAT(end_tokens(R"({"eos_token_id": null})", "it"), IsEmpty());
  EXPECT_THAT(end_tokens("{}", "it"), IsEmpty());
  for (const char* broken : {"{", "[]", ""}) EXPECT_THROW(end_tokens(broken, "it"), UserError);
}

}  // namespace
}  // namespace phalanx
