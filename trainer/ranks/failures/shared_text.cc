// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/shared_text.h"

#include <algorithm>
#include <cstring>

namespace phalanx {
namespace {

constexpr int kMostTries = 1000;

using Words = std::array<uint64_t, SharedText::kMostBytes / sizeof(uint64_t)>;

}  // namespace

void SharedText::set(std::string_view text) noexcept {
  const size_t size = std::min(text.size(), kMostBytes);
  const uint64_t version = versions_.load(std::memory_order_relaxed) + 1;
  Slot& slot = slots_[version % 2];
  // A reader that sees a word of this text sees that the slot is not the newest any more.
  std::atomic_thread_fence(std::memory_order_release);
  // Words behind the text keep what they have: nobody reads beyond its size.
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(size - at, sizeof(word)));
    slot.words[at / sizeof(word)].store(word, std::memory_order_relaxed);
  }
  slot.size.store(size, std::memory_order_relaxed);
  versions_.store(version, std::memory_order_release);
}

SharedText::Copy SharedText::read() const noexcept {
  for (int tries = 0; tries < kMostTries; ++tries) {
    const uint64_t version = versions_.load(std::memory_order_acquire);
    const Slot& slot = slots_[version % 2];
    Words words{};
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = slot.words[i].load(std::memory_order_relaxed);
    }
    Copy copy;
    copy.size = slot.size.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (versions_.load(std::memory_order_relaxed) != version) continue;
    std::memcpy(copy.bytes.data(), words.data(), copy.size);
    return copy;
  }
  return {};
}

}  // namespace phalanx
