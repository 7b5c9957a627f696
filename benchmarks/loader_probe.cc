// SPDX-License-Identifier: Apache-2.0
// loader_probe FILE LENGTH BATCH WORKERS BATCHES: reads micro-batches of a nanoGPT token file as
// training does, shuffled. Prints a line of JSON: samples, seconds after the first batch, a sum of
// the tokens, and the anonymous memory that the process has, in MiB.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/data_file.h"
#include "trainer/data/loader.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/token_batch.h"
#include "trainer/data/token_blocks.h"
#include "trainer/data/token_type.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

int64_t anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") {
      int64_t kib = 0;
      status >> kib;
      return kib;
    }
  }
  return -1;
}

int64_t sum_of(const Batch& batch) {
  const at::Tensor& inputs = static_cast<const TokenBatch&>(batch).inputs;
  int64_t sum = 0;
  for (int64_t i = 0; i < inputs.numel(); i += 64) sum += inputs.const_data_ptr<int64_t>()[i];
  return sum;
}

int run(const std::string& path, int64_t length, const LoaderConfig& config,
        const BatchRequest& request, int64_t batches) {
  const DataFile file("path", path);
  const int64_t tokens = static_cast<int64_t>(file.size()) / bytes_of(TokenType::uint16);
  const auto set = std::make_shared<StoredTokens>(file, 0, tokens, TokenType::uint16);
  const auto source =
      load(std::make_shared<TokenBlocks>(std::vector<TokenSpan>{{set, 0, tokens}}, length), config,
           request, true);
  const int64_t memory_before = anonymous_kib();
  source->start_epoch(0, 0);
  int64_t sum = sum_of(*source->next());
  const Clock::time_point begin = Clock::now();
  for (int64_t i = 1; i < batches; ++i) sum += sum_of(*source->next());
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  fmt::print("{{\"samples\": {}, \"seconds\": {}, \"sum\": {}, \"anonymous_mib\": {}}}\n",
             (batches - 1) * request.batch_size, seconds.count(), sum,
             static_cast<double>(anonymous_kib() - memory_before) / 1024);
  return 0;
}

}  // namespace
}  // namespace phalanx

int main(int count, char** arguments) {
  if (count != 6) return 2;
  const auto number = [&](int i) { return std::strtoll(arguments[i], nullptr, 10); };
  phalanx::LoaderConfig config;
  config.num_workers = number(4);
  phalanx::BatchRequest request;
  request.batch_size = number(3);
  request.seed = 1;
  return phalanx::run(arguments[1], number(2), config, request, number(5));
}
