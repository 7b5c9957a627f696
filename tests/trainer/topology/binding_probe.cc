// SPDX-License-Identifier: Apache-2.0
// For tests: prints the cores of each rank with a GPU, "0-3,8: ...", on the host whose /proc, /sys
// and /dev are under a folder (HWLOC_FSROOT is the same).
//
//   binding_probe FOLDER RANKS node|socket|exclusive|core-complex

#include <cstdio>
#include <exception>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "trainer/topology/bind_rank.h"

int main(int, char** arguments) {
  const std::map<std::string, phalanx::NumaBinding> bindings(phalanx::kNumaBindings.begin(),
                                                             phalanx::kNumaBindings.end());
  std::vector<int64_t> ranks(std::stoul(arguments[2]));
  std::iota(ranks.begin(), ranks.end(), 0);
  try {
    for (const int64_t rank : ranks) {
      const auto cores = phalanx::cores_of_rank(
          bindings.at(arguments[3]), {.local_ranks = ranks, .local_rank = rank, .on_gpus = true},
          arguments[1]);
      std::printf("%s\n", phalanx::describe(cores.units).c_str());
    }
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
  }
  return 0;
}
