// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/text_contents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "trainer/base/xxh3.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Digest = std::array<std::byte, 16>;
using LookAtUnread = std::function<void(const FileList& unread)>;

// A file as a list's note has it.
struct Entry {
  Digest identity;
  Digest hash;
  uint64_t form;
};
static_assert(sizeof(Entry) == 40);  // As it is written.

constexpr std::string_view kMagic = "phalanx contents 1\n";
constexpr const char* kLists = "lists";
constexpr uint64_t kUnknownForm = ~uint64_t{0};     // Until a file is looked at; in no note.
constexpr uint64_t kMostKnown = uint64_t{1} << 28;  // Bytes of notes that are looked at.

// The digest in 32 hexadecimal digits; nothing for another text.
std::optional<Digest> digest_of(std::string_view digits) {
  Digest digest;
  if (digits.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    uint8_t byte = 0;
    const char* const begin = digits.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, byte, 16);
    if (error != std::errc() || end != begin + 2) return std::nullopt;
    digest[i] = std::byte{byte};
  }
  return digest;
}

// With its length, so that two texts are not the same as one.
void add_text(Xxh3& hash, std::string_view text) {
  const uint64_t size = text.size();
  hash.add(std::as_bytes(std::span(&size, 1)));
  hash.add(text);
}

Digest identity_of_file(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw IoError("look at", path, errno);
  Xxh3 identity;
  add_text(identity, fs::absolute(path).native());
  add_text(identity, fmt::format("{} {} {}.{}", status.st_ino, status.st_size,
                                 status.st_mtim.tv_sec, status.st_mtim.tv_nsec));
  return digest_of(identity.digits128()).value();
}

Digest hash_of_file(const fs::path& path) {
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
  return digest_of(hash.digits128()).value();
}

// A note is no more than a help: one that is broken or cannot be read is none.
std::vector<Entry> read_note(const fs::path& note) {
  try {
    const std::string text = read_text(note);
    std::string_view entries = text;
    if (!entries.starts_with(kMagic)) return {};
    entries.remove_prefix(kMagic.size());
    const size_t rest = entries.size() % sizeof(Entry);  // A hash of what stands before it.
    if (entries.substr(entries.size() - rest) !=
        xxh3_digits64(std::string_view(text).substr(0, text.size() - rest))) {
      return {};
    }
    entries.remove_suffix(rest);
    std::vector<Entry> read(entries.size() / sizeof(Entry));
    if (!read.empty()) std::memcpy(read.data(), entries.data(), entries.size());
    const bool is_sound = std::all_of(read.begin(), read.end(), [](const Entry& entry) {
      return entry.form <= static_cast<uint64_t>(TextForm::json_array);
    });
    return is_sound ? read : std::vector<Entry>();
  } catch (const IoError&) {
    return {};
  }
}

void write_note(const fs::path& note, const std::vector<Entry>& entries) {
  std::string text(kMagic);
  text.append(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(Entry));
  text += xxh3_digits64(text);
  try {
    create_folders(note.parent_path());
    replace_file(note, text);
  } catch (const IoError&) {
    // A note saves time, no more: a cache that nobody may write to can be read.
  }
}

bool comes_before(const Entry& a, const Entry& b) { return a.identity < b.identity; }

// What other lists say of files, in the order of their identities.
std::vector<Entry> known_entries(const fs::path& lists) {
  std::vector<Entry> known;
  std::error_code error;
  for (auto note = fs::directory_iterator(lists, error); !error && note != fs::directory_iterator();
       note.increment(error)) {
    std::error_code gone;
    if (known.size() * sizeof(Entry) + note->file_size(gone) > kMostKnown) continue;
    const std::vector<Entry> entries = read_note(note->path());
    known.insert(known.end(), entries.begin(), entries.end());
  }
  std::sort(known.begin(), known.end(), comes_before);
  return known;
}

std::string hexadecimal(const Digest& digest) {
  std::string digits;
  for (const std::byte byte : digest) digits += fmt::format("{:02x}", static_cast<int>(byte));
  return digits;
}

// What a version before this one has noted of a file, in a note of its own.
std::optional<Digest> hash_of_own_note(const fs::path& folder, const Digest& identity) {
  const fs::path note = folder / hexadecimal(identity);
  std::error_code error;
  if (!fs::exists(note, error)) return std::nullopt;
  try {
    return digest_of(read_text(note));
  } catch (const IoError&) {
    return std::nullopt;
  }
}

// Fills in what is known of the files, and reads the others.
void find_contents(const fs::path& folder, const FileList& files, const LookAtUnread& look,
                   std::vector<Entry>& entries) {
  const std::vector<Entry> known = known_entries(folder / kLists);
  std::error_code error;
  const bool has_own_notes = fs::exists(folder, error);
  std::vector<bool> is_unread(files.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    const auto found = std::lower_bound(known.begin(), known.end(), entry, comes_before);
    if (found != known.end() && found->identity == entry.identity) {
      entry = *found;
      continue;
    }
    std::optional<Digest> hash;
    if (has_own_notes) hash = hash_of_own_note(folder, entry.identity);
    is_unread[i] = !hash;
    if (hash) entry.hash = *hash;
    entry.form = kUnknownForm;
  }
  FileList unread = files;
  unread.keep_if(is_unread);
  look(unread);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (is_unread[i]) entries[i].hash = hash_of_file(files[i]);
    if (entries[i].form != kUnknownForm) continue;
    entries[i].form = static_cast<uint64_t>(form_of(files[i]));
  }
}

}  // namespace

std::string TextContent::digits() const { return hexadecimal(hash); }

std::vector<TextContent> contents_of(const fs::path& folder, const FileList& files,
                                     const LookAtUnread& look) {
  std::vector<Entry> entries(files.size());
  Xxh3 all;
  for (size_t i = 0; i < files.size(); ++i) {
    entries[i].identity = identity_of_file(files[i]);
    all.add(entries[i].identity);
  }
  const fs::path note = folder / kLists / all.digits128();
  std::vector<Entry> noted = read_note(note);
  const bool is_noted =
      std::equal(noted.begin(), noted.end(), entries.begin(), entries.end(),
                 [](const Entry& a, const Entry& b) { return a.identity == b.identity; });
  if (is_noted) {
    entries = std::move(noted);
  } else {
    find_contents(folder, files, look, entries);
    write_note(note, entries);
  }
  std::vector<TextContent> contents;
  contents.reserve(entries.size());
  for (const Entry& entry : entries) {
    contents.push_back({.hash = entry.hash, .form = static_cast<TextForm>(entry.form)});
  }
  return contents;
}

}  // namespace phalanx
