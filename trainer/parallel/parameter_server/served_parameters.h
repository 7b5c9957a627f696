// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/rpc/functions.h"

namespace phalanx::parameter_server {

/// Gradients by parameter; undefined: none.
using Gradients = std::vector<at::Tensor>;

/// What a rank pushes: its gradients of a round, which are numbered alike on all ranks.
rpc::Values pushed(int64_t rank, int64_t round, const Gradients& gradients);

/// What one server keeps, and what all ranks do with it: they pull values and push gradients. Its
/// functions run in threads of the agent.
class ServedParameters {
 public:
  struct Rules {
    int64_t ranks = 1;
    /// A pull waits for the version it asks for, and a round for the gradients of all ranks. Else
    /// pulls get the newest values, and gradients count when they come.
    bool synchronous = true;
  };

  /// `parameters` are read where they lie, `buffers` too; without autograd.
  ServedParameters(std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers, Rules rules)
      : rules_(rules),
        parameters_(std::move(parameters)),
        buffers_(std::move(buffers)),
        sums_(parameters_.size()) {}

  /// The values are those of this version, and stay until the gradients that follow it are taken.
  void publish(int64_t version);

  /// Waits for the gradients of all ranks in this round; false: not within `patience`.
  bool wait(int64_t round, std::chrono::milliseconds patience) const;
  /// Ranks whose gradients are missing in this round.
  std::vector<int64_t> missing(int64_t round) const;
  /// The means over all ranks: of a whole round, or of what has come since the last time. Summed in
  /// the order of ranks.
  Gradients take(int64_t round);

  /// The text is the version. Answers with the parameters, then the buffers.
  rpc::Function pull();
  /// What `pushed` has made.
  rpc::Function push();

 private:
  bool is_there(int64_t version) const { return published_ >= (rules_.synchronous ? version : 1); }
  bool is_whole(int64_t round) const;
  void add(Gradients gradients);

  Rules rules_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  std::map<int64_t, std::map<int64_t, Gradients>> rounds_;  ///< By round and rank.
  Gradients sums_;                                          ///< Without rounds.
  int64_t published_ = 0;
  std::vector<at::Tensor> answer_;                         ///< To a pull now.
  std::vector<std::pair<int64_t, rpc::Promise>> waiting_;  ///< Pulls by version.
};

}  // namespace phalanx::parameter_server
