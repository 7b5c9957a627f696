// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/xxh3.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace phalanx {

// Both widths are of one state: XXH3_128bits_update is XXH3_64bits_update.
struct Xxh3::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  std::unique_ptr<XXH3_state_t, Free> sums{XXH3_createState()};
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->sums.get()); }
Xxh3::~Xxh3() = default;

void Xxh3::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->sums.get(), bytes.data(), bytes.size());
}

void Xxh3::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

std::string Xxh3::digits64() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_->sums.get()));
}

std::string Xxh3::digits128() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->sums.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string xxh3_digits64(std::string_view text) {
  Xxh3 hash;
  hash.add(text);
  return hash.digits64();
}

std::string xxh3_digits128(std::string_view text) {
  Xxh3 hash;
  hash.add(text);
  return hash.digits128();
}

}  // namespace phalanx
