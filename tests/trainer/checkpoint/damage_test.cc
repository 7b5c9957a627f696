// SPDX-License-Identifier: Apache-2.0
// Whatever happens to a file of a checkpoint: it is found, told by name, and the older checkpoint
// is taken, whole.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "tests/trainer/checkpoint/saved_by_ranks.h"
#include "tests/trainer/io/without_privileges.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// So few bytes that every one of them can be damaged.
class Damage : public SavedByRanks {
 protected:
  static void SetUpTestSuite() { save(/*elements=*/77, {.file_bytes = 200}); }

  /// What is damaged is found when it is verified, named, and skipped by a run that goes on.
  void expect_found(const std::vector<std::string>& names) const {
    const auto is_named = [&](const std::string& text) {
      return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return text.find(name) != std::string::npos;
      });
    };
    EXPECT_TRUE(is_named(verdict())) << "verified: " << verdict();
    const Found found = load();
    EXPECT_EQ(found.step, 1);
    EXPECT_TRUE(found.is_right);
    ASSERT_EQ(found.warnings.size(), 1U);
    EXPECT_TRUE(is_named(found.warnings[0])) << found.warnings[0];
    EXPECT_THAT(found.warnings[0], HasSubstr("skipped step-00000002: "));
  }

  void expect_sound() const {
    EXPECT_EQ(verdict(), "");
    const Found found = load();
    EXPECT_EQ(found.step, kNewest);
    EXPECT_TRUE(found.is_right);
    EXPECT_THAT(found.warnings, IsEmpty());
  }
};

void flip(const fs::path& path, uint64_t place) {
  File file(path, O_RDWR);
  std::byte value{};
  file.read({&value, 1}, place);
  value ^= std::byte{1} << (place % 8);
  file.write_at({&value, 1}, place);
}

/// The tensor whose values stand at a byte of a file; nothing: it is none's.
std::optional<ManifestTensor> tensor_at(const Manifest& manifest, const std::string& file,
                                        uint64_t place) {
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestSlice& slice : tensor.slices) {
      const uint64_t bytes =
          static_cast<uint64_t>(slice.end - slice.begin) * c10::elementSize(tensor.dtype);
      if (slice.file == file && place >= slice.offset && place < slice.offset + bytes) {
        return tensor;
      }
    }
  }
  return std::nullopt;
}

TEST_F(Damage, TheExampleHasWhatCheckpointsHave) {
  expect_sound();
  const Manifest manifest = load_manifest(newest());
  EXPECT_TRUE(manifest.files.contains("model.safetensors.index.json"));
  std::set<std::string> names;
  std::size_t most_slices = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    most_slices = std::max(most_slices, tensor.slices.size());
    std::set<std::string> of_tensor;
    for (const ManifestSlice& slice : tensor.slices) of_tensor.insert(slice.file);
    if (of_tensor.size() > 1) names.insert(tensor.name);
  }
  EXPECT_EQ(most_slices, 4U);
  EXPECT_THAT(names, ElementsAre("cut.exp_avg"));  // no host has all of it
  EXPECT_GE(manifest.files.size(), 6U);
}

TEST_F(Damage, EveryByteOfEveryFileIsGuarded) {
  const Manifest manifest = load_manifest(newest());
  std::size_t bytes = 0;
  std::set<std::string> unread;
  for (const std::string& name : files()) {
    const fs::path path = newest() / name;
    for (uint64_t place = 0; place < fs::file_size(path); ++place, ++bytes) {
      SCOPED_TRACE(fmt::format("{} byte {}", name, place));
      flip(path, place);
      const auto tensor = tensor_at(manifest, name, place);
      if (tensor && tensor->part == kRngPart && !tensor->name.starts_with("rank_0.")) {
        // What no rank reads is not found by a run, and does not harm it.
        EXPECT_THAT(verdict(), AllOf(HasSubstr(name), HasSubstr(tensor->name)));
        EXPECT_TRUE(load().is_right);
        EXPECT_EQ(load().step, kNewest);
        unread.insert(tensor->name);
      } else {
        expect_found({name});
        if (tensor) {
          EXPECT_THAT(load().warnings, ElementsAre(HasSubstr('\'' + tensor->name + '\'')));
        }
      }
      flip(path, place);
      if (HasFailure()) return;
    }
  }
  EXPECT_THAT(unread, ElementsAre("rank_1.cpu", "rank_2.cpu", "rank_3.cpu"));
  expect_sound();
  std::cout << "each of " << bytes << " bytes was damaged\n";
}

// It has no checksum: what it names is looked into, and so is what came after that.
TEST_F(Damage, NothingInLatestLeadsAstray) {
  const fs::path latest = folder_ / kLatestFile;
  const std::string sound = slurp(latest);
  std::vector<std::string> texts{"", "\n", "step-", "step-00000009\n", std::string(100, 'x')};
  for (std::size_t place = 0; place < sound.size(); ++place) {
    texts.push_back(sound.substr(0, place));
    for (int bit = 0; bit < 8; ++bit) {
      texts.push_back(sound);
      texts.back()[place] = static_cast<char>(sound[place] ^ (1 << bit));
    }
  }
  for (const std::string& text : texts) {
    spill(latest, text);
    const Found found = load();
    EXPECT_EQ(found.step, kNewest) << text;
    EXPECT_TRUE(found.is_right) << text;
    if (HasFailure()) return;
  }
  fs::remove(latest);
  expect_sound();
}

TEST_F(Damage, EveryLengthButTheRightOneIsFound) {
  for (const std::string& name : files()) {
    const fs::path path = newest() / name;
    const std::string sound = slurp(path);
    for (std::size_t size = 0; size < sound.size(); size += 1 + size / 50) {
      SCOPED_TRACE(fmt::format("{} cut to {} bytes", name, size));
      spill(path, sound.substr(0, size));
      expect_found({name});
    }
    for (const std::size_t more : {1, 8, 4096}) {
      for (const char value : {'\0', ' ', 'x'}) {
        SCOPED_TRACE(fmt::format("{} and {} bytes more", name, more));
        spill(path, sound + std::string(more, value));
        expect_found({name});
      }
    }
    // As a file system may leave what was never written.
    spill(path, std::string(sound.size(), '\0'));
    expect_found({name});
    spill(path, sound);
    if (HasFailure()) return;
  }
  expect_sound();
}

TEST_F(Damage, FilesThatChangedPlacesAreFound) {
  const std::vector<std::string> names = files();
  const auto exchange = [](const fs::path& left, const fs::path& right) {
    const fs::path aside = left.parent_path() / "aside";
    fs::rename(left, aside);
    fs::rename(right, left);
    fs::rename(aside, right);
  };
  for (std::size_t left = 0; left < names.size(); ++left) {
    for (std::size_t right = left + 1; right < names.size(); ++right) {
      SCOPED_TRACE(names[left] + " and " + names[right]);
      exchange(newest() / names[left], newest() / names[right]);
      expect_found({names[left], names[right]});
      exchange(newest() / names[left], newest() / names[right]);
    }
  }
  expect_sound();
}

TEST_F(Damage, FilesOfAnotherStepAreFound) {
  std::size_t differing = 0;
  for (const std::string& name : files()) {
    SCOPED_TRACE(name);
    const std::string sound = slurp(newest() / name);
    if (slurp(older() / name) == sound) continue;  // the index names the same files
    ++differing;
    spill(newest() / name, slurp(older() / name));
    // Whose manifest it is shows by the step.
    expect_found({name == kManifestFile ? "step-00000002' holds the manifest of step 1" : name});
    spill(newest() / name, sound);
  }
  EXPECT_EQ(differing, files().size() - 1);
}

TEST_F(Damage, ValuesThatChangedPlacesAreFound) {
  const Manifest manifest = load_manifest(newest());
  struct Range {
    std::string file;
    std::string tensor;
    uint64_t offset;
    uint64_t bytes;
  };
  std::vector<Range> ranges;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.part == kRngPart) continue;
    for (const ManifestSlice& slice : tensor.slices) {
      const uint64_t size = c10::elementSize(tensor.dtype);
      ranges.push_back({.file = slice.file,
                        .tensor = tensor.name,
                        .offset = slice.offset,
                        .bytes = static_cast<uint64_t>(slice.end - slice.begin) * size});
    }
  }
  std::size_t pairs = 0;
  for (std::size_t left = 0; left < ranges.size(); ++left) {
    for (std::size_t right = left + 1; right < ranges.size(); ++right) {
      const auto exchange = [&] {
        const uint64_t bytes = std::min(ranges[left].bytes, ranges[right].bytes);
        std::vector<std::byte> a(bytes), b(bytes);
        File(newest() / ranges[left].file, O_RDONLY).read(a, ranges[left].offset);
        File(newest() / ranges[right].file, O_RDONLY).read(b, ranges[right].offset);
        File(newest() / ranges[left].file, O_WRONLY).write_at(b, ranges[left].offset);
        File(newest() / ranges[right].file, O_WRONLY).write_at(a, ranges[right].offset);
        return a != b;
      };
      SCOPED_TRACE(ranges[left].tensor + " and " + ranges[right].tensor);
      if (exchange()) {
        ++pairs;
        expect_found({'\'' + ranges[left].tensor + '\'', '\'' + ranges[right].tensor + '\''});
      }
      exchange();
    }
  }
  EXPECT_GT(pairs, 50U);
  expect_sound();
}

/// What may stand in a file's place.
struct Replacement {
  std::string name;
  std::function<bool(const fs::path&, const std::string& sound)> make;  ///< False: it cannot.
};

std::vector<Replacement> replacements() {
  return {{"nothing", [](const fs::path&, const std::string&) { return true; }},
          {"a folder",
           [](const fs::path& path, const std::string&) { return fs::create_directory(path); }},
          {"a named pipe", [](const fs::path& path,
                              const std::string&) { return ::mkfifo(path.c_str(), 0644) == 0; }},
          {"a device",
           [](const fs::path& path, const std::string&) {
             return ::mknod(path.c_str(), S_IFCHR | 0644, makedev(1, 5)) == 0;  // /dev/zero
           }},
          {"a link to itself",
           [](const fs::path& path, const std::string&) {
             fs::create_symlink(path.filename(), path);
             return true;
           }},
          {"a link to a device",
           [](const fs::path& path, const std::string&) {
             fs::create_symlink("/dev/zero", path);
             return true;
           }},
          {"a socket", [](const fs::path& path, const std::string&) {
             sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
             if (path.string().size() >= sizeof(address.sun_path)) return false;
             path.string().copy(address.sun_path, path.string().size());
             const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
             const auto* const place = reinterpret_cast<const sockaddr*>(&address);
             const bool is_made = ::bind(descriptor, place, sizeof(address)) == 0;
             ::close(descriptor);
             return is_made;
           }}};
}

TEST_F(Damage, WhateverStandsInAFilesPlaceIsFound) {
  for (const Replacement& replacement : replacements()) {
    for (const std::string& name : files()) {
      SCOPED_TRACE(replacement.name + " for " + name);
      const fs::path path = newest() / name;
      const std::string sound = slurp(path);
      fs::remove(path);
      if (!replacement.make(path, sound)) {
        std::cout << "skipped: this user or path may not have " << replacement.name << "\n";
        spill(path, sound);
        break;
      }
      expect_found({name});
      fs::remove_all(path);
      spill(path, sound);
    }
  }
  expect_sound();
}

TEST_F(Damage, ALinkIsNotFollowedWhereverItLeads) {
  for (const std::string& name : files()) {
    if (name == kManifestFile) continue;  // guarded by its own checksum, wherever it lies
    SCOPED_TRACE(name);
    const fs::path path = newest() / name;
    fs::rename(path, folder_ / "elsewhere");
    fs::create_symlink(folder_ / "elsewhere", path);
    expect_found({name});
    fs::remove(path);
    fs::rename(folder_ / "elsewhere", path);
  }
}

TEST_F(Damage, AFileThatMayNotBeReadIsFound) {
  const WithoutPrivileges plain_user;
  for (const std::string& name : files()) {
    SCOPED_TRACE(name);
    fs::permissions(newest() / name, fs::perms::owner_write);
    expect_found({name});
    EXPECT_THAT(verdict(), HasSubstr("Permission denied; check the permissions"));
    fs::permissions(newest() / name, fs::perms::owner_read | fs::perms::owner_write);
  }
  expect_sound();
}

TEST_F(Damage, AFolderThatMayNotBeReadIsFound) {
  const WithoutPrivileges plain_user;
  fs::permissions(newest(), fs::perms::none);
  expect_found({"step-00000002"});
  fs::permissions(newest(), fs::perms::owner_all);
  fs::remove_all(newest());
  spill(newest(), "a file");
  expect_found({"step-00000002"});
}

}  // namespace
}  // namespace phalanx
