// SPDX-License-Identifier: Apache-2.0
// From several threads at once; the sanitizers see what happens to blocks between them.
#include "trainer/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

constexpr int kThreads = 4;
constexpr int kBlocksOfEach = 200;
constexpr std::size_t kMebibyte = 1 << 20;

struct Block {
  c10::DataPtr data;
  std::size_t bytes = 0;
  unsigned char content = 0;

  // Every 4 KiB and the end: a block that another one overlaps has a byte of that in it.
  std::vector<unsigned char*> places() const {
    auto* const begin = static_cast<unsigned char*>(data.get());
    std::vector<unsigned char*> found;
    for (std::size_t i = 0; i < bytes; i += 4096) found.push_back(begin + i);
    found.push_back(begin + bytes - 1);
    return found;
  }
};

// Blocks on their way from the threads that fill them to those that look at them and free them.
class Exchange {
 public:
  void put(Block block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(block));
  }

  // Any one; nothing if there is none.
  Block take(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return {};
    std::swap(blocks_[random() % blocks_.size()], blocks_.back());
    Block block = std::move(blocks_.back());
    blocks_.pop_back();
    return block;
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

bool is_whole(const Block& block) {
  return std::ranges::all_of(block.places(),
                             [&](const unsigned char* place) { return *place == block.content; });
}

TEST(CachingAllocator, GivesEveryThreadBlocksThatNoOtherHas) {
  CachingAllocator& allocator = CachingAllocator::instance();
  Exchange exchange;
  std::atomic<int> broken = 0;
  const auto work = [&](unsigned number) {
    std::mt19937 random(number);
    for (int i = 0; i < kBlocksOfEach; ++i) {
      // Half of them are below a mebibyte, and not kept.
      const std::size_t bytes = 1 + random() % (random() % 2 == 0 ? kMebibyte : 9 * kMebibyte);
      Block block{.data = allocator.allocate(bytes),
                  .bytes = bytes,
                  .content = static_cast<unsigned char>(random())};
      for (unsigned char* place : block.places()) *place = block.content;
      exchange.put(std::move(block));
      if (i % 3 == 0) continue;
      const Block taken = exchange.take(random);
      if (taken.bytes > 0 && !is_whole(taken)) ++broken;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned number = 0; number < kThreads; ++number) threads.emplace_back(work, number);
  threads.clear();
  EXPECT_EQ(broken, 0);
  std::mt19937 random(kThreads);
  int left = 0;
  for (Block block = exchange.take(random); block.bytes > 0; block = exchange.take(random)) {
    EXPECT_TRUE(is_whole(block));
    ++left;
  }
  EXPECT_GE(left, kThreads * kBlocksOfEach / 3);
  EXPECT_GE(allocator.most(), 9 * kMebibyte);
}

}  // namespace
}  // namespace phalanx
