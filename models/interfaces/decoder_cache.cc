// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/decoder_cache.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace phalanx {

struct KeyValueCache::State {
  // With room for more places than there are: else each token would copy all before it.
  at::Tensor keys;
  at::Tensor values;
  int64_t length = 0;
};

namespace {

constexpr int64_t kFirstRoom = 64;  // Places.

void make_room(at::Tensor& stored, const at::Tensor& added, int64_t length) {
  const int64_t needed = length + added.size(2);
  if (stored.defined() && stored.size(2) >= needed) return;
  const int64_t room = std::max(kFirstRoom, 2 * needed);
  at::Tensor larger =
      at::empty({added.size(0), added.size(1), room, added.size(3)}, added.options());
  if (length > 0) larger.narrow(2, 0, length).copy_(stored.narrow(2, 0, length));
  stored = larger;
}

}  // namespace

KeyValueCache::KeyValueCache() : state_(std::make_shared<State>()) {}

int64_t KeyValueCache::length() const { return state_->length; }

KeyValueCache::Contents KeyValueCache::append(const at::Tensor& keys,
                                              const at::Tensor& values) const {
  State& state = *state_;
  make_room(state.keys, keys, state.length);
  make_room(state.values, values, state.length);
  state.keys.narrow(2, state.length, keys.size(2)).copy_(keys);
  state.values.narrow(2, state.length, values.size(2)).copy_(values);
  state.length += keys.size(2);
  return contents();
}

KeyValueCache::Contents KeyValueCache::contents() const {
  const State& state = *state_;
  if (state.length == 0) return {};
  return {.keys = state.keys.narrow(2, 0, state.length),
          .values = state.values.narrow(2, 0, state.length)};
}

void KeyValueCache::select(const at::Tensor& rows) const {
  State& state = *state_;
  if (state.length == 0) return;
  const at::Tensor chosen = rows.to(state.keys.device());
  state.keys = state.keys.index_select(0, chosen);
  state.values = state.values.index_select(0, chosen);
}

KeyValueCache DecoderCache::layer(size_t index) {
  if (index >= layers_.size()) layers_.resize(index + 1);
  return layers_[index];
}

int64_t DecoderCache::length() const { return layers_.empty() ? 0 : layers_.front().length(); }

const at::Tensor& DecoderCache::append_positions(const at::Tensor& positions) {
  positions_ = positions_.defined() ? at::cat({positions_, positions}, 1) : positions;
  return positions_;
}

void DecoderCache::select(const at::Tensor& rows) {
  for (const KeyValueCache& layer : layers_) layer.select(rows);
  if (positions_.defined()) positions_ = positions_.index_select(0, rows.to(positions_.device()));
}

}  // namespace phalanx
