// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/concatenated_tokens.h"
#include "trainer/data/megatron_tokens.h"
#include "trainer/data/source_files.h"
#include "trainer/data/token_source.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// Megatron's indexed sets.
class Megatron : public TokenSource {
 public:
  struct Config {
    std::vector<fs::path> files;

    static void describe(config::Schema<Config>& s) {
      s.field(
           "files", &Config::files,
           "sets, each by its .idx or .bin file or by their common prefix; folders (with all sets "
           "below them), glob patterns")
          .mandatory()
          .resume_may_change();
    }
  };

  explicit Megatron(Config config) : config_(std::move(config)) {}

  std::shared_ptr<const TokenSet> open(const std::string& field) const override {
    std::vector<std::shared_ptr<const TokenSet>> parts;
    for (const fs::path& prefix : prefixes(field)) {
      parts.push_back(std::make_shared<MegatronTokens>(field + ".files", prefix));
    }
    return std::make_shared<ConcatenatedTokens>(std::move(parts));
  }

 private:
  // Those of the sets, each once, though two files may have named it.
  std::vector<fs::path> prefixes(const std::string& field) const {
    std::vector<fs::path> found;
    for (const fs::path& path : config_.files) {
      const bool is_prefix = !fs::exists(path) && fs::exists(fs::path(path) += ".idx");
      const FileList files =
          is_prefix ? FileList{fs::path(path) += ".idx"} : files_of(field + ".files", {path});
      for (fs::path file : files) {
        if (file.extension() != ".idx" && file.extension() != ".bin") continue;
        file.replace_extension();
        if (std::find(found.begin(), found.end(), file) == found.end()) found.push_back(file);
      }
    }
    if (found.empty()) {
      throw UserError(field + ".files names no file that ends with .idx or .bin");
    }
    return found;
  }

  Config config_;
};

REGISTER_TOKEN_SOURCE("megatron", Megatron);

}  // namespace
}  // namespace phalanx
