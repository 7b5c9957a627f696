// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/pinned_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

namespace phalanx {
namespace {

/// Stands in for CUDA: what is pinned, and how often.
class FakePins final : public HostPins {
 public:
  void pin(void* memory, size_t bytes) const override {
    if (fails) throw std::runtime_error("no");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % page(), 0U);
    EXPECT_EQ(bytes % page(), 0U);
    EXPECT_TRUE(pinned.emplace(memory, bytes).second);
    ++calls;
  }
  void unpin(void* memory) const noexcept override { EXPECT_EQ(pinned.erase(memory), 1U); }

  static size_t page() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
  size_t bytes() const {
    size_t sum = 0;
    for (const auto& [memory, size] : pinned) sum += size;
    return sum;
  }

  mutable std::map<void*, size_t> pinned;
  mutable int calls = 0;
  bool fails = false;
};

TEST(PinnedMemory, TakesNoMoreThanItsSizeInPages) {
  const auto pins = std::make_shared<FakePins>();
  // A power of two and a little: LibTorch would take twice as much.
  for (const int64_t size : {int64_t{1}, int64_t{4096}, int64_t{4097}, int64_t{(1 << 20) + 1},
                             int64_t{(3 << 20) + 12345}, int64_t{(1 << 26) + 64}}) {
    const at::Tensor tensor = pinned_empty({size}, at::kByte, pins);
    EXPECT_EQ(tensor.nbytes(), static_cast<size_t>(size));
    EXPECT_GE(pins->bytes(), tensor.nbytes());
    EXPECT_LT(pins->bytes(), tensor.nbytes() + FakePins::page());
  }
  EXPECT_TRUE(pins->pinned.empty()) << "it was given back";
}

TEST(PinnedMemory, IsATensorLikeOthers) {
  const auto pins = std::make_shared<FakePins>();
  at::Tensor part;
  {
    const at::Tensor tensor = pinned_empty({3, 5}, at::kDouble, pins);
    EXPECT_TRUE(tensor.is_contiguous());
    EXPECT_TRUE(tensor.is_cpu());
    tensor.fill_(2);
    part = tensor.select(0, 1);
  }
  EXPECT_EQ(pins->pinned.size(), 1U) << "a view keeps it";
  EXPECT_EQ(part.sum().item<double>(), 10);
  part.reset();
  EXPECT_TRUE(pins->pinned.empty());
}

TEST(PinnedMemory, OfNothingPinsNothing) {
  const auto pins = std::make_shared<FakePins>();
  EXPECT_EQ(pinned_empty({0, 4}, at::kFloat, pins).numel(), 0);
  EXPECT_EQ(pins->calls, 0);
}

TEST(PinnedMemory, ThatCannotBePinnedIsGivenBack) {
  const auto pins = std::make_shared<FakePins>();
  pins->fails = true;
  EXPECT_THROW(pinned_empty({100}, at::kFloat, pins), std::runtime_error);
  EXPECT_THROW(pinned_empty({int64_t{1} << 60}, at::kByte, pins), std::bad_alloc);
}

PinnedPool::Make made_with(const std::shared_ptr<FakePins>& pins) {
  return [pins](int64_t bytes) { return pinned_empty({bytes}, at::kByte, pins); };
}

TEST(PinnedPool, PinsOnceForTensorsOfOneSize) {
  const auto pins = std::make_shared<FakePins>();
  PinnedPool pool(made_with(pins));
  for (int step = 0; step < 5; ++step) {
    const at::Tensor a = pool.empty({1000}, at::kFloat);
    const at::Tensor b = pool.empty({10, 100}, at::kFloat);
    EXPECT_NE(a.const_data_ptr(), b.const_data_ptr());
  }
  EXPECT_EQ(pins->calls, 2);
  const at::Tensor other = pool.empty({5000}, at::kFloat);
  EXPECT_EQ(pins->calls, 3);
}

TEST(PinnedPool, IsOutlivedByItsTensorsInAnyThread) {
  const auto pins = std::make_shared<FakePins>();
  at::Tensor tensor;
  {
    PinnedPool pool(made_with(pins));
    tensor = pool.empty({1000}, at::kFloat);
  }
  tensor.fill_(1);
  std::thread([gone = std::move(tensor)]() mutable { gone.reset(); }).join();
  EXPECT_TRUE(pins->pinned.empty());
}

}  // namespace
}  // namespace phalanx
