// SPDX-License-Identifier: Apache-2.0
#include "trainer/memory/deferred_init.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

// LibTorch keeps this key for modes that no backend knows; a test holds that it still works so.
constexpr auto kMode = c10::DispatchKey::TESTING_ONLY_GenericMode;

using Names = std::unordered_set<std::string_view>;

// Give every element of a tensor a value that does not depend on the one it had.
const Names& fills() {
  static const Names names{"aten::normal_",     "aten::uniform_", "aten::zero_",
                           "aten::fill_",       "aten::random_",  "aten::exponential_",
                           "aten::log_normal_", "aten::cauchy_",  "aten::geometric_",
                           "aten::bernoulli_"};
  return names;
}

// Change it, by numbers alone.
const Names& changes() {
  static const Names names{
      "aten::mul_",    "aten::add_",     "aten::sub_",       "aten::div_",
      "aten::erfinv_", "aten::clamp_",   "aten::clamp_min_", "aten::clamp_max_",
      "aten::neg_",    "aten::exp_",     "aten::log_",       "aten::sqrt_",
      "aten::tanh_",   "aten::sigmoid_", "aten::pow_",       "aten::abs_"};
  return names;
}

// Look at shapes only, or call others that are looked at for themselves.
const Names& harmless() {
  static const Names names{"aten::empty",
                           "aten::empty_like",
                           "aten::new_empty",
                           "aten::zeros_like",
                           "aten::ones_like",
                           "aten::full_like",
                           "aten::rand_like",
                           "aten::randn_like",
                           "aten::randint_like",
                           "aten::randn",
                           "aten::rand",
                           "aten::randint",
                           "aten::normal_functional",
                           "aten::is_same_size"};
  return names;
}

bool is_among(const Names& names, const c10::OperatorHandle& op) {
  return names.contains(std::string_view(op.schema().name()));
}

bool draws_random_numbers(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded);
}

// Its results share the memory of its arguments, and nothing is read or written.
bool is_view(const c10::OperatorHandle& op) {
  const auto& results = op.schema().returns();
  return !results.empty() && std::all_of(results.begin(), results.end(), [](const auto& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return tensor.storage().unsafeGetStorageImpl();
}

bool is_on_host(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == at::kStrided && storage_of(tensor);
}

bool covers_storage(const at::Tensor& tensor) {
  return tensor.is_contiguous() && tensor.nbytes() == tensor.storage().nbytes();
}

template <class Function>
void for_each_tensor(const c10::IValue& value, const Function& function) {
  if (value.isTensor()) {
    function(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) function(tensor);
  } else if (value.isList()) {
    for (const auto& item : value.toListRef()) for_each_tensor(item, function);
  }
}

// All arguments after the first are numbers, and no generator of the caller's own.
bool takes_only_numbers(at::ArrayRef<c10::IValue> arguments) {
  return std::none_of(arguments.begin() + 1, arguments.end(), [](const c10::IValue& value) {
    return value.isTensor() || value.isGenerator() || value.isTensorList() || value.isList();
  });
}

void take_memory(const c10::StorageImpl* storage) {
  auto* const mutable_storage = const_cast<c10::StorageImpl*>(storage);
  mutable_storage->set_data_ptr_noswap(c10::DataPtr(nullptr, storage->device()));
}

void give_memory(const c10::StorageImpl* storage) {
  if (storage->data() != nullptr) return;
  auto* const mutable_storage = const_cast<c10::StorageImpl*>(storage);
  mutable_storage->set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(storage->nbytes()));
}

at::Tensor random_state() { return rng_states().begin()->second; }
void set_random_state(const at::Tensor& state) { set_rng_states({{"cpu", state}}); }

}  // namespace

// The tensor is an alias: what the model holds may get other memory before this is run.
struct DeferredInit::Operation {
  c10::OperatorHandle op;
  torch::jit::Stack arguments;
  bool is_fill = false;

  const at::Tensor& tensor() const { return arguments.front().toTensor(); }
  void run() const {
    torch::jit::Stack stack = arguments;
    op.callBoxed(stack);
  }
};

// Which operation is the last one, for each storage.
template <class Operations>
std::unordered_map<const c10::StorageImpl*, std::size_t> last_of_each_storage(
    const Operations& operations) {
  std::unordered_map<const c10::StorageImpl*, std::size_t> last;
  for (std::size_t i = 0; i < operations.size(); ++i) last[storage_of(operations[i].tensor())] = i;
  return last;
}

// Sees every operator that this thread calls while it lives.
class DeferredInit::Recorder {
 public:
  explicit Recorder(DeferredInit& init) : init_(init), mode_(kMode), previous_(current_) {
    current_ = this;
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() { current_ = previous_; }

  static void dispatch(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack) {
    if (current_ != nullptr && current_->defers(op, *stack)) return;
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kMode), stack);
  }

 private:
  bool defers(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto count = op.schema().arguments().size();
    const at::ArrayRef<c10::IValue> arguments(stack.data() + stack.size() - count, count);
    if (can_be_deferred(op, arguments)) {
      record(op, arguments);
      const at::Tensor self = arguments.front().toTensor();
      torch::jit::drop(stack, count);
      stack.emplace_back(self);
      return true;
    }
    if (is_view(op) || is_among(harmless(), op)) return false;
    const bool needs_values = draws_random_numbers(op) || reads_pending(arguments);
    if (needs_values && !init_.pending_.empty()) fill_now();
    return false;
  }

  bool can_be_deferred(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) const {
    const bool is_fill = is_among(fills(), op);
    if (!is_fill && !is_among(changes(), op)) return false;
    if (!arguments.front().isTensor() || !takes_only_numbers(arguments)) return false;
    const at::Tensor& self = arguments.front().toTensor();
    if (!is_on_host(self) || self.numel() == 0) return false;
    return init_.is_pending(self) || (is_fill && covers_storage(self));
  }

  void record(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) {
    Operation operation{.op = op, .arguments = arguments.vec(), .is_fill = is_among(fills(), op)};
    const at::Tensor alias = arguments.front().toTensor().variable_data();
    operation.arguments.front() = alias;
    const c10::StorageImpl* const storage = storage_of(alias);
    if (init_.pending_.insert(storage).second) take_memory(storage);
    init_.operations_.push_back(std::move(operation));
  }

  bool reads_pending(at::ArrayRef<c10::IValue> arguments) const {
    bool found = false;
    for (const auto& argument : arguments) {
      for_each_tensor(argument,
                      [&](const at::Tensor& tensor) { found |= init_.is_pending(tensor); });
    }
    return found;
  }

  void fill_now() {
    const c10::impl::ExcludeDispatchKeyGuard unseen(kMode);
    init_.run_operations([](const c10::StorageImpl*, const at::Tensor&) { return true; });
  }

  DeferredInit& init_;
  c10::impl::IncludeDispatchKeyGuard mode_;
  Recorder* previous_;
  static thread_local Recorder* current_;
};

thread_local DeferredInit::Recorder* DeferredInit::Recorder::current_ = nullptr;

DeferredInit::DeferredInit() = default;
DeferredInit::~DeferredInit() = default;

std::shared_ptr<DeferredInit> DeferredInit::record(const std::function<void()>& build) {
  static const torch::Library library = [] {
    torch::Library implementation(torch::Library::IMPL, "_", kMode, __FILE__, __LINE__);
    implementation.fallback(torch::CppFunction::makeFromBoxedFunction<&Recorder::dispatch>());
    return implementation;
  }();
  std::shared_ptr<DeferredInit> init(new DeferredInit);
  {
    const Recorder recorder(*init);
    build();
  }
  init->random_state_ = random_state();
  return init;
}

bool DeferredInit::is_pending(const at::Tensor& tensor) const {
  const c10::StorageImpl* const storage = storage_of(tensor);
  return storage != nullptr && pending_.contains(storage);
}

void DeferredInit::fill() {
  fill([](const c10::StorageImpl*, const at::Tensor&) { return true; });
}

void DeferredInit::fill(const Filled& filled) {
  if (pending_.empty()) return;
  const at::Tensor now = random_state();
  const bool untouched = now.equal(random_state_);
  set_random_state(random_state_);
  run_operations(filled);
  if (!untouched) set_random_state(now);
}

void DeferredInit::fill_from_elsewhere(const Filled& filled) {
  const at::NoGradGuard no_grad;
  const std::vector<Operation> operations = std::exchange(operations_, {});
  const auto last = last_of_each_storage(operations);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const c10::StorageImpl* const storage = storage_of(operations[i].tensor());
    if (i != last.at(storage)) continue;
    give_memory(storage);
    finish(operations[i], filled);
  }
}

void DeferredInit::give_up_memory(const at::Tensor& values) { take_memory(storage_of(values)); }

// A storage has memory from the last operation that gives all its elements new values, up to the
// last of all. What came before is only run for the random numbers that it draws.
void DeferredInit::run_operations(const Filled& filled) {
  const at::NoGradGuard no_grad;
  const std::vector<Operation> operations = std::exchange(operations_, {});
  std::unordered_map<const c10::StorageImpl*, std::size_t> first;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const at::Tensor& tensor = operations[i].tensor();
    if (operations[i].is_fill && covers_storage(tensor)) first[storage_of(tensor)] = i;
  }
  const auto last = last_of_each_storage(operations);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const c10::StorageImpl* const storage = storage_of(operations[i].tensor());
    const bool is_overwritten = i < first.at(storage);
    if (is_overwritten && !draws_random_numbers(operations[i].op)) continue;
    give_memory(storage);
    operations[i].run();
    if (is_overwritten) take_memory(storage);
    if (i == last.at(storage)) finish(operations[i], filled);
  }
}

void DeferredInit::finish(const Operation& last, const Filled& filled) {
  const at::Tensor& tensor = last.tensor();
  const c10::StorageImpl* const storage = storage_of(tensor);
  pending_.erase(storage);
  const int64_t elements = static_cast<int64_t>(storage->nbytes() / tensor.element_size());
  if (!filled(storage, tensor.as_strided({elements}, {1}, 0))) take_memory(storage);
}

}  // namespace phalanx
