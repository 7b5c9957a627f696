// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/parallel/fsdp/fsdp_options.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"

namespace torch::nn {
class Module;
}

/// Modules of random shape for FSDP, and random ways to train them: a seed makes the same ones on
/// every rank and machine.
namespace phalanx::fsdp::testing {

/// The width of activations; matrices have kOdd columns.
constexpr int64_t kTreeWidth = 5;
constexpr int64_t kOdd = 3;

/// The passes in which something is done.
enum class When {
  always,
  even_steps,
  odd_steps,
  first_micro_batch,
  last_micro_batch,
  on_rank_zero
};

class PassWatcher;

/// A forward pass.
struct Moment {
  int64_t step = 0;
  int64_t micro_batch = 0;
  int64_t micro_batches = 1;
  int64_t rank = 0;
  PassWatcher* watcher = nullptr;  ///< May be none.
};

/// Is told of a forward pass while it runs.
class PassWatcher {
 public:
  virtual ~PassWatcher() = default;
  virtual void enter(size_t) {}
  virtual void leave(size_t) {}
  /// Each time that an expression reads a parameter: what it reads instead.
  virtual at::Tensor read(const at::Tensor& parameter) { return parameter; }
};

struct TreeParameter {
  std::vector<int64_t> shape;  ///< {}, {width}, {width, odd} or {0, 3}.
  at::ScalarType dtype = at::kDouble;
  bool is_frozen = false;
  bool is_transposed = false;  ///< In memory, before it is sharded.
};

/// What a node's forward does with its activation.
struct TreeOp {
  enum class Kind { use_parameter, call_child, call_child_with_two_inputs };
  Kind kind = Kind::use_parameter;
  size_t index = 0;  ///< In the node's list.
  When when = When::always;
};

struct TreeNode {
  bool is_unit = true;  ///< Or a plain module.
  at::ScalarType dtype = at::kDouble;
  std::vector<size_t> parameters;  ///< Numbers of the tree's; one that several nodes have is tied.
  std::vector<size_t> children;    ///< Numbers of the tree's nodes; may have other parents too.
  std::vector<TreeOp> ops;
};

/// A module tree; its first node is the root.
struct Tree {
  std::vector<TreeNode> nodes;
  std::vector<TreeParameter> parameters;
  bool input_needs_gradient = true;  ///< And so do all activations.
};

/// A way to train it.
struct TreeTraining {
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  FsdpOptions options;
  int64_t micro_batches = 1;
  bool begins_apart = false;  ///< Ranks begin with values of their own.
  bool evaluates = false;     ///< Without gradients, in the midst of each step.
  bool drops_a_pass = false;  ///< Computes a loss whose backward never runs, before each update.
  bool writes_back = false;   ///< Changes all parameters through summon_full_params.
};

struct RandomCase {
  Tree tree;
  TreeTraining training;
};

RandomCase random_case(uint64_t seed, int64_t world_size);

/// All of a case, a line a node.
std::string describe(const RandomCase& random_case);

/// Every way to a node, by its dotted name; the root's is empty.
using Ways = std::map<std::string, std::vector<size_t>>;
Ways ways_to_nodes(const Tree& tree);

/// The module of a tree, its parameters filled with values that are the same everywhere. Where a
/// unit begins no activation is added to from more than two sides, and no product of matrices is
/// used, so that gradients of one pass are bitwise the same with and without the hooks of sharding.
std::shared_ptr<torch::nn::Module> make_module(const Tree& tree);

/// Each parameter once, in the module's order.
std::vector<NamedParameter> parameters_of(const torch::nn::Module& module);

/// A pass's input, which does not need a gradient.
at::Tensor tree_batch(const Moment& moment);

/// A loss of the result of a module of `make_module`.
at::Tensor tree_loss(torch::nn::Module& module, const at::Tensor& batch, const Moment& moment);

}  // namespace phalanx::fsdp::testing
