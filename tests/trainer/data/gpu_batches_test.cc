// SPDX-License-Identifier: Apache-2.0
// Micro-batches on their way to a GPU.
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/trainer/data/stored_numbers.h"
#include "trainer/cuda/load.h"
#include "trainer/data/loader.h"
#include "trainer/data/token_blocks.h"
#include "trainer/host/gpus.h"
#include "trainer/tensors/side_stream.h"

namespace phalanx {
namespace {

std::unique_ptr<BatchSource> batches(std::optional<at::Device> gpu, int64_t workers) {
  const auto tokens = std::make_shared<StoredNumbers>(std::vector<int64_t>(10000, 7));
  auto blocks = std::make_shared<TokenBlocks>(std::vector<TokenSpan>{{tokens, 0, 10000}}, 16);
  auto source =
      load(std::move(blocks), {.num_workers = workers}, {.batch_size = 4, .gpu = gpu}, true);
  source->start_epoch(0, 0);
  return source;
}

class GpuBatches : public testing::Test {
 protected:
  // As a rank does, before anything asks LibTorch about CUDA: the first answer is for the process.
  static void SetUpTestSuite() { load_cuda(); }
};

// Where LibTorch has answered before, its hooks know no CUDA, and throw.
TEST_F(GpuBatches, AskLibTorchWithItsCudaPartLoaded) {
  EXPECT_GE(at::detail::getCUDAHooks().versionCUDART(), 12000);
}

TEST_F(GpuBatches, AreNotPinnedWithoutAGpu) {
  const auto batch = batches({}, 1)->next();
  EXPECT_FALSE(static_cast<const TokenBatch&>(*batch).inputs.is_pinned());
}

TEST_F(GpuBatches, ComeThroughPinnedMemoryOnAStreamOfTheirOwn) {
  const int64_t gpus = usable_gpus();
  if (gpus == 0) GTEST_SKIP() << "no NVIDIA GPU on this host: not tested";
  const at::Device last(at::kCUDA, static_cast<c10::DeviceIndex>(gpus - 1));
  load_cuda().use_device(last.index());
  const SideStream copies(last);
  for (const int64_t workers : {0, 2}) {
    const auto source = batches(last, workers);
    while (const auto batch = source->next()) {
      auto& tokens = static_cast<TokenBatch&>(*batch);
      EXPECT_TRUE(tokens.inputs.is_pinned());
      copies.run_after_computing([&] { move_to(*batch, last); });
      copies.join();
      EXPECT_EQ(tokens.inputs.device(), last);
      EXPECT_TRUE(tokens.targets.eq(7).all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace phalanx
