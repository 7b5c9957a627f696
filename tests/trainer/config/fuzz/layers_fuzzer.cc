// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"
#include "tests/trainer/config/fuzz/input.h"
#include "tests/trainer/config/fuzz/invariants.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/compose.h"
#include "trainer/config/tree/diagnostics.h"

using namespace phalanx;
using namespace phalanx::config;

namespace {

/// The files that an input's texts are written to; `all` includes those of the command line.
constexpr std::array kNames = {"a", "b", "c", "d/a", "d/b", "d/c"};

class Folder {
 public:
  Folder() { std::filesystem::create_directory(folder_ / "d"); }

  /// Writes the files of one input and removes those of the input before.
  void fill(std::span<const std::string> texts) {
    std::size_t i = 0;
    for (; i < texts.size(); ++i) spill(folder_ / kNames[i], texts[i]);
    for (; i < written_; ++i) std::filesystem::remove(folder_ / kNames[i]);
    written_ = texts.size();
    spill(folder_ / "all", "include: [a, b]");
  }
  std::filesystem::path operator/(std::string_view name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
  std::size_t written_ = 0;
};

Node read(std::vector<std::filesystem::path> files, Diagnostics& diagnostics) {
  Node tree = read_files(files, diagnostics);
  fuzz::require_sound_tree(tree);
  return tree;
}

}  // namespace

/// The input is files, with zero bytes between: `a` and `b`, which the command line names, and more
/// that they may include. Named or included, the two must come to the same.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::set_environment();
  static Folder folder;
  const std::vector<std::string> texts = fuzz::parts_of(data, size);
  folder.fill(std::span(texts).first(std::min(texts.size(), kNames.size())));
  Diagnostics diagnostics, included;
  try {
    const Node tree = read({folder / "a", folder / "b"}, diagnostics);
    if (diagnostics.empty()) {
      const Node same = read({folder / "all"}, included);
      fuzz::require(!included.empty() || same_value(tree, same),
                    "files that are included merge otherwise than those that are named");
    }
    fuzz::require_resolves_or_explains(tree, diagnostics);
  } catch (const UserError&) {
    fuzz::require_clear(diagnostics);
    fuzz::require_clear(included);
  }
  return 0;
}
