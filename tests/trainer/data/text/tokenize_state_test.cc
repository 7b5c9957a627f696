// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokenize_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/data/text_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::SizeIs;

// The names of the files that are removed from a folder, in their order.
class Removals {
 public:
  explicit Removals(const fs::path& folder) : inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    EXPECT_GE(inotify_add_watch(inotify_, folder.c_str(), IN_DELETE), 0);
  }
  ~Removals() { close(inotify_); }
  Removals(const Removals&) = delete;
  Removals& operator=(const Removals&) = delete;

  // Reads every event so far: the kernel queues an event before the call that removes a file
  // returns.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    alignas(inotify_event) std::array<char, 4096> buffer;
    for (ssize_t size = 0; (size = read(inotify_, buffer.data(), buffer.size())) > 0;) {
      for (ssize_t place = 0; place < size;) {
        inotify_event event{};
        std::memcpy(&event, buffer.data() + place, sizeof event);
        names.emplace_back(buffer.data() + place + sizeof event);
        place += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
    return names;
  }

 private:
  int inotify_;
};

// A kill in between must leave what says that the rest may be removed: without it, the next start
// refuses files of which nothing says what they are.
TEST(ClearWork, RemovesLastWhatTellsOfTheRest) {
  const TextFolder folder;
  for (const char* name : {"tokens.json", "state.json", "lock", "train_000000.bin",
                           "train_000000.lengths", "val_000000.bin", "zzz"}) {
    folder.write(name, "");
  }
  const Removals removals(folder.path());
  clear_work(folder.path());
  const std::vector<std::string> names = removals.names();
  ASSERT_THAT(names, SizeIs(6));
  EXPECT_EQ(names[4], "state.json");
  EXPECT_EQ(names[5], "tokens.json");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, ElementsAre("lock"));
}

}  // namespace
}  // namespace phalanx
