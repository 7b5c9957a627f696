// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/remote_embedding/remote_embedding.h"
#include "trainer/parallel/remote_embedding/served_tables.h"
#include "trainer/parallel/remote_embedding/tables.h"
#include "trainer/rpc/agent.h"

namespace phalanx {

/// The ranks that train (training_side.cc) and those that serve (serving_side.cc) run the same
/// passes: each has its functions.
struct RemoteEmbedding::Impl : std::enable_shared_from_this<RemoteEmbedding::Impl> {
  /// Rows that a lookup has brought: a leaf of the pass.
  struct Brought {
    at::Tensor numbers;  // [n], which differ.
    at::Tensor rows;     // [n, width].
  };
  struct Table {
    NamedTable named;
    int64_t holder = 0;   ///< The rank that serves it.
    at::Tensor none;      ///< What other ranks have for their optimizers.
    at::Tensor stand_in;  ///< NaN of its shape, without memory, where a rank has none for it.
    std::vector<Brought> brought;  ///< In passes that may have a backward pass.

    const at::Tensor& weight() const { return named.weight; }
    bool is_whole() const { return named.table->use() == TableUse::whole; }
  };
  /// A parameter that all ranks that train hold.
  struct Rest {
    at::Tensor tensor;
    at::Tensor none;  ///< As above, of a server.
  };

  Ranks ranks;
  int64_t servers = 0;
  std::vector<Table> tables;
  std::vector<Rest> rest;
  std::vector<at::Tensor> common;                ///< The values of the rest and of buffers.
  std::unique_ptr<DistributedDataParallel> ddp;  ///< On several ranks that train.
  std::unique_ptr<remote_embedding::ServedTables> served;  ///< On a server.
  std::unique_ptr<rpc::Agent> agent;                       // Last: its threads use the others.
  int64_t pass = 0;   ///< Of forward passes, numbered alike on all ranks.
  int64_t round = 0;  ///< Of backward passes that synchronize, too.
  int64_t backward_passes = 0;
  int64_t rows_brought = 0;
  bool synchronize = true;
  bool is_in_pass = false;  ///< Lookups go to the servers.
  bool is_stale = true;     ///< Whole tables may not be the servers'.
  bool is_backward_running = false;

  int64_t trainers() const { return ranks.world_size() - servers; }
  bool serves() const { return ranks.rank() >= trainers(); }
  bool holds(const Table& table) const { return table.holder == ranks.rank(); }
  const std::string& worker(int64_t rank) const {
    return agent->workers()[static_cast<size_t>(rank)];
  }

  /// A forward pass on a rank that trains.
  Loss train(c10::function_ref<Loss()> forward);
  /// The rows of these numbers, from the table's server in a pass.
  at::Tensor look_up(size_t table, const at::Tensor& numbers);
  void bring_whole_tables();
  void tell_servers(const Loss& loss) const;
  void push();
  /// Forgets rows of passes that can have no backward pass any more.
  void forget_gone_passes();
  /// Nothing: no backward pass has come to them.
  static std::optional<remote_embedding::TableGradient> gradient_of(
      int64_t table, const std::vector<Brought>& brought);

  /// The same pass on a server.
  Loss serve();
  void take_means();

  /// A backward pass begins, of one forward pass or of several: ends once.
  void begin_backward();
  void end_backward();

  /// Calls `action` with the whole model on every rank.
  void with_all(c10::function_ref<void()> action);
};

}  // namespace phalanx
