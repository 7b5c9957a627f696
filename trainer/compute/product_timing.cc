// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/product_timing.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "trainer/base/descriptor.h"
#include "trainer/compute/product_work.h"

namespace phalanx::compute {
namespace {

using Clock = std::chrono::steady_clock;

// No candidate takes so long on a machine that can train.
constexpr std::chrono::seconds kPatience{20};

struct Round {
  double seconds = 0;
  bool is_correct = false;
};

// A child: computes a round for every byte that it gets, and ends with its parent.
[[noreturn]] void serve(Gemm gemm, const std::function<std::vector<WeightShape>()>& weights,
                        int socket) noexcept {
  try {
    at::set_num_threads(1);
    use(gemm);
    const ProductWork work(weights());
    const bool is_correct = work.is_correct();  // and no round is the first one
    char byte = 0;
    while (recv(socket, &byte, 1, 0) == 1) {
      const Round round{.seconds = work.run(), .is_correct = is_correct};
      if (send(socket, &round, sizeof round, MSG_NOSIGNAL) != sizeof round) break;
    }
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

// A candidate in its process, which is killed at scope exit.
class Candidate {
 public:
  Candidate(Gemm gemm, const std::function<std::vector<WeightShape>()>& weights) {
    timing_.gemm = gemm;
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
      throw_system_error("make a socket");
    }
    socket_ = Descriptor(sockets[0]);
    const Descriptor other(sockets[1]);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw_system_error("fork a process that times products");
    if (pid_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    socket_.close();
    serve(gemm, weights, other.number());
  }
  Candidate(Candidate&& other) noexcept
      : timing_(std::move(other.timing_)),
        socket_(std::move(other.socket_)),
        pid_(std::exchange(other.pid_, -1)),
        rounds_(other.rounds_) {}
  Candidate& operator=(Candidate&&) = delete;
  ~Candidate() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  // Waits for one more round, unless the candidate is excluded.
  void run_round() {
    if (!timing_.excluded.empty()) return;
    const std::optional<Round> round = ask();
    if (!round) {
      timing_.excluded = "its process failed";
    } else if (!round->is_correct) {
      timing_.excluded = "its results differ by more than rounding";
    } else {
      timing_.seconds = rounds_ == 0 ? round->seconds : std::min(timing_.seconds, round->seconds);
      ++rounds_;
    }
  }

  const ProductTiming& timing() const { return timing_; }

 private:
  // Nothing where the process has ended, or does not answer.
  std::optional<Round> ask() const {
    const char byte = 0;
    if (send(socket_.number(), &byte, 1, MSG_NOSIGNAL) != 1) return std::nullopt;
    pollfd answer{.fd = socket_.number(), .events = POLLIN, .revents = 0};
    const int patience = static_cast<int>(std::chrono::milliseconds(kPatience).count());
    int ready = 0;
    do {
      ready = poll(&answer, 1, patience);
    } while (ready < 0 && errno == EINTR);
    Round round;
    if (ready != 1 || recv(socket_.number(), &round, sizeof round, MSG_DONTWAIT) != sizeof round) {
      return std::nullopt;
    }
    return round;
  }

  ProductTiming timing_;
  Descriptor socket_;
  pid_t pid_ = -1;
  int64_t rounds_ = 0;
};

}  // namespace

std::vector<ProductTiming> time_products(std::span<const Gemm> gemms,
                                         const std::function<std::vector<WeightShape>()>& weights,
                                         std::chrono::milliseconds budget) {
  const auto end = Clock::now() + budget;
  std::vector<Candidate> running;
  running.reserve(gemms.size());
  for (const Gemm gemm : gemms) running.emplace_back(gemm, weights);
  do {
    for (Candidate& candidate : running) candidate.run_round();
  } while (Clock::now() < end);
  std::vector<ProductTiming> timings;
  for (const Candidate& candidate : running) timings.push_back(candidate.timing());
  return timings;
}

}  // namespace phalanx::compute
