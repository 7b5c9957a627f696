// SPDX-License-Identifier: Apache-2.0
// Prints the names of a list of nodes, a line each, as `scontrol show hostnames` does.
#include <cstdio>
#include <exception>
#include <string>

#include "trainer/host/node_list.h"

int main(int argc, char** argv) {
  try {
    for (const std::string& name : phalanx::expand_node_list(argc == 2 ? argv[1] : "")) {
      std::printf("%s\n", name.c_str());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
