// SPDX-License-Identifier: Apache-2.0
// print_order: for every line "SAMPLES SEED EPOCH SHUFFLE RANK WORLD" of standard input, a line
// with the samples of that rank in its order.
#include <cstdint>
#include <iostream>

#include "trainer/data/deal.h"
#include "trainer/data/sample_order.h"

int main() {
  uint64_t seed = 0;
  int64_t epoch = 0;
  bool shuffle = false;
  phalanx::Deal deal;
  while (std::cin >> deal.samples >> seed >> epoch >> shuffle >> deal.rank >> deal.world_size) {
    const auto order = shuffle ? phalanx::SampleOrder::drawn(deal.samples, seed, epoch)
                               : phalanx::SampleOrder::plain(deal.samples);
    for (int64_t batch = 0; batch < deal.batches_after(0); ++batch) {
      for (const int64_t sample : deal.indices(order, 0, batch)) std::cout << sample << ' ';
    }
    std::cout << '\n';
  }
}
