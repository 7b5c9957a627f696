// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace phalanx {

class Tokenizer;

/// How a task reads and writes texts.
struct TaskText {
  std::shared_ptr<const Tokenizer> tokenizer;  ///< None: it knows tokens alone.
  std::optional<int64_t> end_of_text;          ///< The token that ends a text; none has none.
};

}  // namespace phalanx
