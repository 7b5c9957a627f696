// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/parallel/fsdp/random_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <utility>

#include "trainer/api/unit.h"

template <>
inline constexpr bool phalanx::kHoldsNoTensors<phalanx::fsdp::testing::Moment> = true;

namespace phalanx::fsdp::testing {
namespace {

using at::ScalarType;

/// Choices that are the same with every standard library, as its distributions are not.
class Choices {
 public:
  explicit Choices(uint64_t seed) : engine_(seed) {}

  size_t below(size_t end) { return engine_() % end; }
  bool chance(size_t percent) { return below(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

class TreeMaker {
 public:
  explicit TreeMaker(Choices& choices)
      : choices_(choices), is_mixed_(choices.chance(30)), may_freeze_(choices.chance(60)) {
    tree_.input_needs_gradient = choices.chance(70);
  }

  Tree make() {
    add_node(/*depth=*/0);
    TreeNode& root = tree_.nodes.front();
    root.is_unit = false;
    root.dtype = at::kDouble;
    root.ops.push_back(use_of_new_scalar());  // the loss needs a gradient in any case
    return std::move(tree_);
  }

 private:
  static constexpr size_t kDeepest = 3;

  size_t add_node(size_t depth) {
    const size_t id = tree_.nodes.size();
    tree_.nodes.emplace_back();
    TreeNode node;
    node.is_unit = choices_.chance(75);
    node.dtype = dtype();
    add_parameters(node);
    // The children's own tied parameters are chosen among what is there so far: this node's too.
    add_children(node, depth);
    add_ops(node);
    tree_.nodes[id] = std::move(node);
    complete_.push_back(id);
    return id;
  }

  void add_parameters(TreeNode& node) {
    const bool is_frozen = may_freeze_ && choices_.chance(15);
    for (size_t n = choices_.below(4); n > 0; --n) {
      const bool is_tied = !tree_.parameters.empty() && choices_.chance(20);
      node.parameters.push_back(is_tied ? choices_.below(tree_.parameters.size())
                                        : new_parameter(node.dtype, is_frozen));
    }
  }

  size_t new_parameter(ScalarType of_node, bool is_frozen) {
    static const std::vector<std::vector<int64_t>> kShapes{
        {kTreeWidth}, {kTreeWidth}, {kTreeWidth, kOdd}, {kTreeWidth, kOdd}, {}, {0, 3}};
    TreeParameter parameter;
    parameter.shape = choices_.one_of(kShapes);
    parameter.dtype = choices_.chance(80) ? of_node : dtype();
    parameter.is_frozen = is_frozen || (may_freeze_ && choices_.chance(20));
    parameter.is_transposed = choices_.chance(20);
    tree_.parameters.push_back(std::move(parameter));
    return tree_.parameters.size() - 1;
  }

  void add_children(TreeNode& node, size_t depth) {
    if (depth == kDeepest) return;
    for (size_t n = choices_.below(depth == 0 ? 5 : 3); n > 0; --n) {
      const bool is_shared = !complete_.empty() && choices_.chance(15);
      const size_t child = is_shared ? choices_.one_of(complete_) : add_node(depth + 1);
      if (std::ranges::find(node.children, child) == node.children.end()) {
        node.children.push_back(child);
      }
    }
  }

  void add_ops(TreeNode& node) {
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      for (size_t n = times(); n > 0; --n) {
        node.ops.push_back({TreeOp::Kind::use_parameter, i, when_used()});
      }
    }
    for (size_t i = 0; i < node.children.size(); ++i) {
      for (size_t n = times(); n > 0; --n) node.ops.push_back({kind_of_call(), i, when_called()});
    }
    choices_.shuffle(node.ops);
  }

  TreeOp use_of_new_scalar() {
    tree_.parameters.push_back({.shape = {}, .dtype = at::kDouble});
    std::vector<size_t>& parameters = tree_.nodes.front().parameters;
    parameters.push_back(tree_.parameters.size() - 1);
    return {TreeOp::Kind::use_parameter, parameters.size() - 1, When::always};
  }

  // How often something is used in a pass: now and then never, or twice.
  size_t times() { return choices_.chance(12) ? 0 : choices_.chance(20) ? 2 : 1; }

  TreeOp::Kind kind_of_call() {
    return choices_.chance(20) ? TreeOp::Kind::call_child_with_two_inputs
                               : TreeOp::Kind::call_child;
  }

  When when_called() {
    static const std::vector<When> kSome{When::even_steps, When::odd_steps, When::first_micro_batch,
                                         When::last_micro_batch};
    return choices_.chance(70) ? When::always : choices_.one_of(kSome);
  }

  // Ranks may use other parameters only where that does not change what needs a gradient: units'
  // collectives follow from it.
  When when_used() {
    if (tree_.input_needs_gradient && choices_.chance(10)) return When::on_rank_zero;
    return when_called();
  }

  ScalarType dtype() { return is_mixed_ && choices_.chance(40) ? at::kFloat : at::kDouble; }

  Choices& choices_;
  Tree tree_;
  bool is_mixed_;
  bool may_freeze_;
  std::vector<size_t> complete_;
};

std::vector<std::string> names_of(const Tree& tree, bool units_only) {
  std::vector<std::string> names;
  for (const auto& [name, way] : ways_to_nodes(tree)) {
    if (name.empty() || (units_only && !tree.nodes[way.back()].is_unit)) continue;
    names.push_back(name);
  }
  return names;
}

AutoWrap random_wrap(Choices& choices, const Tree& tree) {
  AutoWrap wrap;
  wrap.policy = choices.one_of<WrapPolicy>({WrapPolicy::unit, WrapPolicy::unit, WrapPolicy::size,
                                            WrapPolicy::by_name, WrapPolicy::none});
  wrap.min_params = 1 + static_cast<int64_t>(choices.below(40));
  if (wrap.policy != WrapPolicy::by_name) return wrap;
  // A shared unit goes by the first of its names; the pattern finds that too.
  const std::vector<std::string> names = names_of(tree, /*units_only=*/true);
  if (names.empty()) {
    wrap.policy = WrapPolicy::none;
    return wrap;
  }
  for (size_t n = 1 + choices.below(3); n > 0; --n) {
    const std::string& name = choices.one_of(names);
    wrap.names.push_back("*" + name.substr(name.rfind('n')));
  }
  return wrap;
}

TreeTraining random_training(Choices& choices, const Tree& tree, int64_t world_size) {
  TreeTraining training;
  training.strategy = choices.one_of<ShardingStrategy>(
      {ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op, ShardingStrategy::no_shard,
       ShardingStrategy::hybrid_shard, ShardingStrategy::hybrid_shard_zero2});
  FsdpOptions& options = training.options;
  options.auto_wrap = random_wrap(choices, tree);
  if (const auto names = names_of(tree, /*units_only=*/false);
      !names.empty() && choices.chance(30)) {
    for (size_t n = 1 + choices.below(2); n > 0; --n) {
      options.ignored_modules.push_back(choices.one_of(names));
    }
  }
  const bool has_copies = is_hybrid(training.strategy);
  if (has_copies) options.shard_group_size = choices.one_of(divisors(world_size));
  if (choices.chance(20)) options.reshard_after_forward = choices.chance(50);
  if (choices.chance(30)) {
    const int64_t copies = has_copies ? world_size / *options.shard_group_size : 1;
    const bool shards = training.strategy != ShardingStrategy::no_shard;
    options.reshard_after_forward = choices.one_of(divisors(shards ? world_size / copies : 1));
  }
  options.backward_prefetch = choices.one_of<std::optional<BackwardPrefetch>>(
      {std::nullopt, BackwardPrefetch::pre, BackwardPrefetch::post});
  options.forward_prefetch = choices.chance(40);
  options.accumulated_gradients =
      choices.chance(50) ? AccumulatedGradients::whole : AccumulatedGradients::sharded;
  training.micro_batches = 1 + static_cast<int64_t>(choices.below(3));
  training.begins_apart = choices.chance(30);
  training.evaluates = choices.chance(30);
  training.drops_a_pass = choices.chance(20);
  training.writes_back = choices.chance(30);
  if (choices.chance(40)) options.forward_prefetch.reset();
  return training;
}

std::string name_of(When when) {
  switch (when) {
    case When::always:
      return "";
    case When::even_steps:
      return " on even steps";
    case When::odd_steps:
      return " on odd steps";
    case When::first_micro_batch:
      return " in the first micro-batch";
    case When::last_micro_batch:
      return " in the last micro-batch";
    case When::on_rank_zero:
      return " on rank 0";
  }
  return "";
}

std::string describe(const TreeParameter& parameter) {
  return fmt::format("{}[{}]{}{}", parameter.dtype == at::kFloat ? "float" : "double",
                     fmt::join(parameter.shape, ","), parameter.is_frozen ? " frozen" : "",
                     parameter.is_transposed ? " transposed" : "");
}

std::string describe(const Tree& tree, const TreeNode& node) {
  std::string text = fmt::format("{} {}:", node.is_unit ? "unit" : "plain",
                                 node.dtype == at::kFloat ? "float" : "double");
  for (size_t i = 0; i < node.parameters.size(); ++i) {
    const size_t parameter = node.parameters[i];
    text += fmt::format(" p{}=#{} {};", i, parameter, describe(tree.parameters[parameter]));
  }
  text += " does";
  for (const TreeOp& op : node.ops) {
    const bool is_call = op.kind != TreeOp::Kind::use_parameter;
    text +=
        fmt::format(" {}{}{}{};", is_call ? 'n' : 'p', is_call ? node.children[op.index] : op.index,
                    op.kind == TreeOp::Kind::call_child_with_two_inputs ? " with two inputs" : "",
                    name_of(op.when));
  }
  return text;
}

std::string describe(const TreeTraining& training) {
  const FsdpOptions& options = training.options;
  const auto text_of = [](const std::optional<ReshardAfterForward>& value) -> std::string {
    if (!value) return "null";
    return std::visit([](auto which) { return fmt::format("{}", which); }, *value);
  };
  return fmt::format(
      "{}, shard_group_size {}, policy {} (0 unit, 1 size, 2 by_name, 3 none), min_params {}, "
      "names "
      "[{}], ignored [{}], reshard_after_forward {}, backward_prefetch {} (0 pre, 1 post, -1 "
      "none), "
      "forward_prefetch {} (-1 auto), {} gradients of {} micro-batches{}{}{}{}",
      to_string(training.strategy), options.shard_group_size.value_or(0),
      static_cast<int>(options.auto_wrap.policy), options.auto_wrap.min_params,
      fmt::join(options.auto_wrap.names, ", "), fmt::join(options.ignored_modules, ", "),
      text_of(options.reshard_after_forward),
      options.backward_prefetch ? static_cast<int>(*options.backward_prefetch) : -1,
      options.forward_prefetch ? static_cast<int>(*options.forward_prefetch) : -1,
      options.accumulated_gradients == AccumulatedGradients::whole ? "whole" : "sharded",
      training.micro_batches, training.begins_apart ? ", begins apart" : "",
      training.evaluates ? ", evaluates" : "", training.drops_a_pass ? ", drops a pass" : "",
      training.writes_back ? ", writes back" : "");
}

void add_ways(const Tree& tree, const std::string& name, const std::vector<size_t>& way,
              Ways& ways) {
  ways.emplace(name, way);
  for (const size_t child : tree.nodes[way.back()].children) {
    std::vector<size_t> longer = way;
    longer.push_back(child);
    add_ways(tree, fmt::format("{}{}n{}", name, name.empty() ? "" : ".", child), longer, ways);
  }
}

bool happens(When when, const Moment& moment) {
  switch (when) {
    case When::always:
      return true;
    case When::even_steps:
      return moment.step % 2 == 0;
    case When::odd_steps:
      return moment.step % 2 == 1;
    case When::first_micro_batch:
      return moment.micro_batch == 0;
    case When::last_micro_batch:
      return moment.micro_batch + 1 == moment.micro_batches;
    case When::on_rank_zero:
      return moment.rank == 0;
  }
  return true;
}

at::Tensor wave(at::IntArrayRef shape, double phase) {
  return torch::sin(torch::arange(c10::multiply_integers(shape), torch::kDouble) * 0.37 + phase)
      .view(shape);
}

at::Tensor make_parameter(const TreeParameter& parameter, size_t index) {
  at::Tensor tensor = (wave(parameter.shape, static_cast<double>(index)) * 0.7).to(parameter.dtype);
  if (parameter.is_transposed && tensor.dim() == 2) tensor = tensor.t().contiguous().t();
  return tensor.set_requires_grad(!parameter.is_frozen);
}

}  // namespace

RandomCase random_case(uint64_t seed, int64_t world_size) {
  Choices choices(seed * 8 + static_cast<uint64_t>(world_size));
  RandomCase made;
  made.tree = TreeMaker(choices).make();
  made.training = random_training(choices, made.tree, world_size);
  return made;
}

std::string describe(const RandomCase& random_case) {
  std::string text = describe(random_case.training);
  if (!random_case.tree.input_needs_gradient) text += ", the input needs no gradient";
  for (size_t i = 0; i < random_case.tree.nodes.size(); ++i) {
    text += fmt::format("\n  n{} {}", i, describe(random_case.tree, random_case.tree.nodes[i]));
  }
  return text;
}

Ways ways_to_nodes(const Tree& tree) {
  Ways ways;
  add_ways(tree, "", {0}, ways);
  return ways;
}

namespace {

class TreeModule;

/// The tensors and modules that nodes share.
struct TreeParts {
  std::vector<at::Tensor> parameters;
  std::map<size_t, std::shared_ptr<TreeModule>> modules;
};

/// A node: its forward follows the description.
class TreeModule : public torch::nn::Module {
 public:
  TreeModule(const Tree& tree, size_t id, TreeParts& parts);

  at::Tensor forward(at::Tensor input, const at::Tensor& side, const Moment& moment);

 private:
  struct Child;

  at::Tensor use_parameter(const at::Tensor& hidden, const at::Tensor& parameter,
                           const Moment& moment) const;
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

struct TreeModule::Child {
  std::shared_ptr<TreeModule> plain;
  Node unit{nullptr};
};

TreeModule::TreeModule(const Tree& tree, size_t id, TreeParts& parts)
    : id_(id), node_(tree.nodes[id]) {
  for (size_t i = 0; i < node_.parameters.size(); ++i) {
    at::Tensor& shared = parts.parameters[node_.parameters[i]];
    parameters_.push_back(
        register_parameter(fmt::format("p{}", i), shared, shared.requires_grad()));
  }
  for (const size_t child : node_.children) {
    std::shared_ptr<TreeModule>& shared = parts.modules[child];
    const bool is_unit = tree.nodes[child].is_unit;
    if (!shared && is_unit) shared = std::make_shared<NodeImpl>(tree, child, parts);
    if (!shared) shared = std::make_shared<TreeModule>(tree, child, parts);
    register_module(fmt::format("n{}", child), shared);
    children_.push_back(std::make_shared<Child>());
    children_.back()->plain = shared;
    if (is_unit) children_.back()->unit = Node(std::dynamic_pointer_cast<NodeImpl>(shared));
  }
}

at::Tensor TreeModule::forward(at::Tensor input, const at::Tensor& side, const Moment& moment) {
  if (moment.watcher != nullptr) moment.watcher->enter(id_);
  const ScalarType outside = input.scalar_type();
  at::Tensor hidden = std::exchange(input, at::Tensor()).to(node_.dtype);
  if (side.defined()) hidden = hidden * side.to(node_.dtype);
  for (const TreeOp& op : node_.ops) {
    if (!happens(op.when, moment)) continue;
    hidden = op.kind == TreeOp::Kind::use_parameter
                 ? use_parameter(hidden, parameters_[op.index], moment)
                 : call(op, hidden, moment);
  }
  if (moment.watcher != nullptr) moment.watcher->leave(id_);
  return hidden.to(outside);
}

at::Tensor TreeModule::use_parameter(const at::Tensor& hidden, const at::Tensor& parameter,
                                     const Moment& moment) const {
  const auto values = [&] {
    const bool is_watched = moment.watcher != nullptr;
    return (is_watched ? moment.watcher->read(parameter) : parameter).to(hidden.scalar_type());
  };
  if (parameter.numel() == 0) return hidden + values().sum();
  if (parameter.dim() < 2) return torch::tanh(hidden * (values() + 1));
  const at::Tensor between = torch::tanh((hidden.unsqueeze(2) * values()).sum(1));
  return hidden + (between.unsqueeze(1) * values()).sum(2);
}

at::Tensor TreeModule::call(const TreeOp& op, const at::Tensor& hidden, const Moment& moment) {
  at::Tensor side;
  if (op.kind == TreeOp::Kind::call_child_with_two_inputs) side = torch::cos(hidden);
  Child& child = *children_[op.index];
  return child.unit ? child.unit(hidden, side, moment) : child.plain->forward(hidden, side, moment);
}

}  // namespace

std::shared_ptr<torch::nn::Module> make_module(const Tree& tree) {
  TreeParts parts;
  for (size_t i = 0; i < tree.parameters.size(); ++i) {
    parts.parameters.push_back(make_parameter(tree.parameters[i], i));
  }
  return std::make_shared<TreeModule>(tree, 0, parts);
}

std::vector<NamedParameter> parameters_of(const torch::nn::Module& module) {
  std::vector<NamedParameter> parameters;
  std::set<const at::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) {
      parameters.push_back({item.key(), item.value()});
    }
  }
  return parameters;
}

at::Tensor tree_batch(const Moment& moment) {
  const auto phase =
      static_cast<double>(moment.step * 31 + moment.micro_batch * 7 + moment.rank * 3);
  return wave({2, kTreeWidth}, phase);
}

at::Tensor tree_loss(torch::nn::Module& module, const at::Tensor& batch, const Moment& moment) {
  auto& root = static_cast<TreeModule&>(module);
  return (root.forward(batch, {}, moment) - wave({kTreeWidth}, 1)).square().mean();
}

}  // namespace phalanx::fsdp::testing
