// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/memory.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/tensors.h"

namespace phalanx {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

int64_t resident() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;  // the second is what is resident
  return pages * ::sysconf(_SC_PAGESIZE);
}

rlim_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    rlim_t kibibytes = 0;
    if (word == "VmData:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// Written, so that its pages are there.
at::Tensor written(int64_t bytes) { return tensors::empty({bytes}, at::kByte).fill_(1); }

class Memory : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    use_caching_allocator();
    written(8 * kMebibyte);  // what LibTorch needs for itself
  }
};

TEST_F(Memory, TheNextTensorOfASizeGetsTheMemoryOfTheLast) {
  const at::Tensor other = written(5 * kMebibyte);
  const void* const first = written(6 * kMebibyte).const_data_ptr();
  EXPECT_EQ(written(6 * kMebibyte).const_data_ptr(), first);
  EXPECT_NE(written(5 * kMebibyte).const_data_ptr(), other.const_data_ptr());
}

TEST_F(Memory, SizesThatFollowEachOtherTakeThatOfTheLargest) {
  const int64_t before = resident();
  for (int64_t size = 32; size <= 64; ++size) {
    const at::Tensor half = written(size * kMebibyte / 2);
    written(size * kMebibyte);
  }
  EXPECT_LE(resident() - before, 97 * kMebibyte);
}

TEST_F(Memory, BlocksAreCutAndGrownWhereThereIsNoRoomForNewOnes) {
  written(256 * kMebibyte);
  const int64_t before = resident();
  EXPECT_EQ(most_large_tensor_bytes(), 256 * kMebibyte) << "other tests need less";
  {
    const at::Tensor half = written(128 * kMebibyte);
    const at::Tensor other = written(128 * kMebibyte);
    EXPECT_EQ(other.const_data_ptr<uint8_t>() - half.const_data_ptr<uint8_t>(), 128 * kMebibyte);
    EXPECT_LE(resident() - before, kMebibyte);
  }
  const at::Tensor grown = written(256 * kMebibyte);
  EXPECT_EQ(grown.const_data_ptr<uint8_t>()[200 * kMebibyte], 1);
  EXPECT_LE(resident() - before, kMebibyte);
}

// In a process of its own: the limit stays.
TEST_F(Memory, ALimitThatForbidsGrowingIsNoEnd) {
  const auto grow_at_the_limit = [] {
    for (int i = 0; i < 3; ++i) {
      { const at::Tensor whole = written(512 * kMebibyte); }
      const at::Tensor part = written(256 * kMebibyte);
      // What lies idle is counted still: no more can be had before some of it is given back.
      rlimit limit{};
      ::getrlimit(RLIMIT_DATA, &limit);
      limit.rlim_cur = data_bytes() + kMebibyte;
      ::setrlimit(RLIMIT_DATA, &limit);
      { const at::Tensor half = written(128 * kMebibyte); }
      const at::Tensor grown = written(250 * kMebibyte);
      limit.rlim_cur = limit.rlim_max;
      ::setrlimit(RLIMIT_DATA, &limit);
    }
    std::exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fork has lost LibTorch's threads
  EXPECT_EXIT(grow_at_the_limit(), testing::ExitedWithCode(0), "");
}

// In a process of its own, as above.
TEST_F(Memory, SmallTensorsGetWhatLiesIdleAtALimit) {
  const auto fill_to_the_limit = [] {
    { const at::Tensor whole = written(512 * kMebibyte); }
    rlimit limit{};
    ::getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = data_bytes() + kMebibyte;
    ::setrlimit(RLIMIT_DATA, &limit);
    std::vector<at::Tensor> small;
    for (int i = 0; i < 800; ++i) small.push_back(written(kMebibyte / 2));
    std::exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fill_to_the_limit(), testing::ExitedWithCode(0), "");
}

// Only what is needed of a large block goes back.
TEST_F(Memory, AMiddlingTensorLeavesMostOfALargeBlock) {
  written(512 * kMebibyte);
  const at::Tensor middling = written(6 * kMebibyte);
  const int64_t before = resident();
  written(500 * kMebibyte);
  EXPECT_LE(resident() - before, kMebibyte);
}

TEST_F(Memory, EveryTensorHasItsOwnWhateverComesAndGoes) {
  std::mt19937_64 random(7);
  std::vector<at::Tensor> tensors(24);
  for (int i = 0; i < 400; ++i) {
    at::Tensor& place = tensors[random() % tensors.size()];
    const auto tag = static_cast<uint8_t>(i % 251);
    const auto size = static_cast<int64_t>(random() % (12 * kMebibyte)) + 1;
    place = tensors::full({size}, tag, at::kByte);
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined()) continue;
      const auto* const bytes = tensor.const_data_ptr<uint8_t>();
      ASSERT_EQ(bytes[0], bytes[tensor.numel() - 1]);
      ASSERT_EQ(bytes[0], bytes[tensor.numel() / 2]);
    }
  }
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) {
      EXPECT_TRUE(tensor.eq(tensor[0]).all().item<bool>());
    }
  }
}

TEST_F(Memory, SmallTensorsAndRawMemoryAreTakenAndReleased) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  for (const int64_t bytes : {int64_t{100}, 2 * kMebibyte}) {
    EXPECT_EQ(written(bytes).sum().item<int64_t>(), bytes);
    void* const raw = allocator.raw_allocate(static_cast<size_t>(bytes));
    allocator.raw_deallocate(raw);
  }
  EXPECT_EQ(allocator.allocate(0).get(), nullptr);
}

TEST_F(Memory, WhatCannotBeHadIsAnError) {
  EXPECT_THROW(tensors::empty({int64_t{1} << 50}, at::kByte), c10::Error);
}

}  // namespace
}  // namespace phalanx
