// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/attachments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/sha256.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// An export has these beside the attachments, and a user may copy these beside a checkpoint's.
bool is_own_file(std::string_view name) {
  constexpr std::array<std::string_view, 3> kOwn{"config.json", kManifestFile, kSha256File};
  return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end() ||
         name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

// Without what SHA256SUMS would have to escape, and without hidden files.
bool is_attachable_name(std::string_view name) {
  const auto is_unprintable = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\\';
  };
  return is_plain_file_name(name) && !name.starts_with('.') &&
         std::none_of(name.begin(), name.end(), is_unprintable);
}

fs::path folder_of(const Checkpoint& checkpoint) { return checkpoint.path / kAttachmentsFolder; }

File open_attachment(const Checkpoint& checkpoint, const std::string& name,
                     const ManifestFile& file) {
  const fs::path folder = folder_of(checkpoint);
  std::error_code unknown;  // Opening a file in it says more.
  if (fs::is_symlink(folder, unknown)) {
    throw CheckpointError(
        fmt::format("'{}' is a symbolic link, not a checkpoint's folder", folder.string()));
  }
  return open_checked(folder / name, file);
}

std::string read(const Checkpoint& checkpoint, const std::string& name, const ManifestFile& file) {
  try {
    const File opened = open_attachment(checkpoint, name, file);
    std::string content(file.size, '\0');
    opened.read(std::as_writable_bytes(std::span(content)), 0);
    return content;
  } catch (const std::exception& error) {
    throw CheckpointError(
        fmt::format("{}: put the file back from a copy, or take another checkpoint", error.what()));
  }
}

bool is_same(const ManifestFile& file, const Attachment& attachment) {
  return file.size == attachment.content.size() &&
         file.head_checksum == checksum_of(attachment.content);
}

}  // namespace

void require_attachable(std::span<const Attachment> attachments) {
  std::set<std::string_view> names;
  for (const auto& [name, content] : attachments) {
    if (!is_attachable_name(name)) {
      throw UserError(
          fmt::format("a checkpoint cannot carry a file named '{}': name it without "
                      "'/', '\\' and control characters, and without '.' in front",
                      name));
    }
    if (is_own_file(name)) {
      throw UserError(fmt::format(
          "a checkpoint cannot carry a file named '{}', which it or an export writes: rename it",
          name));
    }
    if (!names.insert(name).second) {
      throw UserError(fmt::format("a checkpoint cannot carry two files named '{}'", name));
    }
    if (content.size() > kLargestAttachment) {
      throw UserError(fmt::format("a checkpoint cannot carry '{}': it has {} bytes, more than {}",
                                  name, content.size(), kLargestAttachment));
    }
  }
}

std::map<std::string, ManifestFile> write_attachments(const fs::path& checkpoint,
                                                      std::span<const Attachment> attachments) {
  std::map<std::string, ManifestFile> written;
  if (attachments.empty()) return written;
  const fs::path folder = checkpoint / kAttachmentsFolder;
  create_folders(folder);
  for (const auto& [name, content] : attachments) {
    written[name] = write_text(folder / name, content);
  }
  sync_folder(folder);
  return written;
}

void require_attachments(const Checkpoint& checkpoint) {
  for (const auto& [name, file] : checkpoint.manifest.attachments) {
    open_attachment(checkpoint, name, file);
  }
}

Attachments read_attachments(const Checkpoint& checkpoint) {
  Attachments attachments;
  for (const auto& [name, file] : checkpoint.manifest.attachments) {
    attachments.push_back({.name = name, .content = read(checkpoint, name, file)});
  }
  return attachments;
}

void require_same_attachments(const Checkpoint& checkpoint, std::span<const Attachment> attachments,
                              const std::set<std::string>& not_needed) {
  const auto& carried = checkpoint.manifest.attachments;
  const auto is_needed = [&](const auto& file) { return !not_needed.contains(file.first); };
  if (std::none_of(carried.begin(), carried.end(), is_needed)) return;
  std::vector<std::string> differing;
  std::set<std::string_view> given;
  for (const Attachment& attachment : attachments) {
    given.insert(attachment.name);
    const auto there = carried.find(attachment.name);
    if (there == carried.end()) {
      differing.push_back(fmt::format("'{}' is not in it", attachment.name));
    } else if (!is_same(there->second, attachment)) {
      differing.push_back(fmt::format("'{}' is another file there", attachment.name));
    }
  }
  for (const auto& [name, file] : carried) {
    if (given.contains(name) || not_needed.contains(name)) continue;
    differing.push_back(fmt::format("'{}' is missing here", name));
  }
  if (differing.empty()) return;
  throw UserError(fmt::format(
      "the files of this run's task (its tokenizer) are not those that the checkpoint "
      "'{}' carries:\n  {}\ngive back those in '{}', or start a new run without exp_dir",
      checkpoint.path.string(), fmt::join(differing, "\n  "), folder_of(checkpoint).string()));
}

}  // namespace phalanx
