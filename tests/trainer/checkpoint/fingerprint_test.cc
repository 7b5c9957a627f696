// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/fingerprint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

class Fingerprint : public testing::Test {
 protected:
  std::string of(const std::string& file, const std::vector<ShardedTensorView>& views) {
    write_safetensors(folder_ / file, views);
    return fingerprint_of(open_safetensors_model(folder_ / file), Ranks());
  }

  TemporaryFolder folder_;
  at::Tensor a_ = tensors::arange(6, at::kFloat).view({2, 3});
  at::Tensor b_ = tensors::arange(4, at::kFloat);
};

TEST_F(Fingerprint, IsThatOfTheTensorsWhateverFilesTheyStandIn) {
  const std::string whole = of("whole.safetensors", {whole_tensor("a", a_), whole_tensor("b", b_)});
  of("model-00001-of-00002.safetensors", {whole_tensor("b", b_)});
  of("model-00002-of-00002.safetensors", {whole_tensor("a", a_)});
  spill(folder_ / "model.safetensors.index.json",
        R"({"metadata": {"total_size": 40}, "weight_map": {
          "a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"}})");
  EXPECT_EQ(fingerprint_of(open_safetensors_model(folder_.path()), Ranks()), whole);
}

TEST_F(Fingerprint, ChangesWithEachValueNameShapeAndDtype) {
  const std::string before = of("0.safetensors", {whole_tensor("a", a_)});
  EXPECT_NE(of("1.safetensors", {whole_tensor("c", a_)}), before);
  EXPECT_NE(of("2.safetensors", {whole_tensor("a", a_.view({3, 2}))}), before);
  EXPECT_NE(of("3.safetensors", {whole_tensor("a", a_.to(at::kBFloat16))}), before);
  a_[1][2] = 7;
  EXPECT_NE(of("4.safetensors", {whole_tensor("a", a_)}), before);
}

}  // namespace
}  // namespace phalanx
