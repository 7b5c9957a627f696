// SPDX-License-Identifier: Apache-2.0
// print_decoding TOKENIZER: reads lists of tokens from its input, each behind its length (8 bytes),
// tokens of 4 bytes, and prints for each the length of its text (8 bytes) and that text.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

bool read_tokens(std::vector<int32_t>& tokens) {
  int64_t count = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&count), sizeof count)) return false;
  tokens.resize(static_cast<size_t>(count));
  const auto bytes = static_cast<int64_t>(tokens.size() * sizeof(int32_t));
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(tokens.data()), bytes));
}

int run(const std::string& name) {
  const LoadedTokenizer loaded = load_tokenizer("the argument", name);
  std::vector<int32_t> tokens;
  while (read_tokens(tokens)) {
    const std::string text = decode(*loaded.tokenizer, tokens);
    const auto size = static_cast<int64_t>(text.size());
    std::cout.write(reinterpret_cast<const char*>(&size), sizeof size);
    std::cout.write(text.data(), size);
  }
  return 0;
}

}  // namespace
}  // namespace phalanx

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::ios::sync_with_stdio(false);
  return phalanx::run(arguments[1]);
}
