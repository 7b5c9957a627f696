// SPDX-License-Identifier: Apache-2.0
// How fast this machine multiplies matrices on one thread, by each candidate of compute.gemm:
// a JSON object a line, {"gemm", "gflops"}. What a step's products are held against.

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "trainer/compute/gemm.h"

namespace {

constexpr int64_t kSize = 2048;
constexpr int kRounds = 7;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double best_gflops() {
  const at::Tensor a = at::rand({kSize, kSize});
  const at::Tensor b = at::rand({kSize, kSize});
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double began = cpu_seconds();
    at::mm(a, b);
    best = std::max(best, 2e-9 * kSize * kSize * kSize / (cpu_seconds() - began));
  }
  return best;
}

}  // namespace

// MKL keeps its first answer: each candidate has a process of its own.
int main() {
  for (const auto gemm : phalanx::compute::candidates()) {
    const pid_t child = fork();
    if (child == 0) {
      at::set_num_threads(1);
      phalanx::compute::use(gemm);
      fmt::print("{{\"gemm\": \"{}\", \"gflops\": {:.1f}}}\n", phalanx::compute::name_of(gemm),
                 best_gflops());
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  }
}
