// SPDX-License-Identifier: Apache-2.0
// Manifests that somebody edited and gave the right checksum again: refused, or nothing comes of
// it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/long.h"
#include "tests/trainer/checkpoint/saved_by_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

class EditedManifest : public SavedByRanks {
 protected:
  static void SetUpTestSuite() { save(/*elements=*/77, {.file_bytes = 200}); }

  EditedManifest() : manifest_(Json::parse(slurp(newest() / kManifestFile))) {}

  /// Puts a manifest there, with its checksum.
  void put(Json manifest) const {
    manifest.erase("checksum");
    std::string text = manifest.dump(2);
    text.resize(text.size() - std::string_view("\n}").size());
    put_text(text);
  }
  /// The same, of all its text but the last field.
  void put_text(const std::string& text) const {
    spill(newest() / kManifestFile, fmt::format("{},\n  \"checksum\": \"{}\"\n}}\n", text,
                                                checksum_digits(checksum_of(text))));
  }

  /// The tensor of that name and part.
  Json& tensor(Json& manifest, const std::string& name) const {
    for (Json& each : manifest["tensors"]) {
      if (each["name"] == name) return each;
    }
    throw std::logic_error("no tensor " + name);
  }

  /// What a run says of it: why it took the older one or ended; empty: it took it.
  std::string refusal() const {
    try {
      const Found found = load();
      EXPECT_TRUE(found.is_right);
      EXPECT_EQ(found.warnings.size(), found.step == kNewest ? 0U : 1U);
      return found.step == kNewest ? "" : found.warnings.at(0);
    } catch (const UserError& error) {
      return error.what();
    }
  }

  /// Expects that a run and `verify` find it, with such a text.
  void expect_refused(const Json& manifest, const std::string& text) const {
    put(manifest);
    EXPECT_THAT(refusal(), HasSubstr(text));
    EXPECT_THAT(verdict(), HasSubstr(text));
  }

  const Json manifest_;
};

TEST_F(EditedManifest, AsItWasItIsTaken) {
  put(manifest_);
  EXPECT_EQ(slurp(newest() / kManifestFile), manifest_.dump(2) + "\n");
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(verdict(), "");
}

TEST_F(EditedManifest, OfPhalanx010ItIsTaken) {
  Json edited = manifest_;
  edited["phalanx_version"] = "0.1.0";
  put(edited);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(verdict(), "");
}

TEST_F(EditedManifest, AttachmentsThatAreNoneAreFound) {
  const Json sound{{"size", 1}, {"xxh3_64", checksum_digits(checksum_of(std::string_view("x")))}};
  spill(newest() / "outside", "x");
  const std::vector<std::pair<Json, std::string>> cases{
      {{{"../outside", sound}}, "'../outside' does not lie in its folder"},
      {{{"outside", sound}}, "attachments/outside': No such file"},
      {{{"outside", {{"size", -1}, {"xxh3_64", sound["xxh3_64"]}}}}, "its size is no number"},
      {{{"outside", {{"size", 1}, {"xxh3_64", "1"}}}}, "'1' is no checksum"},
      {{{"outside", {{"size", 1}}}}, "xxh3_64"},
      {{{"outside", 1}}, "not a checkpoint's manifest"},
  };
  for (const auto& [attachments, text] : cases) {
    Json edited = manifest_;
    edited["attachments"] = attachments;
    expect_refused(edited, text);
  }
  fs::create_directory(newest() / "attachments");
  fs::rename(newest() / "outside", newest() / "attachments/inside");
  Json edited = manifest_;
  edited["attachments"] = {{"inside", sound}};
  put(edited);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(verdict(), "");
}

// What the checksums of both fit to, and the files' headers do not.
TEST_F(EditedManifest, SlicesThatChangedPlacesAreFound) {
  Json edited = manifest_;
  Json& slices = tensor(edited, "cut")["slices"];
  // All have 19 of the 77 elements, except the last.
  for (const char* field : {"file", "offset", "xxh3_64"}) {
    std::swap(slices[0][field], slices[1][field]);
  }
  expect_refused(edited, "disagree on model tensor 'cut'");

  edited = manifest_;
  Json& parts = tensor(edited, "cut.exp_avg")["slices"];
  ASSERT_NE(parts[0]["file"], parts[1]["file"]);
  for (const char* field : {"file", "offset", "xxh3_64"}) {
    std::swap(parts[0][field], parts[1][field]);
  }
  expect_refused(edited, "disagree on optimizer tensor 'cut.exp_avg'");
}

TEST_F(EditedManifest, TensorsThatChangedNamesAreFound) {
  Json edited = manifest_;
  Json& cut = tensor(edited, "cut");
  Json& other = tensor(edited, "other");
  std::swap(cut["name"], other["name"]);
  expect_refused(edited, "disagree on model tensor");
}

TEST_F(EditedManifest, OtherTypesAndShapesOfTheSameBytesAreFound) {
  Json edited = manifest_;
  tensor(edited, "cut")["dtype"] = "I32";
  put(edited);
  EXPECT_THAT(refusal(), AnyOf(HasSubstr("'cut' is I32 [77] in the checkpoint, F32 [77] here"),
                               HasSubstr("disagree on model tensor 'cut'")));
  EXPECT_THAT(verdict(), HasSubstr("disagree on model tensor 'cut'"));
  for (const Json& shape : {Json{7, 11}, Json{1, 77}, Json{77, 1, 1}}) {
    edited = manifest_;
    tensor(edited, "cut")["shape"] = shape;
    put(edited);
    EXPECT_NE(refusal(), "");
    EXPECT_THAT(verdict(), HasSubstr("disagree on model tensor 'cut'"));
  }
  // That the range of a tensor is one-dimensional does not tell the tensor's shape.
  edited = manifest_;
  tensor(edited, "cut.exp_avg")["shape"] = {7, 11};
  put(edited);
  EXPECT_THAT(refusal(),
              HasSubstr("'cut.exp_avg' is F32 [7, 11] in the checkpoint, F32 [77] here"));
}

TEST_F(EditedManifest, ATensorThatIsThereTwiceIsFound) {
  Json edited = manifest_;
  edited["tensors"].push_back(edited["tensors"][0]);
  expect_refused(edited, "it has two model tensor");
  // Under another name its bytes are given twice.
  edited["tensors"].back()["name"] = "new";
  expect_refused(edited, "leave a gap or overlap");
}

TEST_F(EditedManifest, NoFileOutsideOfTheFolderIsRead) {
  for (const std::string name :
       {"../step-00000001/model-00001-of-00005.safetensors", "/dev/zero", "..", "sub/file"}) {
    Json edited = Json::parse([&] {
      std::string text = manifest_.dump();
      const std::string from = manifest_["files"].begin().key();
      for (std::size_t at = 0; (at = text.find('"' + from + '"', at)) != std::string::npos;) {
        text.replace(at + 1, from.size(), name);
      }
      return text;
    }());
    expect_refused(edited, fmt::format("it names the file '{}' outside of its folder", name));
  }
}

TEST_F(EditedManifest, AStepThatIsNotItsFoldersIsFound) {
  Json edited = manifest_;
  edited["state"]["step"] = 3;
  expect_refused(edited, "holds the manifest of step 3");
}

// Other readers go by the index.
TEST_F(EditedManifest, AnIndexThatLeadsElsewhereIsFound) {
  const std::string name = "model.safetensors.index.json";
  const auto put_index = [&](const Json& index) {
    const std::string text = index.dump(2);
    spill(newest() / name, text);
    Json edited = manifest_;
    edited["files"][name] = {{"size", text.size()},
                             {"head_bytes", text.size()},
                             {"head_xxh3_64", checksum_digits(checksum_of(text))}};
    return edited;
  };
  const Json index = Json::parse(slurp(newest() / name));
  put(put_index(index));
  EXPECT_EQ(refusal(), "");
  Json led_away = index;
  led_away["weight_map"]["cut"] = "evil.safetensors";
  expect_refused(put_index(led_away), "disagree on model tensor 'cut'");
  Json without = index;
  without["weight_map"].erase("cut");
  expect_refused(put_index(without), "disagree on model tensor 'cut'");
  Json with_more = index;
  with_more["weight_map"]["new"] = index["weight_map"]["cut"];
  expect_refused(put_index(with_more), "names tensors that the manifest does not");
}

TEST_F(EditedManifest, AKeyThatIsThereTwiceChangesNoValue) {
  std::string text = manifest_.dump(2);
  text.resize(text.rfind(",\n  \"checksum\""));
  for (const std::string key : {"files", "tensors", "chunk_bytes", "state", "world_size"}) {
    for (const std::string value : {"{}", "[]", "0", "null", "65536"}) {
      put_text(fmt::format("{},\n  \"{}\": {}", text, key, value));
      refusal();  // be it or not: values are right
    }
  }
}

/// Where every value of a manifest stands.
void add_pointers(const Json& value, const Json::json_pointer& here,
                  std::vector<Json::json_pointer>& found) {
  if (!here.empty()) found.push_back(here);
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) add_pointers(child, here / key, found);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) add_pointers(value[i], here / i, found);
  }
}

std::vector<Json> other_values(const Json& value) {
  std::vector<Json> others{nullptr,
                           true,
                           0,
                           1,
                           -1,
                           0.5,
                           1e308,
                           std::numeric_limits<int64_t>::max(),
                           std::numeric_limits<uint64_t>::max(),
                           int64_t{1} << 40,
                           "",
                           "x",
                           std::string(70'000, 'f'),
                           Json::array(),
                           Json::object(),
                           Json::array({value}),
                           Json{{"a", value}}};
  if (value.is_number_unsigned()) {
    for (const uint64_t by : {1, 4, 8, 65536}) {
      others.emplace_back(value.get<uint64_t>() + by);
      others.emplace_back(value.get<uint64_t>() - by);
    }
    others.emplace_back(value.get<uint64_t>() * 2);
  }
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
    const auto& text = value.get_ref<const std::string&>();
    others.emplace_back(text.substr(1));
    others.emplace_back(text + text);
    others.emplace_back(std::string(1, static_cast<char>(text[0] ^ 1)) + text.substr(1));
  }
  if (value.is_array() && !value.empty()) {
    others.push_back(value);
    others.back().push_back(value[0]);
    others.push_back(value);
    others.back().erase(0);
    others.push_back(value);
    std::reverse(others.back().begin(), others.back().end());
  }
  return others;
}

// Each value becomes others, or is gone: what a run then loads are the right values, or those of
// the older checkpoint. Nothing else comes of it: no other error, no end of memory.
TEST_F(EditedManifest, WhateverAValueBecomesTensorsAreRight) {
  std::vector<Json::json_pointer> places;
  add_pointers(manifest_, Json::json_pointer(), places);
  const std::size_t every = runs_long_tests() ? 1 : 4;
  std::size_t possible = 0;
  std::size_t edits = 0;
  std::size_t refused = 0;
  std::size_t verified = 0;
  const auto examine = [&](const Json& edited) {
    if (possible++ % every != 0) return;
    ++edits;
    put(edited);
    const bool is_refused = !refusal().empty();
    refused += is_refused ? 1 : 0;
    try {
      verify_checkpoint(newest());
      ++verified;
    } catch (const CheckpointError&) {
    } catch (const IoError&) {
    }
  };
  for (const auto& place : places) {
    if (place == Json::json_pointer("/checksum")) continue;
    SCOPED_TRACE(place.to_string());
    Json edited = manifest_;
    const Json value = edited[place];
    for (Json& other : other_values(value)) {
      edited[place] = std::move(other);
      examine(edited);
    }
    edited = manifest_;
    Json& around = edited[place.parent_pointer()];
    if (around.is_object()) {
      around.erase(place.back());
    } else {
      around.erase(std::stoul(place.back()));
    }
    examine(edited);
    if (HasFailure()) return;
  }
  tell_sample(edits, possible, "edits");
  std::cout << fmt::format("{} edits: a run refused {}, `verify` {}\n", edits, refused,
                           edits - verified);
  EXPECT_GT(refused, edits / 2);
}

}  // namespace
}  // namespace phalanx
