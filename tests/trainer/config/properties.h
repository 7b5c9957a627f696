// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/config/random_config.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/node.h"

/// What holds for every valid config of every declaration, as GoogleTest expectations.
namespace phalanx::config {

/// A resolved config from a file's text. Throws UserError with all mistakes.
Node resolve_text(const Declaration& declaration, const std::string& yaml);

/// A resolved config from a tree as a user writes it, by way of a file's text.
Node resolve_written(const Declaration& declaration, const Node& written);

/// `${` that was escaped in the written tree is literal in the resolved one.
void expect_texts_as_written(const Declaration& declaration, const Node& written);

/// What print writes, with origins or without, reads back to the same values and prints the same.
void expect_print_reads_back(const Declaration& declaration, const Node& resolved);

/// What minimal says reads back to the same values, and each value of it is needed.
void expect_minimal_suffices(const Declaration& declaration, const Node& resolved);

/// to_json writes JSON with the same values of the same types.
void expect_json_holds_the_same(const Node& resolved);

/// Merging three layers, of which none holds a null, gives the same in either grouping.
void expect_merging_is_associative(RandomConfig& random, const Declaration& declaration);

/// Help, schema, reference page and explain tell of every declared field of every class, and of
/// nothing else. `name` is the trainer's.
void expect_told_everywhere(const std::string& name, const Declaration& declaration);

/// The written values scattered over a file, one that it includes, a second file and overrides,
/// some of them over others: each value's origin is the place where it was written last, and the
/// comment that print puts beside it says so.
void expect_origins(RandomConfig& random, const Declaration& declaration, const Node& written);

}  // namespace phalanx::config
