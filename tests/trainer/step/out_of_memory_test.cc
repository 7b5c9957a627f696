// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/out_of_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "tests/trainer/loop/tiny.h"
#include "tests/trainer/memory/stand_in_device.h"

namespace phalanx {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMebibyte = 1 << 20;

/// A model with one parameter.
class Model : public ModelBase {
 public:
  explicit Model(at::Tensor parameter) {
    module_.register_parameter("weight", std::move(parameter), /*requires_grad=*/false);
  }
  torch::nn::Module& module() override { return module_; }

 private:
  torch::nn::Module module_;
};

std::string explained(std::shared_ptr<ModelBase> model) {
  return explain_out_of_memory(std::bad_alloc(), "step 5, forward",
                               TaskModel(nullptr, std::move(model)), {}, {"less", "more"});
}

TEST(OutOfMemory, OnAGpuSaysWhatItsAllocatorHolds) {
  const StandInDevice device({.total = 100 * kMebibyte,
                              .free = 5 * kMebibyte,
                              .reserved = 80 * kMebibyte,
                              .in_tensors = 30 * kMebibyte,
                              .most_in_tensors = 70 * kMebibyte});
  const std::string text = explained(std::make_shared<Model>(StandInDevice::tensor(2 * kMebibyte)));
  EXPECT_EQ(text,
            "out of memory in step 5, forward: std::bad_alloc\n"
            "held on this rank:\n"
            "        8.0 MiB  parameters\n"
            "        0.0 MiB  gradients\n"
            "       62.0 MiB  activations and what else was computed, at the most\n"
            "privateuseone:0, now:\n"
            "       30.0 MiB  in tensors\n"
            "       50.0 MiB  kept by LibTorch's allocator for tensors to come, perhaps in pieces "
            "too small\n"
            "       15.0 MiB  CUDA's and NCCL's own, and other processes'\n"
            "        5.0 MiB  free, of 100.0 MiB\n"
            "What needs less: less; more");
}

TEST(OutOfMemory, OnAGpuThatDoesNotAnswerSaysTheRest) {
  StandInDevice device({.total = 100 * kMebibyte});
  device.fail();
  EXPECT_THAT(explained(std::make_shared<Model>(StandInDevice::tensor(kMebibyte))),
              testing::AllOf(HasSubstr("4.0 MiB  parameters"), HasSubstr("What needs less"),
                             Not(HasSubstr("now:"))));
}

TEST(OutOfMemory, OnTheHostNamesNoDevice) {
  EXPECT_THAT(explained(tiny::make_model()),
              testing::AllOf(HasSubstr("parameters"), Not(HasSubstr("now:"))));
}

}  // namespace
}  // namespace phalanx
