#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/core/unit.h"
#include "trainer/parallel/fsdp/fsdp_options.h"
#include "trainer/parallel/fsdp/sharding_strategy.h"

/// Modules of random shape for FSDP, and random ways to train them: a seed makes the same ones on
/// every rank and machine.
namespace phalanx::sharding::testing {

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
  virtual void enter(size_t node) = 0;
  virtual void leave(size_t node) = 0;
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
  std::vector<size_t> parameters;  ///< Of the tree's; one that several nodes have is tied.
  std::vector<size_t> children;    ///< Of the tree's nodes; may have other parents too.
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

class TreeModule;

/// The tensors and modules that nodes share.
struct TreeParts {
  std::vector<at::Tensor> parameters;
  std::map<size_t, std::shared_ptr<TreeModule>> modules;
};

/// A node: its forward follows the description. No activation is added to from more than two sides
/// where a unit begins, and no product of matrices is used, so that gradients of one pass are
/// bitwise the same with and without the hooks of sharding.
class TreeModule : public torch::nn::Module {
 public:
  TreeModule(const Tree& tree, size_t id, TreeParts& parts);

  at::Tensor forward(at::Tensor input, const at::Tensor& side, const Moment& moment);

 private:
  struct Child;

  at::Tensor use_parameter(const at::Tensor& hidden, const at::Tensor& parameter) const;
  at::Tensor call(const TreeOp& op, const at::Tensor& hidden, const Moment& moment);

  size_t id_;
  TreeNode node_;
  std::vector<at::Tensor> parameters_;
  std::vector<std::shared_ptr<Child>> children_;
};

class NodeImpl : public TreeModule, public Unit {
 public:
  using TreeModule::TreeModule;
};
UNIT(Node);

/// The module of a tree, its parameters filled with values that are the same everywhere.
std::shared_ptr<TreeModule> make_module(const Tree& tree);

/// A pass's input, which does not need a gradient.
at::Tensor tree_batch(const Moment& moment);

/// A loss of the root's result.
at::Tensor tree_loss(TreeModule& module, const at::Tensor& batch, const Moment& moment);

}  // namespace phalanx::sharding::testing
