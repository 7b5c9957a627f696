// SPDX-License-Identifier: Apache-2.0
// rewrite_safetensors IN OUT: reads a safetensors file and writes its tensors again, so that the
// Python package can compare. Prints what is wrong with IN and exits 1 when it is refused.

#include <cstdio>
#include <exception>
#include <vector>

#include "trainer/checkpoint/format/safetensors.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    std::vector<phalanx::ShardedTensorView> views;
    for (const auto& [name, tensor] : phalanx::read_safetensors(argv[1])) {
      views.push_back(phalanx::whole_tensor(name, tensor));
    }
    phalanx::write_safetensors(argv[2], views);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
