// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/tree/schema.h"
#include "trainer/data/source_files.h"
#include "trainer/data/token_source.h"
#include "trainer/data/tokens_of_files.h"

namespace phalanx {
namespace {

/// Any files, each byte a token.
class Bytes : public TokenSource {
 public:
  struct Config {
    std::vector<std::filesystem::path> files;

    static void describe(config::Schema<Config>& s) {
      s.field("files", &Config::files, "files, folders (with all files below them), glob patterns")
          .mandatory()
          .resume_may_change();
    }
  };

  explicit Bytes(Config config) : config_(std::move(config)) {}

  std::shared_ptr<const TokenSet> open(const std::string& field) const override {
    return open_files(field + ".files", config_.files,
                      [](const DataFile&) { return TokenLayout(); });
  }

 private:
  Config config_;
};

REGISTER_TOKEN_SOURCE("bytes", Bytes);

}  // namespace
}  // namespace phalanx
