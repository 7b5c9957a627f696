// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/token_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/base/xxh3.h"
#include "trainer/data/text/tokens_json.h"
#include "trainer/io/file.h"
#include "trainer/io/file_lock.h"

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

std::string hash_of_file(const fs::path& path) {
  constexpr uint64_t kAtOnce = uint64_t{1} << 20;
  const File file(path, O_RDONLY);
  const uint64_t size = file.size();
  std::vector<std::byte> part(std::min(size, kAtOnce));
  Xxh3 hash;
  for (uint64_t offset = 0; offset < size; offset += kAtOnce) {
    const auto count = std::min(kAtOnce, size - offset);
    file.read(std::span(part).first(count), offset);
    hash.add(std::span<const std::byte>(part).first(count));
  }
  return hash.digits128();
}

// Reads a file anew only where it has changed since its hash was noted.
std::string content_of(const fs::path& notes, const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw IoError("look at", path, errno);
  Xxh3 identity;
  add_text(identity, fs::absolute(path).string());
  add_text(identity, fmt::format("{} {} {}.{}", status.st_ino, status.st_size,
                                 status.st_mtim.tv_sec, status.st_mtim.tv_nsec));
  const fs::path note = notes / identity.digits128();
  if (fs::exists(note)) return read_text(note);
  const std::string hash = hash_of_file(path);
  try {
    create_folders(notes);
    replace_file(note, hash);
  } catch (const IoError&) {
    // A note saves time, no more: a cache that nobody may write to can be read.
  }
  return hash;
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

std::string key_of(const fs::path& cache, const LoadedTokenizer& tokenizer,
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
  for (const fs::path& file : options.files) {
    add_text(hash, is_json_lines(file) ? "lines" : "plain");
    add_text(hash, content_of(cache / "contents", file));
  }
  return hash.digits128();
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
                       const TokenizeOptions& options, const ShowProgress& show) {
  create_folders(cache);
  const fs::path folder = cache / key_of(cache, tokenizer, options);
  if (is_whole(folder)) return folder;
  File lock(fs::path(folder) += ".lock", O_RDWR | O_CREAT);
  wait_for_lock(lock);
  if (is_whole(folder)) return folder;
  remove_path(folder);
  ByteProgress progress;
  show(progress, [&] { tokenize(tokenizer, options, folder, progress); });
  if (cache / key_of(cache, tokenizer, options) == folder) return folder;
  remove_path(folder);
  throw UserError("a text changed before it was read: start again once nothing writes to it");
}

}  // namespace phalanx
