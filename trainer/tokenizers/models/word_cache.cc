// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/models/word_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "trainer/tokenizers/vocabulary.h"

namespace phalanx {
namespace {

constexpr std::size_t kSlots = std::size_t{1} << 15;

std::atomic<uint64_t> next_owner{1};

}  // namespace

WordCache::WordCache() : owner_(next_owner++) {}

WordCache::Slot* WordCache::slot_of(std::string_view piece) const {
  thread_local std::vector<Slot> slots(kSlots);
  if (piece.size() > kLongestPiece) return nullptr;
  return &slots[(TextHash()(piece) + owner_) % kSlots];
}

bool WordCache::holds(const Slot& slot, std::string_view piece) const {
  return slot.owner == owner_ && slot.size == piece.size() &&
         std::memcmp(slot.piece, piece.data(), piece.size()) == 0;
}

void WordCache::remember(Slot& slot, std::string_view piece, const int32_t* tokens,
                         std::size_t count) const {
  if (count > kMostTokens) return;
  slot.owner = owner_;
  slot.size = static_cast<uint8_t>(piece.size());
  slot.count = static_cast<uint8_t>(count);
  std::copy_n(piece.data(), piece.size(), slot.piece);
  std::copy_n(tokens, count, slot.tokens);
}

}  // namespace phalanx
