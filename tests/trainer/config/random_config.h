// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// Draws configs at random from a declaration: values of every type within their ranges in all
/// their spellings, sections in full and as short forms, classes, presets, nulls, and texts that
/// YAML would misread without quotes. The same seed draws the same configs.
class RandomConfig {
 public:
  /// `words` are texts to try beside random ones, such as names that only a check knows.
  explicit RandomConfig(std::uint32_t seed, std::vector<std::string> words = {})
      : random_(seed), words_(std::move(words)) {}

  /// A tree as a user could write it (`\${` is a literal `${`), which resolves without a mistake:
  /// what a check refuses is drawn again. `classes` says which class a section picks, by the
  /// section's path; the others are drawn. Throws std::runtime_error where nothing passes.
  Node draw(const Declaration& declaration, const std::map<std::string, std::string>& classes = {});

  /// A number below a bound > 0.
  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool chance(double probability) {
    return static_cast<double>(random_() % 1000) < probability * 1000;
  }

 private:
  Node section(const Declaration& declaration, const std::string& path);
  Node section_once(const Declaration& declaration, const std::string& path, double given);
  Node choice(const Choice& choice, const std::string& path);
  Node value(const Type& type, const std::string& path);
  Node scalar(const Type& type);
  Node integer(const Type& type);
  Node real(const Type& type);
  Node duration(const Type& type);
  Node text(const Type& type);
  Node list(const Type& type, const std::string& path);
  Node map(const Type& type, const std::string& path);
  std::int64_t whole_number(const Range& range, std::int64_t low, std::int64_t high);
  std::string random_text();

  template <class Container>
  const auto& one_of(const Container& container) {
    return *(std::begin(container) + static_cast<std::ptrdiff_t>(below(std::size(container))));
  }

  std::mt19937 random_;
  std::vector<std::string> words_;
  /// Every text is a template with places for fields, which some checks ask for: once half of the
  /// attempts have failed.
  bool texts_have_places_ = false;
  std::map<std::string, std::string> classes_;
};

}  // namespace phalanx::config
