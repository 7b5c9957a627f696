// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trainer/parallel/parameter_server/rank_rounds.h"
#include "trainer/rpc/functions.h"

namespace phalanx::parameter_server {

/// Gradients by parameter; undefined: none. One that is sparse (an embedding's) travels as its
/// rows.
using Gradients = std::vector<at::Tensor>;

/// What a rank pushes: its gradients of a round, which are numbered alike on all ranks.
rpc::Values pushed(int64_t rank, int64_t round, const Gradients& gradients);

/// What one server keeps, and what all ranks do with it: they pull values and push gradients. Its
/// functions run in threads of the agent.
class ServedParameters {
 public:
  struct Rules {
    int64_t ranks = 1;
    /// A round waits for the gradients of all ranks. Else gradients count when they come, and the
    /// parameters may be moved while they are pulled.
    bool synchronous = true;
  };

  /// `parameters` are read where they lie, `buffers` too; without autograd.
  ServedParameters(std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers, Rules rules)
      : rules_(rules),
        parameters_(std::move(parameters)),
        buffers_(std::move(buffers)),
        rounds_(rules.ranks),
        sums_(parameters_.size()) {}

  /// The values are those of this version. With synchronous updates they stay as they are until all
  /// ranks have pulled them.
  void publish(int64_t version);

  /// Waits for the gradients of all ranks in this round; false: not within `patience`.
  bool wait(int64_t round, std::chrono::milliseconds patience) const {
    return !rules_.synchronous || rounds_.wait(round, patience);
  }
  /// Ranks whose gradients are missing in this round.
  std::vector<int64_t> missing(int64_t round) const { return rounds_.missing(round); }
  /// The means over all ranks: of a whole round, or of what has come since the last time. Summed in
  /// the order of ranks.
  Gradients take(int64_t round);
  /// Forgets gradients that no round has taken: they were of weights that are no more.
  void drop();

  /// The text is the version. Answers with the newest published values, once they are those of this
  /// version or of a later one: the parameters, then the buffers.
  rpc::Function pull();
  /// What `pushed` has made.
  rpc::Function push();

 private:
  bool is_there(int64_t version) const { return published_ >= version; }
  void add(const Gradients& gradients);

  Rules rules_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  RankRounds<Gradients> rounds_;
  std::mutex mutex_;  ///< Of what follows.
  Gradients sums_;    ///< Without rounds.
  int64_t published_ = 0;
  std::vector<at::Tensor> answer_;                         ///< To a pull now.
  std::vector<std::pair<int64_t, rpc::Promise>> waiting_;  ///< Pulls by version.
};

}  // namespace phalanx::parameter_server
