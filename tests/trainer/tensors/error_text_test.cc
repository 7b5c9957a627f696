// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/error_text.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace phalanx {
namespace {

std::string text_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error_text(error);
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(ErrorText, IsWithoutLibTorchsBacktrace) {
  EXPECT_EQ(text_of([] {
              at::ones({2, 3}).view({4});
            }),
            "shape '[4]' is invalid for input of size 6");
}

TEST(ErrorText, TellsWhatMixedPrecisionsMayComeFrom) {
  const at::Tensor input = at::ones({1, 4, 4});
  const at::Tensor weight = at::ones({4, 4}, at::kBFloat16);
  const at::Tensor half = at::ones({4}, at::kHalf);
  for (const std::function<void()>& mixed : std::initializer_list<std::function<void()>>{
           [&] { at::linear(input, weight); }, [&] { at::linear(input[0], weight); },
           [&] { at::addmm(weight, input[0], input[0]); },
           [&] { at::bmm(input, weight.unsqueeze(0)); },
           [&] { at::conv1d(input, weight.unsqueeze(2)); },
           [&] { at::layer_norm(input, {4}, half, half); }}) {
    const std::string text = text_of(mixed);
    EXPECT_NE(text.find("\n(where a sharded model computes in lower precision"), std::string::npos)
        << text;
  }
}

TEST(ErrorText, OtherTypesHaveNoHint) {
  const std::string text = text_of([] {
    at::linear(at::ones({2, 2}, at::kDouble), at::ones({2, 2}));
  });
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

}  // namespace
}  // namespace phalanx
