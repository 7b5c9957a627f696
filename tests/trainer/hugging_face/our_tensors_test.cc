// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/our_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/registry/hugging_face.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const HuggingFaceModel kModel{.model_type = "small",
                              .architecture = "SmallForCausalLM",
                              .fields = {},
                              .constants = {},
                              .names = {{"*", "model.*"}},
                              .base_prefix = "model.",
                              .tied = {{"table", "head"}},
                              .ignored = {"model.mask"}};

class OurNames : public testing::Test {
 protected:
  const Checkpoint& folder(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
    std::vector<ShardedTensorView> views;
    for (const auto& [name, values] : tensors) views.push_back(whole_tensor(name, values));
    write_safetensors(folder_ / "model.safetensors", views);
    opened_ = open_safetensors_model(folder_.path());
    return opened_;
  }

  std::vector<std::string> names(const OurTensors& tensors) {
    std::vector<std::string> names;
    for (const ManifestTensor& tensor : tensors.contents().tensors) names.push_back(tensor.name);
    return names;
  }

  at::Tensor a_ = tensors::arange(6, at::kFloat);
  at::Tensor b_ = tensors::arange(4, at::kFloat);
  TemporaryFolder folder_;
  Checkpoint opened_;
};

TEST_F(OurNames, AreThoseOfTheTableEachOnce) {
  const OurTensors tensors(
      folder({{"model.table", a_}, {"head", a_}, {"model.w", b_}, {"model.mask", b_}}), kModel);
  EXPECT_THAT(names(tensors), ElementsAre("table", "w"));
  tensors.require_equal_copies();
}

TEST_F(OurNames, ACopyMayStandAlone) {
  const OurTensors tensors(folder({{"head", a_}, {"model.w", b_}}), kModel);
  EXPECT_THAT(names(tensors), ElementsAre("table", "w"));
  tensors.require_equal_copies();
}

TEST_F(OurNames, ACopyThatDiffersIsNamed) {
  const OurTensors tensors(folder({{"model.table", a_}, {"head", a_.add(1)}}), kModel);
  EXPECT_THAT([&] { tensors.require_equal_copies(); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'model.table'"), HasSubstr("'head'"))));
}

TEST_F(OurNames, ATensorUnderTwoNamesIsNamed) {
  const Checkpoint& twice = folder({{"model.w", a_}, {"w", a_}});
  EXPECT_THAT([&] { OurTensors(twice, kModel); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'w' twice"), HasSubstr("'model.w'"))));
}

}  // namespace
}  // namespace phalanx
