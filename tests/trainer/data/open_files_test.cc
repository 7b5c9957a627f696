// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/open_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/api/broken_sample.h"
#include "trainer/data/data_file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr size_t kFiles = 500;

int open_below(const fs::path& folder) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry, gone).string();
    count += target.starts_with(folder.string()) ? 1 : 0;
  }
  return count;
}

int mapped_below(const fs::path& folder) {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    count += line.find(folder.string()) != std::string::npos ? 1 : 0;
  }
  return count;
}

// Files that hold their numbers.
FileList many_files(const TextFolder& folder) {
  FileList files;
  for (size_t i = 0; i < kFiles; ++i) {
    files.add(folder.write(std::to_string(i), "text " + std::to_string(i)).native());
  }
  return files;
}

std::string text_of(const DataFiles& files, size_t file) {
  std::string text(files.size(file), '\0');
  files.read(file, 0, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
  return text;
}

std::string error_of(const DataFiles& files, size_t file) {
  try {
    text_of(files, file);
  } catch (const BrokenSampleError& error) {
    return error.what();
  }
  return "no error";
}

TEST(OpenFiles, AreFewHoweverManyAreRead) {
  const TextFolder folder;
  const DataFiles files("path", many_files(folder));
  EXPECT_LE(open_below(folder.path()), static_cast<int>(OpenFiles::kMost));
  for (size_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(text_of(files, i), "text " + std::to_string(i));
    const auto mapped = files.map(i);
    EXPECT_EQ(std::string(mapped.bytes.begin(), mapped.bytes.end()), "text " + std::to_string(i));
  }
  EXPECT_EQ(open_below(folder.path()), static_cast<int>(OpenFiles::kMost));
  EXPECT_EQ(mapped_below(folder.path()), static_cast<int>(OpenFiles::kMost));
}

TEST(OpenFiles, AreClosedWithTheirSet) {
  const TextFolder folder;
  {
    const DataFiles files("path", many_files(folder));
    EXPECT_GT(open_below(folder.path()), 0);
  }
  EXPECT_EQ(open_below(folder.path()), 0);
}

TEST(OpenFiles, AreThoseThatWereReadLast) {
  const TextFolder folder;
  const DataFiles files("path", many_files(folder));
  const auto number = OpenFiles::instance().new_numbers(2);
  const auto kept = folder.write("kept", "");
  const auto first = OpenFiles::instance().open(number, kept);
  for (size_t i = 0; i < kFiles; ++i) {
    text_of(files, i);
    EXPECT_EQ(OpenFiles::instance().find(number), first);  // This counts as reading.
  }
  for (size_t i = 0; i < OpenFiles::kMost; ++i) text_of(files, i);
  EXPECT_EQ(OpenFiles::instance().find(number), nullptr);
}

TEST(OpenFiles, OneThatIsReadStaysOpenThough) {
  const TextFolder folder;
  const DataFiles files("path", many_files(folder));
  const auto mapped = files.map(0);
  for (size_t i = 1; i < kFiles; ++i) text_of(files, i);
  EXPECT_EQ(std::string(mapped.bytes.begin(), mapped.bytes.end()), "text 0");
}

TEST(OpenFiles, MayBeReadByManyThreads) {
  const TextFolder folder;
  const DataFiles files("path", many_files(folder));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937 random(static_cast<unsigned>(seed));
        for (int i = 0; i < 3000; ++i) {
          const size_t file = random() % kFiles;
          if (text_of(files, file) != "text " + std::to_string(file)) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(open_below(folder.path()), static_cast<int>(OpenFiles::kMost));
}

TEST(DataFiles, SayThatOneWasReplacedOrRemovedMeanwhile) {
  const TextFolder folder;
  const DataFiles files("path", many_files(folder));
  for (size_t i = 2; i < kFiles; ++i) text_of(files, i);  // Closes the first.
  fs::rename(folder.write("other", "other text"), files.path(0));
  fs::remove(files.path(1));
  EXPECT_THAT(error_of(files, 0), HasSubstr("/0' was replaced by another file"));
  EXPECT_THAT(error_of(files, 1), HasSubstr("/1' was removed"));
  EXPECT_EQ(error_of(files, 2), "no error");
}

TEST(DataFiles, SayThatOneBecameShorter) {
  const TextFolder folder;
  const DataFiles files("path", many_files(folder));
  fs::resize_file(files.path(3), 2);
  EXPECT_THAT(error_of(files, 3), HasSubstr("shrank from 6 to 2 bytes"));
  EXPECT_THROW(files.map(3), BrokenSampleError);
}

}  // namespace
}  // namespace phalanx
