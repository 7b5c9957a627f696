// SPDX-License-Identifier: Apache-2.0
// print_rouge: reads texts from its input, each behind its length (8 bytes), a text and its
// reference in turn, and prints a line for each two: rouge1, rouge2, rougeL, rougeLsum, whether
// they match.
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>

#include "trainer/metrics/rouge.h"

namespace {

bool read_text(std::string& text) {
  int64_t size = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
  text.resize(static_cast<size_t>(size));
  return static_cast<bool>(std::cin.read(text.data(), size));
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10);
  std::string text;
  std::string reference;
  while (read_text(text) && read_text(reference)) {
    const phalanx::Rouge scores = phalanx::rouge(text, reference);
    std::cout << scores.rouge1 << ' ' << scores.rouge2 << ' ' << scores.rouge_l << ' '
              << scores.rouge_lsum << ' ' << phalanx::is_exact_match(text, reference) << '\n';
  }
  return 0;
}
