// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/source_files.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/token_source.h"
#include "trainer/data/tokens_of_files.h"

namespace phalanx {
namespace {

// That a file of llm.c begins with.
constexpr int32_t kOldestLlmc = 20240520;
constexpr int32_t kNewestLlmc = 20240801;

/// nanoGPT's token files: nothing but tokens, each document before an end-of-text token
/// (data/openwebtext/prepare.py).
class NanoGpt : public TokenSource {
 public:
  struct Config {
    std::vector<std::filesystem::path> files;
    TokenType dtype = TokenType::uint16;
    std::optional<int64_t> end_of_text = 50256;

    static void describe(config::Schema<Config>& s) {
      s.field("files", &Config::files, "files, folders (with all files below them), glob patterns")
          .mandatory()
          .resume_may_change();
      s.field("dtype", &Config::dtype, "how a token is stored")
          .choices({{"uint16", TokenType::uint16}, {"uint32", TokenType::uint32}});
      s.field("end_of_text", &Config::end_of_text,
              "the token that each document ends with; null: a file is one document")
          .at_least(0);
    }
  };

  explicit NanoGpt(Config config) : config_(std::move(config)) {}

  std::shared_ptr<const TokenSet> open(const std::string& field) const override {
    return open_files(field + ".files", config_.files,
                      [&](const DataFile& file) { return layout_of(field, file); });
  }

 private:
  TokenLayout layout_of(const std::string& field, const DataFile& file) const {
    const auto fail = [&](const std::string& problem) {
      throw UserError(fmt::format("{}.files: '{}' {}", field, file.path().string(), problem));
    };
    const int64_t token_bytes = bytes_of(config_.dtype);
    const auto size = static_cast<int64_t>(file.size());
    if (size == 0) fail("is empty: get the file again, or leave it out");
    if (size % token_bytes != 0) {
      fail(
          fmt::format("has {} bytes, no multiple of the {} of a token: it is cut off, or holds no "
                      "tokens: get the file again",
                      size, token_bytes));
    }
    std::array<unsigned char, sizeof(int32_t)> begin{};
    file.read(0, std::span(begin).first(std::min<size_t>(begin.size(), file.size())));
    const auto first = std::bit_cast<int32_t>(begin);
    if (first == kOldestLlmc || first == kNewestLlmc) {
      fail("has the header of llm.c: name this source 'llmc'");
    }
    TokenLayout layout{.type = config_.dtype};
    if (config_.end_of_text) layout.ends = DocumentEnds{.end_of_text = *config_.end_of_text};
    return layout;
  }

  Config config_;
};

REGISTER_TOKEN_SOURCE("nanogpt", NanoGpt);

}  // namespace
}  // namespace phalanx
