// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

namespace phalanx {

/// The keys and values that one attention layer has computed, so that a later token needs only its
/// own. A handle: copies are the same cache. Not for training: it is written in place.
class KeyValueCache {
 public:
  struct Contents {
    at::Tensor keys;    ///< [batch, key/value heads, places, width]
    at::Tensor values;  ///< [batch, key/value heads, places, width]
  };

  KeyValueCache();

  /// Places so far.
  int64_t length() const;

  /// Appends new places, and returns all.
  Contents append(const at::Tensor& keys, const at::Tensor& values) const;

  /// All places so far; undefined tensors before the first.
  Contents contents() const;

  /// Keeps these rows of the batch, in this order; `rows` is int64, and may name a row twice.
  void select(const at::Tensor& rows) const;

  /// For the hooks of units (tensors_in.h): a cache is the layer's state, no input of it.
  std::tuple<> tensors() { return {}; }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What a model that writes token by token has computed of the tokens before: the caches of its
/// layers, and where documents begin.
class DecoderCache {
 public:
  /// The cache of a layer, made when it is first asked for.
  KeyValueCache layer(size_t index);

  /// Tokens so far, of each row.
  int64_t length() const;

  /// Appends the positions of new tokens (int64 [batch, new]), and returns those of all.
  const at::Tensor& append_positions(const at::Tensor& positions);

  /// See KeyValueCache::select.
  void select(const at::Tensor& rows);

 private:
  std::vector<KeyValueCache> layers_;
  at::Tensor positions_;
};

}  // namespace phalanx
