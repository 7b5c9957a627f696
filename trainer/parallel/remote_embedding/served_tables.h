// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/parallel/parameter_server/rank_rounds.h"
#include "trainer/rpc/functions.h"

namespace phalanx::remote_embedding {

/// Names of what a server serves.
inline constexpr const char* kLookUp = "remote_embedding/look_up";
inline constexpr const char* kPassIsOver = "remote_embedding/pass_is_over";
inline constexpr const char* kPush = "remote_embedding/push";

/// What a rank's passes have given a table: the gradients of rows [n, width], by their numbers [n],
/// which differ; or of the whole table, without numbers.
struct TableGradient {
  int64_t table = 0;
  at::Tensor numbers = {};
  at::Tensor gradient;
};
using TableGradients = std::vector<TableGradient>;

/// The arguments of a call of kLookUp: rows of a table by `numbers`, or all of it where these are
/// undefined, in this pass.
rpc::Values look_up_call(int64_t pass, int64_t table, const at::Tensor& numbers);
/// Of kPassIsOver. `text`: what the rank says of the pass.
rpc::Values pass_is_over_call(int64_t rank, int64_t pass, const std::string& text);
/// Of kPush.
rpc::Values push_call(int64_t rank, int64_t round, const TableGradients& gradients);

/// Holds the tables of one server, and answers the calls of the ranks that train. The functions run
/// in the agent's threads.
class ServedTables {
 public:
  /// `tables` by their number; undefined: another server has it. They are read where they lie, and
  /// stay as they are from `publish` until all ranks have said that the pass is over.
  ServedTables(std::vector<at::Tensor> tables, int64_t trainers);

  /// The tables have the values of this pass: its lookups are answered from here on.
  void publish(int64_t pass);

  /// What the ranks have said at the end of each pass.
  parameter_server::RankRounds<std::string>& passes() { return passes_; }
  /// What they have pushed after each backward pass that synchronizes.
  parameter_server::RankRounds<TableGradients>& rounds() { return rounds_; }

  /// The means over all ranks of the tables' gradients in a whole round, by number; undefined where
  /// no rank has one. Summed in the order of ranks.
  std::vector<at::Tensor> take_means(int64_t round);

  rpc::FunctionTable functions();

 private:
  struct Lookup {
    int64_t pass = 0;
    int64_t table = 0;
    at::Tensor numbers;
    rpc::Promise promise;
  };

  const at::Tensor& table(int64_t number) const;
  rpc::Values values(const Lookup& lookup) const;
  rpc::Future look_up(const rpc::Values& asked);
  rpc::Values push(const rpc::Values& pushed);

  std::vector<at::Tensor> tables_;
  int64_t trainers_;
  parameter_server::RankRounds<std::string> passes_;
  parameter_server::RankRounds<TableGradients> rounds_;
  std::mutex mutex_;  ///< Of what follows.
  int64_t published_ = 0;
  std::vector<Lookup> waiting_;
};

}  // namespace phalanx::remote_embedding
