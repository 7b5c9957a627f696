// SPDX-License-Identifier: Apache-2.0
// print_tokens SOURCE CONFIG: a line with the tokens of a source, and one with the places where its
// documents begin.
#include <cstdint>
#include <exception>
#include <iostream>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/data/token_source.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const auto source = phalanx::make_registered<phalanx::TokenSource>(argv[1], argv[2]);
    const auto set = source->open("source");
    std::vector<int64_t> tokens(static_cast<size_t>(set->size()));
    set->read(0, tokens);
    for (const int64_t token : tokens) std::cout << token << ' ';
    std::cout << '\n';
    for (const phalanx::DocumentBegin& document : set->document_begins(0, set->size())) {
      std::cout << document.place << ' ';
    }
    std::cout << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
