// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/token_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/data/text/tokens_json.h"
#include "trainer/io/file.h"
#include "trainer/io/file_lock.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Of the tokens in the cache: another number where the same texts would give others.
constexpr int kVersion = 1;
constexpr std::chrono::milliseconds kPollPause{50};

class Hash {
 public:
  Hash() { XXH3_128bits_reset(state_.get()); }

  void add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  // With its length, so that two texts are not the same as one.
  void add(std::string_view text) {
    const uint64_t size = text.size();
    add(std::as_bytes(std::span(&size, 1)));
    add(std::as_bytes(std::span(text)));
  }

  std::string text() const {
    const XXH128_hash_t digest = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

std::string hash_of_file(const fs::path& path) {
  constexpr uint64_t kAtOnce = uint64_t{1} << 20;
  const File file(path, O_RDONLY);
  const uint64_t size = file.size();
  std::vector<std::byte> part(std::min(size, kAtOnce));
  Hash hash;
  for (uint64_t place = 0; place < size; place += kAtOnce) {
    const auto count = std::min(kAtOnce, size - place);
    file.read(std::span(part).first(count), place);
    hash.add(std::span<const std::byte>(part).first(count));
  }
  return hash.text();
}

// Reads a file anew only where it has changed since its hash was noted.
std::string content_of(const fs::path& notes, const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw IoError("look at", path, errno);
  Hash identity;
  identity.add(fs::absolute(path).string());
  identity.add(fmt::format("{} {} {}.{}", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                           status.st_mtim.tv_nsec));
  const fs::path note = notes / identity.text();
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
  Hash hash;
  hash.add(fmt::format("{} {} {} {}", kVersion, static_cast<int>(options.unit),
                       static_cast<int>(options.format), options.file_tokens));
  hash.add(options.field);
  hash.add(tokenizer.format);
  for (const auto& [name, content] : tokenizer.files) {
    hash.add(name);
    hash.add(content);
  }
  for (const fs::path& file : options.files) {
    hash.add(is_json_lines(file) ? "lines" : "plain");
    hash.add(content_of(cache / "contents", file));
  }
  return hash.text();
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
