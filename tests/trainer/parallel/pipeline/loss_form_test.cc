// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/loss_form.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace phalanx::pipeline {
namespace {

Loss of_two_parts() {
  return Loss::Parts{{"cross entropy", at::full({}, 2.5, at::kFloat)},
                     {"size", at::full({}, 4.0, at::kDouble)}};
}

TEST(LossForm, IsTheSameOnOtherStages) {
  const LossForm form(of_two_parts());
  const LossForm there(form.text());
  EXPECT_EQ(there, form);
  const Loss loss = there.with(there.zeros());
  ASSERT_EQ(loss.parts().size(), 2U);
  EXPECT_EQ(loss.parts()[0].first, "cross entropy");
  EXPECT_EQ(loss.parts()[1].first, "size");
  EXPECT_EQ(loss.parts()[0].second.scalar_type(), at::kFloat);
  EXPECT_EQ(loss.parts()[1].second.scalar_type(), at::kDouble);
  for (const auto& [name, value] : loss.parts()) {
    EXPECT_EQ(value.dim(), 0) << name;
    EXPECT_EQ(value.item<double>(), 0) << name;
  }
}

TEST(LossForm, DiffersByNamesDtypesAndTheirNumber) {
  const LossForm form(of_two_parts());
  const at::Tensor value = at::full({}, 1.0, at::kFloat);
  EXPECT_NE(form, LossForm(Loss(value)));
  EXPECT_NE(form, LossForm(Loss(Loss::Parts{{"cross entropy", value}, {"size", value}})));
  EXPECT_NE(LossForm(Loss(value)), LossForm(Loss(Loss::Parts{{"size", value}})));
}

TEST(LossForm, RefusesATextWithoutParts) { EXPECT_THROW(LossForm(""), std::invalid_argument); }

}  // namespace
}  // namespace phalanx::pipeline
