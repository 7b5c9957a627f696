// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/remote_embedding/loss_lines.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace phalanx::remote_embedding {
namespace {

TEST(LossLines, GiveTheSameNamesAndTypes) {
  const Loss loss(Loss::Parts{{"cross entropy", at::full({}, 2, at::kDouble)},
                              {"z_loss", at::full({}, 3, at::kFloat)}});
  const Loss::Parts zeros = zeros_of(lines_of(loss));
  ASSERT_EQ(zeros.size(), 2U);
  EXPECT_EQ(zeros[0].first, "cross entropy");
  EXPECT_EQ(zeros[0].second.scalar_type(), at::kDouble);
  EXPECT_EQ(zeros[1].first, "z_loss");
  EXPECT_EQ(zeros[1].second.scalar_type(), at::kFloat);
  EXPECT_EQ(zeros[0].second.item<double>(), 0);
}

TEST(LossLines, RefuseOthers) {
  EXPECT_THROW(zeros_of(""), std::invalid_argument);
  EXPECT_THROW(zeros_of("4 loss\n"), std::invalid_argument);  // at::kLong
}

}  // namespace
}  // namespace phalanx::remote_embedding
