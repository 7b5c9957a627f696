// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

/// The models that sharding is tested with. Their modules are in models.cc: LibTorch's headers of
/// modules take ten seconds to compile.
namespace phalanx::fsdp::testing {

constexpr int64_t kInputs = 5;
constexpr int64_t kWidth = 7;

/// A model whose module tests know by reference only.
class AnyModel {
 public:
  AnyModel(const AnyModel&) = delete;
  AnyModel& operator=(const AnyModel&) = delete;

  /// Stands where the module is asked for.
  operator torch::nn::Module&() { return *module_; }

  // As torch::nn::Module has them.
  std::vector<at::Tensor> parameters() const;
  torch::OrderedDict<std::string, at::Tensor> named_parameters() const;
  void register_parameter(const std::string& name, const at::Tensor& tensor);
  void to(at::ScalarType dtype);
  void zero_grad();

 protected:
  explicit AnyModel(std::unique_ptr<torch::nn::Module> module);
  ~AnyModel();

  template <class Module>
  Module& as() const {
    return static_cast<Module&>(*module_);
  }

 private:
  std::unique_ptr<torch::nn::Module> module_;
};

/// What a forward pass does.
struct Pass {
  bool with_optional = true;  ///< Calls the unit that only some steps use.
  bool calls_twice = true;
};

/// A small model with everything that sharding finds hard: nested units, a unit that is called
/// twice, one that no step uses and one that only some do, tied, frozen, scalar and empty
/// parameters, sizes that divide by nothing.
class Net : public AnyModel {
 public:
  Net();

  /// Values that are the same everywhere.
  static at::Tensor wave(at::IntArrayRef shape, double phase);

  /// [rows, kInputs] to a loss.
  at::Tensor loss(const at::Tensor& input, const Pass& pass);
  /// Calls the forward of the unit `first` directly, past its hooks: [rows, kWidth] to the same.
  at::Tensor forward_of_first(const at::Tensor& input);
};

/// Begins with a unit, and comes back to it.
class Loop : public AnyModel {
 public:
  Loop();

  /// `rows`: [rows, kWidth].
  at::Tensor loss(const at::Tensor& rows);
};

/// Its halves, the unit "float" and the layer "double", have different dtypes.
class TwoTypes : public AnyModel {
 public:
  TwoTypes();

  /// `rows`: [rows, kWidth].
  at::Tensor loss(const at::Tensor& rows);
};

/// Has a unit around many.
class Staged : public AnyModel {
 public:
  Staged();

  /// `rows`: [rows, kWidth].
  at::Tensor loss(const at::Tensor& rows);
};

/// Has two units, "first" and "second", that keep views of the parameter that they see.
class Keepers : public AnyModel {
 public:
  Keepers();

  /// `between`: called while neither unit runs; the second may be on its way.
  at::Tensor loss(const std::function<void()>& between);

  const std::vector<at::Tensor>& kept_by_first() const;
  const std::vector<at::Tensor>& kept_by_second() const;
};

/// Draws its values as authors do: once in its layers, once over all.
class Drawn : public AnyModel {
 public:
  Drawn();

  const at::Tensor& embedding() const;
  const at::Tensor& scale() const;
};

/// Layers one after the other, "0", "1" and so on, each a unit; what scales their input and their
/// result belongs to no unit. All values are the same, as ranks begin alike; many ranks are built,
/// and drawing costs time.
class Stack : public AnyModel {
 public:
  /// Makes layers between `widths`; that at `frozen_layer` has a gain too, which is not trained.
  Stack(std::span<const int64_t> widths, int64_t frozen_layer);

  at::Tensor loss();
};

}  // namespace phalanx::fsdp::testing
