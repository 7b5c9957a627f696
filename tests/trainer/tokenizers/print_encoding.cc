// SPDX-License-Identifier: Apache-2.0
// print_encoding TOKENIZER [SPECIAL]: reads texts from its input, each behind its length (8 bytes),
// and prints for each the number of its tokens (8 bytes), the tokens (4 bytes each), the length of
// their text (8 bytes) and that text. With SPECIAL, texts of special tokens are these tokens.
// On stderr: seconds of processor time that encoding took.
#include <time.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

bool read_text(std::string& text) {
  int64_t size = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
  text.resize(static_cast<size_t>(size));
  return static_cast<bool>(std::cin.read(text.data(), size));
}

void write_all(const void* data, int64_t bytes) {
  std::cout.write(static_cast<const char*>(data), bytes);
}

void write_count(size_t count) {
  const auto number = static_cast<int64_t>(count);
  write_all(&number, sizeof number);
}

// Processor time of this thread, in seconds: what else runs on the machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int run(const std::string& name, SpecialText special) {
  const LoadedTokenizer loaded = load_tokenizer("the first argument", name);
  std::string text;
  std::vector<int32_t> tokens;
  double seconds = 0;
  while (read_text(text)) {
    tokens.clear();
    const double begin = thread_seconds();
    loaded.tokenizer->encode(text, special, tokens);
    seconds += thread_seconds() - begin;
    write_count(tokens.size());
    write_all(tokens.data(), static_cast<int64_t>(tokens.size() * sizeof(int32_t)));
    const std::string decoded = decode(*loaded.tokenizer, tokens);
    write_count(decoded.size());
    write_all(decoded.data(), static_cast<int64_t>(decoded.size()));
  }
  std::cerr << seconds << "\n";
  return 0;
}

}  // namespace
}  // namespace phalanx

int main(int count, char** arguments) {
  if (count < 2) return 2;
  std::ios::sync_with_stdio(false);
  const auto special = count > 2 ? phalanx::SpecialText::token : phalanx::SpecialText::ordinary;
  return phalanx::run(arguments[1], special);
}
