// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/shared_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace phalanx {
namespace {

TEST(SharedText, IsTheNewest) {
  SharedText text;
  EXPECT_EQ(text.text(), "");
  text.set("step 3, backward");
  EXPECT_EQ(text.text(), "step 3, backward");
  text.set("step 4");
  EXPECT_EQ(text.text(), "step 4");
  text.set("");
  EXPECT_EQ(text.text(), "");
}

TEST(SharedText, IsCut) {
  SharedText text;
  text.set(std::string(SharedText::kMostBytes, 'a'));
  EXPECT_EQ(text.text(), std::string(SharedText::kMostBytes, 'a'));
  text.set(std::string(SharedText::kMostBytes, 'b') + "c");
  EXPECT_EQ(text.text(), std::string(SharedText::kMostBytes, 'b'));
}

// A text of one character throughout: a mixture of two has others.
TEST(SharedText, IsNeverAMixture) {
  SharedText text;
  text.set("a");
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    for (size_t i = 0; !ends; ++i) {
      text.set(std::string(1 + i % SharedText::kMostBytes, static_cast<char>('a' + i % 26)));
    }
  });
  int mixed = 0;
  int read = 0;
  for (int i = 0; i < 200'000; ++i) {
    const SharedText::Copy copy = text.read();
    if (copy.size == 0) continue;
    ++read;
    if (copy.view().find_first_not_of(copy.bytes[0]) != std::string_view::npos) ++mixed;
    if (copy.size < SharedText::kMostBytes && copy.bytes[copy.size] != '\0') ++mixed;
  }
  ends = true;
  writer.join();
  EXPECT_GT(read, 0);
  EXPECT_EQ(mixed, 0);
}

}  // namespace
}  // namespace phalanx
