// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace phalanx {

/// What a model computes with of a table.
enum class TableUse {
  rows,  ///< The rows of given numbers, by lookups alone.
  whole  ///< All of it, as where a head is tied to it.
};

/// A module whose parameter `weight`, [rows, width], is looked up by number: an embedding. An
/// engine may have its rows elsewhere.
class LookupTable {
 public:
  /// Numbers (int64, any shape) to [..., width].
  using Lookup = std::function<at::Tensor(const at::Tensor& numbers)>;

  explicit LookupTable(TableUse use) : use_(use) {}
  virtual ~LookupTable() = default;

  TableUse use() const { return use_; }
  /// Has lookups go there, in the place of `weight`. Empty: to `weight` again.
  void look_up_by(Lookup lookup) { lookup_ = std::move(lookup); }

 protected:
  /// Empty: nobody has taken them over.
  const Lookup& lookup() const { return lookup_; }

 private:
  TableUse use_;
  Lookup lookup_;
};

/// A table of a model.
struct NamedTable {
  std::string name;    ///< The module's, dotted: "wte".
  LookupTable* table;  ///< The module.
  at::Tensor weight;   ///< Its parameter.
};

/// The tables of a model in the order of registration. One that is registered in several places
/// appears once, under its first name.
std::vector<NamedTable> lookup_tables(torch::nn::Module& root);

}  // namespace phalanx
