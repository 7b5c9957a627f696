// SPDX-License-Identifier: Apache-2.0
// Trains a GPT-2 as the trainer does and tells what memory that took, for memory_test.py: one rank,
// by the environment.
//
//   memory_probe STRATEGY '{"vocab_size": ..., ...}' LENGTH STEPS OUTPUT
//
// Writes OUTPUT.RANK: what was resident before the model and the most that was afterwards, by the
// kernel; the most that tensors had at a time, to the byte, and of what that was; the losses.

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "models/gpt2/config.h"
#include "tests/models/gpt2/registered_gpt2.h"
#include "tests/tensors.h"
#include "tests/trainer/registered.h"
#include "trainer/api/modules.h"
#include "trainer/api/parameters.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/memory/memory.h"
#include "trainer/parallel/activations/saved_tensors.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using nlohmann::json;

/// Hands out LibTorch's own host memory, and knows how much of it is out, on whatever thread it is
/// taken and released.
class CountingAllocator final : public c10::Allocator {
 public:
  /// Called with the bytes when an allocation makes them more than ever.
  using OnPeak = std::function<void(int64_t live)>;

  explicit CountingAllocator(c10::Allocator& base) : base_(base) {}

  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr memory = base_.allocate(bytes);
    void* const data = memory.get();
    if (data == nullptr) return memory;
    {
      const std::lock_guard lock(mutex_);
      live_ += static_cast<int64_t>(bytes);
      sizes_.emplace(data, static_cast<int64_t>(bytes));
      if (live_ <= peak_) return wrapped(std::move(memory));
      peak_ = live_;
    }
    if (on_peak_) on_peak_(peak_);
    return wrapped(std::move(memory));
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  bool has_handed_out(const void* data) const {
    const std::lock_guard lock(mutex_);
    return sizes_.contains(data);
  }
  void watch(OnPeak on_peak) { on_peak_ = std::move(on_peak); }
  /// From now on.
  void forget_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = live_;
  }

 private:
  struct Block {
    CountingAllocator* allocator;
    c10::DataPtr memory;
  };

  c10::DataPtr wrapped(c10::DataPtr memory) {
    void* const data = memory.get();
    const c10::Device device = memory.device();
    return {data, new Block{.allocator = this, .memory = std::move(memory)}, &release, device};
  }
  static void release(void* block) {
    const std::unique_ptr<Block> owned(static_cast<Block*>(block));
    CountingAllocator& self = *owned->allocator;
    const std::lock_guard lock(self.mutex_);
    const auto found = self.sizes_.find(owned->memory.get());
    self.live_ -= found->second;
    self.sizes_.erase(found);
  }

  c10::Allocator& base_;
  mutable std::mutex mutex_;
  std::unordered_map<const void*, int64_t> sizes_;
  int64_t live_ = 0;
  int64_t peak_ = 0;
  OnPeak on_peak_;
};

// Never destroyed: tensors outlive main.
CountingAllocator& counting_allocator() {
  static auto* const allocator = new CountingAllocator(*c10::GetCPUAllocator());
  return *allocator;
}

/// What autograd keeps of a forward pass, but for parameters: the bytes of its storages.
class SavedBytes {
 public:
  explicit SavedBytes(const torch::nn::Module& module) {
    for (const at::Tensor& parameter : modules::parameters(module)) {
      parameters_.insert(parameter.storage().unsafeGetStorageImpl());
    }
  }

  int64_t now() const { return bytes_; }
  int64_t most() const { return most_; }
  activations::SavedTensorsScope scope() {
    return activations::SavedTensorsScope([this] { return std::make_unique<Kept>(*this); });
  }

 private:
  class Kept final : public torch::autograd::SavedVariableHooks {
   public:
    explicit Kept(SavedBytes& saved) : saved_(saved) {}
    ~Kept() override {
      if (tensor_.defined()) saved_.add(tensor_, -1);
    }
    void call_pack_hook(const at::Tensor& tensor) override {
      tensor_ = tensor.detach();
      saved_.add(tensor_, 1);
    }
    at::Tensor call_unpack_hook() override { return tensor_; }

   private:
    SavedBytes& saved_;
    at::Tensor tensor_;
  };

  void add(const at::Tensor& tensor, int64_t uses) {
    const c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
    if (parameters_.contains(storage)) return;
    const auto bytes = static_cast<int64_t>(storage->nbytes());
    const auto place = uses_.try_emplace(storage, 0).first;
    if (place->second == 0) bytes_ += bytes;
    place->second += uses;
    if (place->second == 0) {
      bytes_ -= bytes;
      uses_.erase(place);
    }
    most_ = std::max(most_, bytes_);
  }

  std::unordered_set<const c10::StorageImpl*> parameters_;
  std::unordered_map<const c10::StorageImpl*, int64_t> uses_;
  int64_t bytes_ = 0;
  int64_t most_ = 0;
};

ShardingStrategy strategy_of(std::string_view name) {
  for (int number = 1; number <= 5; ++number) {
    const auto strategy = static_cast<ShardingStrategy>(number);
    if (to_string(strategy) == name) return strategy;
  }
  throw std::invalid_argument("no such strategy: " + std::string(name));
}

// "VmRSS" or "VmHWM", in bytes.
int64_t resident(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  throw std::runtime_error("/proc/self/status does not tell " + std::string(field));
}

gpt2::Config config_of(const json& sizes) {
  gpt2::Config config;
  config.vocab_size = sizes.at("vocab_size");
  config.n_positions = sizes.at("n_positions");
  config.n_embd = sizes.at("n_embd");
  config.n_layer = sizes.at("n_layer");
  config.n_head = sizes.at("n_head");
  config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = 0;
  return config;
}

/// A model on this rank with its optimizer, wrapped unless the rank is alone.
class Training {
 public:
  Training(const Ranks& ranks, ShardingStrategy strategy, const gpt2::Config& config)
      : vocabulary_(config.vocab_size) {
    seed_everything(0);
    const auto deferred =
        DeferredInit::record([&] { model_ = std::make_unique<RegisteredGpt2>(config); });
    if (ranks.is_single_rank()) {
      deferred->fill();
    } else {
      FsdpOptions options;  // two copies, where the strategy has copies
      if (is_hybrid(strategy)) options.shard_group_size = ranks.world_size() / 2;
      engine_ = prepare_fsdp(model_->module(), ranks, strategy, options,
                             /*sync_module_states=*/true, {.deferred_init = deferred});
    }
    auto groups = default_parameter_groups(*model_);
    for (auto& group : groups) {
      for (auto& parameter : group.parameters) {
        if (engine_) parameter = engine_->local(parameter);
        locals_.push_back(parameter);
      }
    }
    optimizer_->bind(std::move(groups));
    for (const auto& view : optimizer_->state()) {
      const auto bytes = static_cast<int64_t>(view.local.nbytes());
      const bool is_counted = counting_allocator().has_handed_out(view.local.const_data_ptr());
      state_ += bytes;
      if (!is_counted) mapped_state_ += bytes;
    }
    saved_ = std::make_unique<SavedBytes>(model_->module());
    seed_everything(static_cast<uint64_t>(ranks.rank()));
  }

  double step(int64_t length) {
    const at::Tensor tokens = tensors::empty({1, length + 1}, at::kLong).random_(0, vocabulary_);
    at::Tensor loss = forward(tokens);
    loss.backward();
    optimizer_->step(optimizer_->base_lr());
    for (const auto& local : locals_) local.tensor.mutable_grad().reset();
    return loss.item<double>();
  }

  int64_t most_saved() const { return saved_->most(); }
  /// What the optimizer's state has of pages of its own.
  int64_t mapped_state() const { return mapped_state_; }
  /// What is held now, by what it is.
  json uses() const {
    json uses;
    for (const auto& use : engine_ ? engine_->memory() : of_one_rank()) {
      if (use.bytes > 0) uses[use.what] = use.bytes;
    }
    uses["optimizer"] = state_;
    uses["saved"] = saved_->now();
    return uses;
  }

 private:
  at::Tensor forward(const at::Tensor& tokens) {
    const activations::SavedTensorsScope scope = saved_->scope();
    const auto pass = [&] {
      const at::Tensor logits = model_->logits(tokens.narrow(1, 0, tokens.size(1) - 1));
      const at::Tensor targets = tokens.narrow(1, 1, tokens.size(1) - 1);
      return Loss(tensors::cross_entropy(logits.flatten(0, 1), targets.flatten()));
    };
    return (engine_ ? engine_->run(pass, /*synchronize=*/true) : pass()).total();
  }
  std::vector<MemoryUse> of_one_rank() const {
    MemoryUse parameters{"parameters, this rank's part"};
    MemoryUse gradients{"gradients, this rank's part"};
    for (const auto& local : locals_) {
      parameters.bytes += static_cast<int64_t>(local.tensor.nbytes());
      if (!local.tensor.grad().defined()) continue;
      gradients.bytes += static_cast<int64_t>(local.tensor.grad().nbytes());
    }
    return {parameters, gradients};
  }

  int64_t vocabulary_;
  std::unique_ptr<RegisteredGpt2> model_;
  std::unique_ptr<FullyShardedDataParallel> engine_;
  std::shared_ptr<Optimizer> optimizer_ = make_registered<Optimizer>("adamw");
  std::vector<NamedParameter> locals_;
  std::unique_ptr<SavedBytes> saved_;
  int64_t state_ = 0;
  int64_t mapped_state_ = 0;
};

json measure(const Ranks& ranks, ShardingStrategy strategy, const json& sizes, int64_t length,
             int64_t steps) {
  json tiny = sizes;
  tiny["vocab_size"] = 64;
  tiny["n_embd"] = 8 * sizes.at("n_head").get<int64_t>();
  tiny["n_layer"] = 2;
  {
    Training warm_up(ranks, strategy, config_of(tiny));
    for (int64_t step = 0; step < 2; ++step) warm_up.step(length);
  }
  json figures;
  figures["baseline"] = resident("VmRSS");
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
  CountingAllocator& allocator = counting_allocator();
  allocator.forget_peak();
  Training training(ranks, strategy, config_of(sizes));
  const int64_t mapped = training.mapped_state();
  allocator.forget_peak();  // what building took is less than what a step takes
  allocator.watch([&](int64_t live) {
    figures["account"] = live + mapped;
    figures["uses"] = training.uses();
  });
  for (int64_t step = 0; step < steps; ++step) {
    figures["losses"].push_back(training.step(length));
  }
  allocator.watch(nullptr);
  figures["peak"] = resident("VmHWM");
  figures["saved"] = training.most_saved();
  return figures;
}

void run(const std::vector<std::string>& arguments) {
  use_caching_allocator();  // as `train` does
  at::set_num_threads(1);
  World world = init_from_env();
  c10::SetCPUAllocator(&counting_allocator());
  const json figures =
      measure(world.ranks(), strategy_of(arguments.at(0)), json::parse(arguments.at(1)),
              std::stoll(arguments.at(2)), std::stoll(arguments.at(3)));
  std::ofstream(arguments.at(4) + "." + std::to_string(world.ranks().rank())) << figures;
  world.close();
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) try {
  phalanx::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "memory_probe: " << error.what() << "\n";
  return 1;
}
