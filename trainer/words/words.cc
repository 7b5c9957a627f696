// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "trainer/base/joined.h"
#include "trainer/words/peers.h"

namespace phalanx::words {
namespace {

constexpr const Peer* kPeers[] = {&kPlainDdp,   &kFsdp1,     &kFsdp2,
                                  &kTorchTnt,   &kLightning, &kTransformers,
                                  &kTorchTitan, &kTorchTune, &kMl};

/// Whether a word is the end of a path.
bool ends(std::string_view path, std::string_view word) {
  if (!path.ends_with(word)) return false;
  return path.size() == word.size() || path[path.size() - word.size() - 1] == '.';
}

/// Whether a name of a model, a task or adapters is likely its own, whoever else has the word:
/// `model.dim`, `lora.rank`.
bool is_of_its_class(std::string_view path, std::string_view word) {
  constexpr std::array<std::string_view, 3> kClasses{"model.", "task.", "lora."};
  const bool is_of_a_class = std::ranges::any_of(
      kClasses, [&](std::string_view section) { return path.starts_with(section); });
  return is_of_a_class && word.find_first_of("._") == std::string_view::npos;
}

/// One meaning of a word, and who means it.
struct Meaning {
  const Word* word;
  std::vector<std::string_view> peers;
};

std::vector<Meaning> meanings_of(std::string_view path) {
  std::vector<Meaning> found;
  std::size_t longest = 0;
  const auto take = [&](const Word& word, const Peer& peer) {
    if (word.there.size() < longest || !ends(path, word.there)) return;
    if (is_of_its_class(path, word.there)) return;
    if (word.there.size() > longest) found.clear();
    longest = word.there.size();
    const auto same = std::ranges::find_if(found, [&](const Meaning& known) {
      return known.word->here == word.here && known.word->note == word.note;
    });
    if (same == found.end()) {
      found.push_back({&word, {peer.name}});
    } else if (same->peers.back() != peer.name) {
      same->peers.push_back(peer.name);
    }
  };
  for (const Peer* peer : kPeers) {
    for (const Chapter& chapter : peer->chapters) {
      for (const Word& word : chapter.words) take(word, *peer);
    }
  }
  return found;
}

std::string text_of(const Meaning& meaning) {
  const auto& [there, here, note] = *meaning.word;
  std::string text = std::string(there) + " (" + joined(meaning.peers) + ") ";
  if (here.empty()) return text + "has no field here: " + std::string(note);
  text += "is here: " + std::string(here);
  return note.empty() ? text : text + " (" + std::string(note) + ")";
}

// "a.b, c.d"
void add_fields(std::string_view here, std::vector<std::string>& fields) {
  constexpr std::string_view kBetween = ", ";
  while (!here.empty()) {
    const std::size_t end = std::min(here.find(kBetween), here.size());
    fields.emplace_back(here.substr(0, end));
    here.remove_prefix(std::min(end + kBetween.size(), here.size()));
  }
}

}  // namespace

std::span<const Peer* const> peers() { return kPeers; }

Explanation look_up(std::string_view path) {
  const std::vector<Meaning> meanings = meanings_of(path);
  Explanation found{.text = joined(meanings, "; ", text_of), .fields = {}};
  for (const auto& [word, peers] : meanings) {
    found.is_of_place |= word->there.find('.') != std::string_view::npos;
    add_fields(word->here, found.fields);
  }
  return found;
}

std::string explain(std::string_view path) { return look_up(path).text; }

}  // namespace phalanx::words
