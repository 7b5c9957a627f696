// SPDX-License-Identifier: Apache-2.0
// Writes what a trainer reads, for a Python test: `write_batches TASK OUTPUT BATCH_SIZE COUNT`
// opens the training data of the task sequence_to_sequence, whose section is the YAML text TASK, as
// one rank of seed 0, and writes `inputs.0`, `targets.0`, `inputs.1`, … to a safetensors file.

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/api/batch_source.h"
#include "trainer/api/task.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/data/sequence_pair_batch.h"

namespace phalanx {
namespace {

void run(const std::vector<std::string>& arguments) {
  const auto task = make_registered<AnyTask>("sequence_to_sequence", arguments.at(0));
  const auto source =
      task->build_data(Phase::train, {.batch_size = std::stoll(arguments.at(2)), .seed = 0});
  const int64_t count = std::stoll(arguments.at(3));
  std::vector<ShardedTensorView> views;
  for (int64_t epoch = 0, number = 0; number < count; ++epoch) {
    source->start_epoch(epoch, 0);
    for (auto batch = source->next(); batch && number < count; batch = source->next(), ++number) {
      const auto& pair = static_cast<const SequencePairBatch&>(*batch);
      views.push_back(whole_tensor("inputs." + std::to_string(number), pair.inputs));
      views.push_back(whole_tensor("targets." + std::to_string(number), pair.targets));
    }
  }
  write_safetensors(arguments.at(1), views);
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) try {
  phalanx::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "write_batches: " << error.what() << "\n";
  return 1;
}
