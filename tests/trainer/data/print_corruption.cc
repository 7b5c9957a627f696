// SPDX-License-Identifier: Apache-2.0
// Span corruption of the tokens 2, 3, ...: for each argument "INPUT_LENGTH DENSITY MEAN_SPAN_LENGTH
// SAMPLES" a line with the lengths of text, input and target, and for each sample a line with its
// input and one with its target.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <numeric>
#include <sstream>
#include <vector>

#include "tests/trainer/data/stored_numbers.h"
#include "trainer/data/corrupted_spans.h"

int main(int count, char** arguments) {
  using namespace phalanx;
  for (int i = 1; i < count; ++i) {
    int64_t input_length = 0;
    int64_t samples = 0;
    SpanNoise noise;
    std::istringstream(arguments[i]) >> input_length >> noise.density >> noise.mean_span_length >>
        samples;
    const CorruptionLengths lengths = corruption_lengths(input_length, noise);
    fmt::print("{} {} {}\n", lengths.tokens, lengths.inputs, lengths.targets);
    std::vector<int64_t> tokens(static_cast<size_t>(lengths.tokens));
    std::iota(tokens.begin(), tokens.end(), 2);
    const CorruptedSpans corrupted(
        {{std::make_shared<StoredNumbers>(tokens), 0, lengths.tokens}},
        {.input_length = input_length, .noise = noise, .first_sentinel = 32099, .end_of_text = 1},
        /*seed=*/1);
    for (int64_t epoch = 0; epoch < samples; ++epoch) {
      const auto batch = corrupted.of_epoch(epoch, {})->batch(std::vector<int64_t>{0});
      const auto& pair = static_cast<const SequencePairBatch&>(*batch);
      fmt::print("{}\n{}\n", fmt::join(numbers_in(pair.inputs), " "),
                 fmt::join(numbers_in(pair.targets), " "));
    }
  }
}
