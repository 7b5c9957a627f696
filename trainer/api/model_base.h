// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>

namespace torch::nn {
class Module;
}

namespace phalanx {

/// A model as the loop sees it; cheap to include.
class ModelBase {
 public:
  virtual ~ModelBase() = default;

  /// The module that holds the parameters.
  virtual torch::nn::Module& module() = 0;

  /// The model as a task's interface; nullptr where it does not derive from that. A dynamic_cast
  /// that is done once: between bases of a class it takes 600 instructions.
  template <class Interface>
  Interface* as() {
    if (cast_.type != &typeid(Interface))
      cast_ = {&typeid(Interface), dynamic_cast<Interface*>(this)};
    return static_cast<Interface*>(cast_.result);
  }

 protected:
  ModelBase() = default;
  // What was cast is the other one.
  ModelBase(const ModelBase& /*other*/) {}
  ModelBase& operator=(const ModelBase& /*other*/) { return *this; }

 private:
  struct Cast {
    const std::type_info* type = nullptr;
    void* result = nullptr;
  };
  Cast cast_;
};

}  // namespace phalanx
