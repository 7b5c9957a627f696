// SPDX-License-Identifier: Apache-2.0
// print_plateau: for every two lines of standard input, a section of the schedule plateau and
// values of its metric `loss`, a line with the factor behind each value.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/trainer/registered.h"
#include "trainer/api/lr_scheduler.h"

int main() {
  std::string yaml;
  std::string values;
  while (std::getline(std::cin, yaml) && std::getline(std::cin, values)) {
    const auto schedule = phalanx::make_registered<phalanx::LrScheduler>("plateau", yaml);
    std::istringstream stream(values);
    std::string value;
    while (stream >> value) {
      schedule->validated({{"loss", std::stod(value)}});  // "nan" and "inf", too
      std::printf("%.17g ", schedule->factor(1, 1));
    }
    std::printf("\n");
  }
}
