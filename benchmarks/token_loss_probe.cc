// SPDX-License-Identifier: Apache-2.0
// token_loss_probe VOCABULARY WIDTH PLACES DTYPE ROUNDS CHUNK...: the loss of PLACES tokens and its
// gradients, with each CHUNK (0: all at once) in turns. Computes in float32, or under autocast if
// DTYPE is bfloat16. Prints a line of JSON per CHUNK: the most bytes that its tensors have at a
// time, its seconds in every round, the loss, and how far its gradients are from the first's.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/token_loss.h"
#include "tests/models/interfaces/tensor_bytes.h"
#include "tests/tensors.h"
#include "trainer/memory/memory.h"
#include "trainer/precision/autocast.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

struct Work {
  HiddenStates hidden;
  at::Tensor targets;
  std::optional<AutocastTo> autocast;
};

struct Gradients {
  double loss;
  at::Tensor of_states;
  at::Tensor of_head;
};

Gradients pass(const Work& work, int64_t chunk) {
  const at::Tensor loss = [&] {
    const Autocast autocast(work.autocast);
    return token_loss(work.hidden, work.targets, work.targets.numel(), {.chunk = chunk});
  }();
  loss.backward();
  return {loss.item<double>(), std::exchange(work.hidden.states.mutable_grad(), at::Tensor()),
          std::exchange(work.hidden.head.mutable_grad(), at::Tensor())};
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>() / b.abs().max().item<double>();
}

struct Figures {
  int64_t chunk;
  int64_t bytes = 0;
  std::vector<double> seconds = {};
  double loss = 0;
  double distance = 0;
};

void measure_memory(const Work& work, std::vector<Figures>& all) {
  for (Figures& figures : all) {
    figures.bytes = most_tensor_bytes([&] { pass(work, figures.chunk); });
  }
}

void measure_round(const Work& work, std::vector<Figures>& all) {
  for (Figures& figures : all) {
    const Clock::time_point begin = Clock::now();
    pass(work, figures.chunk);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    figures.seconds.push_back(seconds.count());
  }
}

void compare(const Work& work, std::vector<Figures>& all) {
  const Gradients first = pass(work, all.front().chunk);
  for (Figures& figures : all) {
    const Gradients found = pass(work, figures.chunk);
    figures.loss = found.loss;
    figures.distance = std::max(distance(found.of_states, first.of_states),
                                distance(found.of_head, first.of_head));
  }
}

int run(int64_t vocabulary, int64_t width, int64_t places, const std::string& dtype, int64_t rounds,
        std::vector<Figures> all) {
  at::set_num_threads(1);
  Work work{.hidden = {.states = tensors::randn({1, places, width}).requires_grad_(true),
                       .head = tensors::randn({vocabulary, width}).mul_(0.02).requires_grad_(true)},
            .targets = tensors::empty({1, places}, at::kLong).random_(0, vocabulary),
            .autocast = std::nullopt};
  if (dtype == "bfloat16") work.autocast = AutocastTo{.device = at::kCPU, .dtype = at::kBFloat16};
  measure_memory(work, all);
  use_caching_allocator();  // as the trainer does; it reports no bytes
  compare(work, all);
  for (int64_t round = 0; round < rounds; ++round) measure_round(work, all);
  for (const Figures& figures : all) {
    fmt::print(
        R"({{"chunk": {}, "bytes": {}, "seconds": [{:.4f}], "loss": {:.7f}, "distance": {:.1e}}})"
        "\n",
        figures.chunk, figures.bytes, fmt::join(figures.seconds, ", "), figures.loss,
        figures.distance);
  }
  return 0;
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  std::vector<phalanx::Figures> all;
  for (int i = 6; i < argc; ++i) all.push_back({.chunk = std::atoll(argv[i])});
  return phalanx::run(std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), argv[4],
                      std::atoll(argv[5]), std::move(all));
}
