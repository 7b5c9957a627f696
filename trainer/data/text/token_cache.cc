// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/token_cache.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <thread>

#include "trainer/base/user_error.h"
#include "trainer/base/xxh3.h"
#include "trainer/data/text/text_contents.h"
#include "trainer/data/text/tokens_json.h"
#include "trainer/io/file.h"
#include "trainer/io/file_lock.h"
#include "trainer/tokenizers/repeated_merges.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Changes when the same texts would give other tokens than those in the cache.
constexpr int kVersion = 1;
constexpr std::chrono::milliseconds kPollPause{50};

// With its length, so that two texts are not the same as one.
void add_text(Xxh3& hash, std::string_view text) {
  const uint64_t size = text.size();
  hash.add(std::as_bytes(std::span(&size, 1)));
  hash.add(text);
}

// Whether the cache has these tokens, and all of them: somebody may have removed some.
bool is_whole(const fs::path& folder) {
  if (!fs::exists(folder)) return false;
  try {
    return has_all_training_tokens(folder);
  } catch (const std::exception&) {
    return false;
  }
}

const char* name_of(TextForm form) {
  switch (form) {
    case TextForm::json_lines:
      return "lines";
    case TextForm::json_array:
      return "array";
    case TextForm::plain:
      break;
  }
  return "plain";
}

// The name of the folder with the tokens.
struct Key {
  std::string now;
  // That of the same texts and tokenizer in a version that made other tokens of them.
  std::optional<std::string> before;
};

Key key_of(const fs::path& cache, const LoadedTokenizer& tokenizer,
           const TokenizeOptions& options) {
  Xxh3 hash;
  add_text(hash, fmt::format("{} {} {} {}", kVersion, static_cast<int>(options.unit),
                             static_cast<int>(options.format), options.file_tokens));
  add_text(hash, options.field);
  add_text(hash, tokenizer.format);
  for (const auto& [name, content] : tokenizer.files) {
    add_text(hash, name);
    add_text(hash, content);
  }
  // The same tokens, but those of what is no text are only for who allows it.
  if (options.any_bytes.are_allowed) add_text(hash, "any bytes");
  const auto look = [&options](const FileList& unread) {
    require_texts(unread, Packed::unpacked, options.any_bytes);
  };
  for (const TextContent& content : contents_of(cache / "contents", options.files, look)) {
    add_text(hash, name_of(content.form));
    add_text(hash, content.digits());
  }
  Key key{.now = hash.digits128(), .before = std::nullopt};
  if (repeats_merges(*tokenizer.tokenizer)) {
    key.before = key.now;
    add_text(hash, "the last merge of a pair");
    key.now = hash.digits128();
  }
  return key;
}

// One process makes the tokens, and the others wait for it.
void wait_for_lock(File& lock) {
  try {
    while (!lock.try_lock()) std::this_thread::sleep_for(kPollPause);
  } catch (const IoError& error) {
    if (!lacks_locks(error)) throw;
    throw UserError(
        fmt::format("{}: several processes would make the same tokens at once; let the field cache "
                    "name a folder on another file system, or make them beforehand with `trainer "
                    "tokenize`",
                    error.what()));
  }
}

}  // namespace

fs::path cached_tokens(const fs::path& cache, const LoadedTokenizer& tokenizer,
                       TokenizeOptions options, const ShowProgress& show) {
  options.earlier = EarlierWork::go_on_or_discard;
  // A new folder is not made for what is refused.
  if (!fs::exists(cache)) require_texts(options.files, Packed::unpacked, options.any_bytes);
  create_folders(cache);
  const Key key = key_of(cache, tokenizer, options);
  const fs::path folder = cache / key.now;
  if (is_whole(folder)) return folder;
  if (key.before && fs::exists(cache / *key.before)) {
    options.say(fmt::format(
        "note: the tokens in '{}' are made anew: an earlier version made them, and of two merges "
        "of one pair took the first, not the last",
        (cache / *key.before).string()));
  }
  File lock(fs::path(folder) += ".lock", O_RDWR | O_CREAT);
  wait_for_lock(lock);
  if (is_whole(folder)) return folder;
  remove_path(folder);
  ByteProgress progress;
  show(progress, [&] {
    const TokenizeSummary summary = tokenize(tokenizer, options, folder, progress);
    if (summary.plain_json_files > 0) options.say(about_plain_json(summary.plain_json_files));
  });
  if (key_of(cache, tokenizer, options).now == key.now) return folder;
  remove_path(folder);
  throw UserError("a text changed before it was read: start again once nothing writes to it");
}

}  // namespace phalanx
