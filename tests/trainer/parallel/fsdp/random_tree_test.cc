// SPDX-License-Identifier: Apache-2.0
// FSDP of random module trees (random_tree.h) has the properties that it has of every model. A
// failure tells its seed; random_seeds.h says how that one runs alone.

#include "tests/trainer/parallel/fsdp/random_tree.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/gathered.h"
#include "tests/trainer/parallel/fsdp/random_seeds.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/parallel/fsdp/unit_plan.h"
#include "trainer/ranks/collectives/hosts.h"

namespace phalanx::fsdp::testing {
namespace {

constexpr int64_t kSteps = 3;
/// What a parameter's gradient is without sharding: the passes of all ranks added up.
struct Expected {
  at::Tensor sum;         ///< In double, as `magnitude`.
  at::Tensor magnitude;   ///< The sum of the absolute values of what each reading adds.
  int64_t additions = 0;  ///< So many readings.
  bool is_used = false;
};

/// Adds up what each reading of a parameter gives to its gradient. A pass that reads one three
/// times may add these in any order, so that what cancels out within a pass is rounded too.
class ReadingRecorder : public PassWatcher {
 public:
  ReadingRecorder(const std::vector<NamedParameter>& parameters, std::vector<Expected>& expected) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      of_parameter_[parameters[i].tensor.unsafeGetTensorImpl()] = &expected[i];
    }
  }

  at::Tensor read(const at::Tensor& parameter) override {
    if (!parameter.requires_grad()) return parameter;
    Expected& of_it = *of_parameter_.at(parameter.unsafeGetTensorImpl());
    const at::Tensor reading = parameter.view_as(parameter);
    reading.register_hook([&of_it](const at::Tensor& gradient) {
      of_it.magnitude.add_(gradient.to(at::kDouble).abs());
      ++of_it.additions;
    });
    return reading;
  }

 private:
  std::map<const at::TensorImpl*, Expected*> of_parameter_;
};

at::Tensor part_of(const at::Tensor& whole, const NamedParameter& local) {
  return whole.detach().reshape({-1}).slice(0, local.shard->begin, local.shard->end);
}

/// One case as one rank sees it.
class TreeRun : public PassWatcher {
 public:
  TreeRun(const RandomCase& random_case, const Ranks& ranks)
      : tree_(random_case.tree),
        training_(random_case.training),
        ranks_(ranks),
        plain_(make_module(tree_)),
        module_(make_module(tree_)),
        plain_parameters_(parameters_of(*plain_)),
        parameters_(parameters_of(*module_)) {
    if (training_.begins_apart) move_apart();
    shards_ = mesh_of(training_.strategy, ranks.rank(), hosts_of(ranks),
                      training_.options.shard_group_size)
                  .shards;
    reshards_ = after_forward(training_.strategy, training_.options, shards_).gives_up;
    may_prefetch_ = training_.options.forward_prefetch.value_or(true);
    for (const PlannedUnit& unit : plan_units(*module_, training_.options)) add_owned(unit);
    fsdp_ = prepare_fsdp(*module_, ranks, training_.strategy, training_.options);
  }

  void train() {
    require_gathered_is_plain("at first");
    for (int64_t step = 0; step < kSteps; ++step) {
      take_step(step);
      if (training_.writes_back) write_back();
    }
  }

  // Where units are given up after their forward and none is gathered in advance, exactly those
  // that a node lies in are whole.
  void enter(size_t node) override {
    inside_.push_back(node);
    called_.insert(node);
    if (!reshards_ || may_prefetch_) return;
    for (const Owned& owned : owned_) {
      const bool is_inside = owned.unit == kRoot || std::ranges::count(inside_, owned.unit) > 0;
      require(is_whole(owned) == is_inside,
              fmt::format("{} is {} in n{}", owned.name, is_inside ? "whole" : "freed", node));
    }
  }
  void leave(size_t) override { inside_.pop_back(); }

 private:
  static constexpr size_t kRoot = 0;

  /// A parameter that is sharded, with the node whose unit it is gathered with.
  struct Owned {
    std::string name;
    at::Tensor tensor;
    size_t unit = kRoot;
  };

  void move_apart() {
    const at::NoGradGuard no_grad;
    for (const auto& parameter : parameters_) parameter.tensor.add_(ranks_.rank());
  }

  void add_owned(const PlannedUnit& unit) {
    if (unit.is_whole || shards_ == 1) return;
    const size_t node = ways_to_nodes(tree_).at(unit.name).back();
    for (const auto& parameter : unit.parameters) {
      if (parameter.tensor.numel() == 0) continue;
      owned_.push_back({parameter.name, parameter.tensor, node});
    }
  }

  static bool is_whole(const Owned& owned) { return !is_given_up(owned.tensor); }

  void require_freed(const std::string& when) const {
    require(gathered_units(*fsdp_).empty(), "the memory of units is freed " + when);
    for (const Owned& owned : owned_) require(!is_whole(owned), owned.name + " is freed " + when);
  }

  void require_called_units_freed() const {
    for (const Owned& owned : owned_) {
      const bool is_called_unit = owned.unit != kRoot && called_.contains(owned.unit);
      require(!is_called_unit || !is_whole(owned),
              owned.name + " is freed when the backward pass has left its unit");
    }
  }

  Moment moment(int64_t step, int64_t micro_batch, int64_t rank) const {
    return {.step = step,
            .micro_batch = micro_batch,
            .micro_batches = training_.micro_batches,
            .rank = rank,
            .watcher = nullptr};
  }

  at::Tensor batch(const Moment& moment) const {
    return tree_batch(moment).set_requires_grad(tree_.input_needs_gradient);
  }

  at::Tensor plain_loss(const Moment& moment) const {
    return tree_loss(*plain_, batch(moment), moment);
  }

  std::vector<Expected> plain_gradients(int64_t step) const {
    std::vector<Expected> expected;
    for (const auto& parameter : plain_parameters_) {
      const at::Tensor none = tensors::zeros(parameter.tensor.sizes(), at::kDouble);
      expected.push_back({.sum = none, .magnitude = none.clone()});
    }
    ReadingRecorder recorder(plain_parameters_, expected);
    for (int64_t m = 0; m < training_.micro_batches; ++m) {
      for (int64_t r = 0; r < ranks_.world_size(); ++r) {
        Moment pass = moment(step, m, r);
        pass.watcher = &recorder;
        plain_loss(pass).div(training_.micro_batches).backward();
        add_gradients(expected);
      }
    }
    return expected;
  }

  void add_gradients(std::vector<Expected>& expected) const {
    for (size_t i = 0; i < expected.size(); ++i) {
      at::Tensor& gradient = plain_parameters_[i].tensor.mutable_grad();
      if (!gradient.defined()) continue;
      expected[i].sum = expected[i].sum.add(gradient.to(at::kDouble));
      expected[i].is_used = true;
      gradient.reset();
    }
  }

  void take_step(int64_t step) {
    const std::vector<Expected> expected = plain_gradients(step);
    for (int64_t m = 0; m < training_.micro_batches; ++m) {
      take_pass(step, m);
      if (training_.evaluates) evaluate(step + m);
    }
    require_gradients(expected);
    require_norm(expected);
    if (training_.drops_a_pass) {
      const Moment dropped = moment(step + 1, 0, ranks_.rank());
      fsdp_->forward([&] { return tree_loss(*module_, batch(dropped), dropped); });
    }
    descend(fsdp_->local_parameters());
    take_over_weights(expected);
  }

  void take_pass(int64_t step, int64_t micro_batch) {
    Moment pass = moment(step, micro_batch, ranks_.rank());
    const at::Tensor expected = plain_loss(pass);
    pass.watcher = this;
    called_.clear();
    const bool is_last = micro_batch + 1 == training_.micro_batches;
    const bool frees = reshards_ || is_last;
    const at::Tensor input = batch(pass);
    if (input.requires_grad() && frees && !may_prefetch_) {
      input.register_hook([this](const at::Tensor&) { require_called_units_freed(); });
    }
    const at::Tensor loss =
        fsdp_->forward([&] { return tree_loss(*module_, input, pass); }, /*synchronize=*/is_last);
    require(loss.equal(expected), fmt::format("step {}: the loss is the plain one's", step));
    loss.div(training_.micro_batches).backward();
    if (frees) require_freed("after a backward pass");
  }

  void evaluate(int64_t step) {
    const at::NoGradGuard no_grad;
    Moment pass = moment(step, 0, ranks_.rank());
    const at::Tensor expected = plain_loss(pass);
    const at::Tensor found =
        fsdp_->forward([&] { return tree_loss(*module_, batch(pass), pass); }, false);
    require(found.equal(expected), "a loss without gradients is the plain one's");
    require_freed("after an evaluation");
  }

  // What each reading of a parameter adds is bitwise the plain one's. What may differ is the order
  // of the additions, each of which rounds once, on either side, and the product with 1 / ranks.
  void require_gradients(const std::vector<Expected>& expected) const {
    const auto locals = fsdp_->local_parameters();
    require(locals.size() == expected.size(), "as many parameters as the plain module has");
    const auto ranks = static_cast<double>(ranks_.world_size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const NamedParameter& local = locals[i];
      require(local.name == plain_parameters_[i].name, local.name + " is in its place");
      const at::Tensor& gradient = local.tensor.grad();
      require(gradient.defined() == expected[i].is_used,
              local.name + " has a gradient where a rank has used it");
      if (!gradient.defined()) continue;
      const double epsilon = gradient.scalar_type() == at::kFloat
                                 ? std::numeric_limits<float>::epsilon()
                                 : std::numeric_limits<double>::epsilon();
      const double roundings = 2 * static_cast<double>(expected[i].additions) + 3;
      const at::Tensor bound =
          part_of(expected[i].magnitude, local).mul(roundings * epsilon / ranks);
      const at::Tensor difference =
          gradient.to(at::kDouble).sub(part_of(expected[i].sum, local).div(ranks)).abs();
      require(difference.le(bound.add(std::numeric_limits<float>::min())).all().item<bool>(),
              fmt::format("the gradient of {} is the plain one's", local.name));
    }
  }

  void require_norm(const std::vector<Expected>& expected) const {
    double square = 0;
    double most = 0;
    double tolerance = 1e-12;
    for (size_t i = 0; i < expected.size(); ++i) {
      square += expected[i].sum.square().sum().item<double>();
      most += expected[i].magnitude.square().sum().item<double>();
      if (plain_parameters_[i].tensor.scalar_type() == at::kFloat) tolerance = 1e-5;
    }
    const auto ranks = static_cast<double>(ranks_.world_size());
    const double norm = fsdp_->gradient_norm(fsdp_->local_parameters()).item().toDouble();
    require(std::abs(norm - std::sqrt(square) / ranks) <= tolerance * std::sqrt(most) / ranks,
            fmt::format("the gradient norm {} is {}", norm, std::sqrt(square) / ranks));
  }

  // The plain module goes on with the same weights, so that each step is compared for itself.
  void take_over_weights(const std::vector<Expected>& expected) {
    const auto locals = fsdp_->local_parameters();
    fsdp_->summon_full_params([&] {
      const at::NoGradGuard no_grad;
      for (size_t i = 0; i < parameters_.size(); ++i) {
        const at::Tensor& whole = parameters_[i].tensor;
        const std::string& name = parameters_[i].name;
        require(part_of(whole, locals[i]).equal(locals[i].tensor), name + " is what was updated");
        require(expected[i].is_used || whole.equal(plain_parameters_[i].tensor),
                name + ", which was not used, stays");
        plain_parameters_[i].tensor.copy_(whole);
      }
    });
    require_alike();
    require_freed("after a look");
  }

  void require_alike() const {
    std::vector<at::Tensor> all;
    for (const auto& parameter : plain_parameters_) {
      all.push_back(parameter.tensor.detach().reshape({-1}).to(at::kDouble));
    }
    const at::Tensor here = tensors::cat(all);
    const at::Tensor at_first = here.clone();
    ranks_.broadcast(at_first);
    require(at_first.equal(here), "the parameters are alike on all ranks");
  }

  void write_back() {
    fsdp_->summon_full_params(
        [&] {
          const at::NoGradGuard no_grad;
          for (const auto& parameter : parameters_) {
            parameter.tensor.mul_(0.9).add_(ranks_.rank());
          }
        },
        /*write_back=*/true);
    const at::NoGradGuard no_grad;
    for (const auto& parameter : plain_parameters_) parameter.tensor.mul_(0.9);
    require_gathered_is_plain("after rank 0's were written");
  }

  void require_gathered_is_plain(const std::string& when) {
    fsdp_->summon_full_params([&] {
      for (size_t i = 0; i < parameters_.size(); ++i) {
        require(parameters_[i].tensor.equal(plain_parameters_[i].tensor),
                parameters_[i].name + " is whole again " + when);
      }
    });
    require_freed("after a look");
  }

  const Tree& tree_;
  const TreeTraining& training_;
  const Ranks& ranks_;
  std::shared_ptr<torch::nn::Module> plain_;
  std::shared_ptr<torch::nn::Module> module_;
  std::vector<NamedParameter> plain_parameters_;
  std::vector<NamedParameter> parameters_;
  int64_t shards_ = 1;
  bool reshards_ = true;
  bool may_prefetch_ = true;  ///< In forward passes.
  std::vector<Owned> owned_;
  std::unique_ptr<FullyShardedDataParallel> fsdp_;
  std::vector<size_t> inside_;  ///< The nodes that a forward pass is in.
  std::set<size_t> called_;     ///< Those that the last pass was in.
};

/// A number that the test sees after the ranks, other processes, have died.
class SharedNumber {
 public:
  SharedNumber()
      : number_(static_cast<uint64_t*>(::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (number_ == MAP_FAILED) throw std::runtime_error("no shared memory");
  }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;
  ~SharedNumber() { ::munmap(number_, sizeof(uint64_t)); }

  void set(uint64_t number) const { *number_ = number; }
  uint64_t get() const { return *number_; }

 private:
  uint64_t* number_;
};

class RandomTrees : public ::testing::TestWithParam<int64_t> {};

TEST_P(RandomTrees, TrainAsTheyDoUnsharded) {
  const int64_t world_size = GetParam();
  const Seeds seeds = seeds_to_run(/*usual=*/world_size == 2 ? 80 : 25);
  const SharedNumber current;
  const JoinOptions options{.timeout = std::chrono::minutes(1)};  // a hang is a failure too
  const RankOutcome outcome = in_ranks(
      world_size,
      [&](World& world) {
        for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
          if (world.ranks().is_first()) current.set(seed);
          const RandomCase made = random_case(seed, world_size);
          TreeRun(made, world.ranks()).train();
        }
      },
      options);
  EXPECT_EQ(outcome.message, "") << fmt::format("PHALANX_TREE_SEED={} on {} ranks: {}",
                                                current.get(), world_size,
                                                describe(random_case(current.get(), world_size)));
}

INSTANTIATE_TEST_SUITE_P(Fsdp, RandomTrees, ::testing::Values(2, 3, 4),
                         [](const auto& info) { return fmt::format("{}Ranks", info.param); });

}  // namespace
}  // namespace phalanx::fsdp::testing
