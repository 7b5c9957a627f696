// SPDX-License-Identifier: Apache-2.0
// print_factors TOTAL_STEPS: for every line "NAME STEPS YAML" of standard input, a line with that
// schedule's factors of steps 1 to STEPS in a run of TOTAL_STEPS.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/trainer/registered.h"
#include "trainer/api/lr_scheduler.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int64_t total = std::strtoll(argv[1], nullptr, 10);
  std::string name;
  int64_t steps = 0;
  std::string yaml;
  while (std::cin >> name >> steps && std::getline(std::cin, yaml)) {
    const auto schedule = phalanx::make_registered<phalanx::LrScheduler>(name, yaml);
    for (int64_t n = 1; n <= steps; ++n) std::printf("%.17g ", schedule->factor(n, total));
    std::printf("\n");
  }
}
