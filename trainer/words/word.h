// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace phalanx::words {

/// A word of another trainer's configs or calls, and what it is called here.
struct Word {
  std::string_view there;  ///< A name, or a dotted path where the name alone means many things.
  std::string_view here;   ///< Dotted paths of fields, with ", " between them; empty: none.
  std::string_view note;   ///< How the meaning differs; without a field: why there is none.
};

/// Words that belong together: those of a class, or of a section.
struct Chapter {
  std::string_view title;
  std::span<const Word> words;
};

/// Another trainer.
struct Peer {
  std::string_view name;   ///< As messages call it.
  std::string_view title;  ///< As docs/coming_from.md calls it.
  std::span<const Chapter> chapters;
};

}  // namespace phalanx::words
