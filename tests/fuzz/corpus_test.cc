// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <exception>
#include <fstream>
#include <string>

#include "tests/fuzz/target.h"

/// Runs a fuzz target over the inputs that fuzzing found worth keeping: tools/fuzz packs them, one
/// a line, into the file that the command line names.
namespace phalanx::fuzzing {
namespace {

constexpr double kMaxSeconds = 2;  // of a processor's time, for one input
constexpr rlim_t kMaxBytes = rlim_t{1} << 30;

std::string corpus_file;

/// The input that a line stands for.
std::string unpacked(const std::string& line) {
  std::string input;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      input += line[i];
    } else if (line[++i] == 'x') {
      input += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      input += line[i] == 'n' ? '\n' : line[i];
    }
  }
  return input;
}

/// Makes an input that takes too much memory fail by itself, where no sanitizer needs more.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{kMaxBytes, kMaxBytes};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
#endif
}

TEST(Corpus, BreaksNoPromise) {
  limit_memory();
  std::ifstream corpus(corpus_file);
  ASSERT_TRUE(corpus) << corpus_file;
  int inputs = 0;
  for (std::string line; std::getline(corpus, line); ++inputs) {
    const std::string input = unpacked(line);
    const std::clock_t begin = std::clock();
    try {
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\nline " << inputs + 1 << " of " << corpus_file << ": "
                    << line;
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, kMaxSeconds) << line;
  }
  EXPECT_GT(inputs, 100);
}

}  // namespace
}  // namespace phalanx::fuzzing

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 2) phalanx::fuzzing::corpus_file = argv[1];
  return RUN_ALL_TESTS();
}
