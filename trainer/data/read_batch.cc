// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/read_batch.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>

#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

// As many samples as an error names.
constexpr size_t kNamed = 4;

// Why no batch can be made of a sample by itself; empty: one can.
std::string problem_of(const Dataset& dataset, int64_t sample) {
  try {
    dataset.batch(std::span(&sample, 1));
    return {};
  } catch (const std::exception& error) {
    return error_text(error);
  }
}

[[noreturn]] void fail_with_place(const Dataset& dataset, std::span<const int64_t> samples,
                                  const std::exception& error) {
  for (const int64_t sample : samples) {
    if (const std::string problem = problem_of(dataset, sample); !problem.empty()) {
      throw std::runtime_error(dataset.describe(sample, problem));
    }
  }
  std::string text = error_text(error) +
                     "\nwhere a micro-batch is made of samples that can each be "
                     "read:";
  for (const int64_t sample : samples.first(std::min(samples.size(), kNamed))) {
    text += "\n  " + dataset.describe(sample, "is one of them");
  }
  if (samples.size() > kNamed) text += fmt::format("\n  and {} more", samples.size() - kNamed);
  throw std::runtime_error(text);
}

}  // namespace

std::unique_ptr<Batch> read_batch(const Dataset& dataset, std::span<const int64_t> samples) {
  std::unique_ptr<Batch> batch;
  try {
    batch = dataset.batch(samples);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    fail_with_place(dataset, samples, error);
  } catch (const std::logic_error& error) {
    fail_with_place(dataset, samples, error);
  }
  batch->sample_numbers.assign(samples.begin(), samples.end());
  return batch;
}

}  // namespace phalanx
