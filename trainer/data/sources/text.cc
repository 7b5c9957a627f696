// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/cache_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/source_files.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/text/token_cache.h"
#include "trainer/data/token_source.h"
#include "trainer/data/tokens_of_files.h"
#include "trainer/host/cores.h"
#include "trainer/io/file.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_line.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// Texts, whose tokens are made before the first step, and kept in the cache.
class Text : public TokenSource {
 public:
  struct Config {
    std::vector<fs::path> files;
    fs::path tokenizer;
    DocumentUnit document = DocumentUnit::file;
    std::string field = "text";
    bool any_bytes = false;
    std::optional<fs::path> cache;

    static void describe(config::Schema<Config>& s) {
      s.field("files", &Config::files,
              "plain text, JSONL (.jsonl) or an array of objects (.json), also packed (.gz, .zst): "
              "files, folders (with all files below them), glob patterns")
          .mandatory()
          .resume_may_change();
      s.field("tokenizer", &Config::tokenizer,
              "a tokenizer's folder or one of its files, or bytes (docs/data.md)")
          .mandatory()
          .resume_may_change();
      s.field("document", &Config::document, "what a document is in plain text")
          .choices({{"file", DocumentUnit::file},
                    {"line", DocumentUnit::line},
                    {"paragraph", DocumentUnit::paragraph}});
      s.field("field", &Config::field, "of JSON objects, the one with the text");
      s.field(
           "any_bytes", &Config::any_bytes,
           "whether files that are no text (Parquet, weights, another encoding, docs/data.md) are "
           "read as they are, and not refused")
          .resume_may_change();
      s.field("cache", &Config::cache,
              "the folder that keeps the tokens; null: ~/.cache/phalanx/tokens, or below "
              "XDG_CACHE_HOME")
          .resume_may_change();
    }
  };

  explicit Text(Config config) : config_(std::move(config)) {}

  std::shared_ptr<const TokenSet> open(const std::string& field) const override {
    const LoadedTokenizer tokenizer = load_tokenizer(field + ".tokenizer", config_.tokenizer);
    const TokenizeOptions options{
        .files = files_of(field + ".files", config_.files),
        .unit = config_.document,
        .field = config_.field,
        .format = TokenFileFormat::nanogpt,
        .threads = usable_hardware_threads(),
        .any_bytes = {.are_allowed = config_.any_bytes, .allowed_by = field + ".any_bytes=true"},
        .say = [](const std::string& line) { Console(STDERR_FILENO).line(line); }};
    const fs::path folder = tokens_of(field, tokenizer, options);
    const bool is_small = tokenizer.tokenizer->vocabulary_size() <= 1 << 16;
    TokenLayout layout{.type = is_small ? TokenType::uint16 : TokenType::uint32};
    if (const auto end = tokenizer.tokenizer->end_of_text()) {
      layout.ends = DocumentEnds{.end_of_text = *end};
    }
    return open_files(field, {folder / "train_*.bin"}, [&](const DataFile&) { return layout; });
  }

  std::optional<LoadedTokenizer> tokenizer(const std::string& field) const override {
    return load_tokenizer(field + ".tokenizer", config_.tokenizer);
  }

 private:
  fs::path tokens_of(const std::string& field, const LoadedTokenizer& tokenizer,
                     const TokenizeOptions& options) const {
    std::optional<fs::path> cache = config_.cache;
    if (!cache && cache_folder()) cache = *cache_folder() / "tokens";
    if (!cache) {
      throw UserError(field +
                      ".cache: the environment names no cache folder (HOME is not set): name "
                      "a folder for the tokens");
    }
    const auto show = [](const ByteProgress& progress, const std::function<void()>& work) {
      Console console(STDERR_FILENO);
      with_progress(console, "tokenizing", progress, work);
    };
    try {
      return cached_tokens(*cache, tokenizer, options, show);
    } catch (const UserError& e) {
      throw UserError(fmt::format("{}: {}", field, e.what()));
    } catch (const IoError& e) {
      if (e.error() != EROFS && e.error() != EACCES && e.error() != ENOTDIR) throw;
      throw UserError(
          fmt::format("{}: {}; {}.cache names the folder for tokens", field, e.what(), field));
    }
  }

  Config config_;
};

REGISTER_TOKEN_SOURCE("text", Text);

}  // namespace
}  // namespace phalanx
