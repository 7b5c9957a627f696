// SPDX-License-Identifier: Apache-2.0
#pragma once

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

 private:
  std::string text_;
  SharedText shared_;
};

}  // namespace phalanx
