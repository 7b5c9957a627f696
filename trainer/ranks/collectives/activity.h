// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/ranks/failures/shared_text.h"

namespace phalanx {

/// What a thread of a rank is doing: its own words, and a copy for the other threads.
class Activity {
 public:
  explicit Activity(std::string_view text) { set(text); }

  /// By the thread whose activity it is.
  void set(std::string_view text) {
    text_ = text;
    shared_.set(text);
  }
  /// For that thread.
  const std::string& text() const { return text_; }
  /// For every other.
  const SharedText& shared() const { return shared_; }

  /// Counts an operation with other ranks: the one that has begun fewest is waited for.
  void begin_operation() { operations_.fetch_add(1, std::memory_order_relaxed); }
  int64_t operations() const { return operations_.load(std::memory_order_relaxed); }

 private:
  std::string text_;
  SharedText shared_;
  std::atomic<int64_t> operations_ = 0;
};

}  // namespace phalanx
