// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/manifest_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/manifest.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

// Two tensors, one of them in two files.
Manifest sound() {
  Manifest manifest;
  manifest.files["a"] = {.size = 10 + 16 + 8, .head_bytes = 10};
  manifest.files["b"] = {.size = 8 + 8, .head_bytes = 8};
  manifest.files["text"] = {.size = 5, .head_bytes = 5};
  manifest.tensors = {
      {.part = "model",
       .name = "w",
       .shape = {2, 3},
       .slices = {{.begin = 0, .end = 4, .file = "a", .offset = 10, .checksums = {1}},
                  {.begin = 4, .end = 6, .file = "b", .offset = 8, .checksums = {2}}}},
      {.part = "optimizer",
       .name = "w",
       .dtype = at::kLong,
       .shape = {},
       .slices = {{.begin = 0, .end = 1, .file = "a", .offset = 26, .checksums = {3}}}},
      {.part = "model", .name = "nothing", .shape = {0, 7}, .slices = {}}};
  return manifest;
}

std::string refusal(const std::function<void(Manifest&)>& change) {
  Manifest manifest = sound();
  change(manifest);
  try {
    require_sound(manifest);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ManifestRules, WhatFitsTogetherIsAccepted) {
  EXPECT_EQ(refusal([](Manifest&) {}), "accepted");
}

TEST(ManifestRules, FilesStayInTheFolder) {
  for (const char* name : {"../x", "/etc/passwd", "a/b", "..", ".", "", "manifest.json"}) {
    EXPECT_THAT(refusal([&](Manifest& m) { m.files[name] = {}; }), HasSubstr("outside")) << name;
  }
  EXPECT_THAT(refusal([&](Manifest& m) { m.files[std::string("a\0b", 3)] = {}; }),
              HasSubstr("it names the file 'a"));
}

TEST(ManifestRules, NamesAreUniqueInTheirPart) {
  EXPECT_THAT(refusal([](Manifest& m) { m.tensors[1].part = "model"; }), HasSubstr("two model"));
}

TEST(ManifestRules, SlicesCoverATensor) {
  const auto slices = [](Manifest & m) -> auto& { return m.tensors[0].slices; };
  EXPECT_THAT(refusal([&](Manifest& m) { slices(m).pop_back(); }), HasSubstr("4 of its 6"));
  EXPECT_THAT(refusal([&](Manifest& m) { slices(m)[1].begin = 5; }), HasSubstr("gap"));
  EXPECT_THAT(refusal([&](Manifest& m) { slices(m)[1].begin = 3; }), HasSubstr("overlap"));
  EXPECT_THAT(refusal([&](Manifest& m) { slices(m)[1].end = 7; }), HasSubstr("beyond"));
  EXPECT_THAT(refusal([&](Manifest& m) { slices(m)[0].begin = -1; }), HasSubstr("gap"));
  EXPECT_THAT(refusal([&](Manifest& m) { slices(m)[1].end = 4; }), HasSubstr("gap"));
  EXPECT_THAT(refusal([&](Manifest& m) { std::swap(slices(m)[0], slices(m)[1]); }),
              HasSubstr("gap"));
}

// The tensor of two rows and three columns, as two columns and one.
void put_boxes(Manifest& manifest) {
  std::vector<ManifestSlice>& slices = manifest.tensors[0].slices;
  slices[0].box = TensorBox{{0, 0}, {2, 2}};
  slices[1].box = TensorBox{{0, 2}, {2, 1}};
  slices[1].begin = 0;
  slices[1].end = 2;
}

TEST(ManifestRules, SlicesOfBoxesCoverATensorInAnyOrder) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto refusal_of = [](const std::function<void(std::vector<ManifestSlice>&)>& change) {
    return refusal([&](Manifest& m) {
      put_boxes(m);
      change(m.tensors[0].slices);
    });
  };
  EXPECT_EQ(refusal_of([](auto&) {}), "accepted");
  EXPECT_EQ(refusal_of([](auto& s) { std::swap(s[0], s[1]); }), "accepted");
  EXPECT_THAT(refusal_of([](auto& s) { s[1].box->offsets[1] = 1; }),
              HasSubstr("the slices of model tensor 'w' overlap"));
  EXPECT_THAT(refusal_of([](auto& s) { s.pop_back(); }),
              HasSubstr("the slices of model tensor 'w' hold 4 of its 6 elements"));
  for (const TensorBox& box : {TensorBox{{0, 3}, {2, 1}},
                               {{0, 2}, {3, 1}},
                               {{0, 2}, {2, kMost}},
                               {{0, kMost}, {2, kMost}},
                               {{0, -1}, {2, 1}},
                               {{0}, {2}},
                               {{0, 2, 0}, {2, 1, 1}},
                               {{}, {}}}) {
    EXPECT_THAT(refusal_of([&](auto& s) { s[1].box = box; }),
                HasSubstr("a box of model tensor 'w' does not lie in it"));
  }
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, 3}, {-1, 2}, {2, 2}, {1, 0}, {0, kMost}}) {
    EXPECT_THAT(refusal_of([begin = begin, end = end](auto& s) {
                  s[1].begin = begin;
                  s[1].end = end;
                }),
                HasSubstr("a slice of model tensor 'w' is empty or ends beyond its box"));
  }
  EXPECT_THAT(refusal([](Manifest& m) {
                m.tensors[0].shape.resize(65, 1);
                put_boxes(m);
                for (ManifestSlice& slice : m.tensors[0].slices) {
                  slice.box->offsets.resize(65, 0);
                  slice.box->sizes.resize(65, 1);
                }
              }),
              HasSubstr("a box of model tensor 'w' does not lie in it"))
      << "no tensor has so many dimensions";
}

TEST(ManifestRules, HeadsAndSlicesCoverAFile) {
  EXPECT_THAT(refusal([](Manifest& m) { m.files["a"].head_bytes = 9; }), HasSubstr("at byte 9"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files["a"].size = 35; }), HasSubstr("the file 35"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files["a"].size = 33; }), HasSubstr("beyond the end"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files["text"].head_bytes = 4; }), HasSubstr("text"));
  EXPECT_THAT(refusal([](Manifest& m) { m.tensors[1].slices[0].offset = 25; }),
              HasSubstr("overlap"));
  EXPECT_THAT(refusal([](Manifest& m) { m.tensors[0].slices[0].file = "c"; }),
              HasSubstr("does not list"));
  EXPECT_THAT(refusal([](Manifest& m) {
                m.tensors[1].slices[0].offset = std::numeric_limits<uint64_t>::max();
              }),
              HasSubstr("beyond the end"));
}

TEST(ManifestRules, EachChunkHasAChecksum) {
  EXPECT_THAT(refusal([](Manifest& m) { m.tensors[0].slices[0].checksums = {}; }),
              HasSubstr("0 checksums for 1"));
  EXPECT_THAT(refusal([](Manifest& m) {
                m.tensors[0].slices[0].checksums = {1, 2};
              }),
              HasSubstr("2 checksums for 1"));
  for (const uint64_t bytes : {0, 1, 4096, 65537, 98304}) {
    EXPECT_THAT(refusal([&](Manifest& m) { m.chunk_bytes = bytes; }), HasSubstr("power of two"));
  }
}

TEST(ManifestRules, ImpossibleShapesAreRefused) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{-1}, {2, -3}, {kLarge, kLarge}, {0, kLarge, kLarge}, {kLarge << 22}}) {
    EXPECT_THAT(refusal([&](Manifest& m) { m.tensors[0].shape = shape; }), HasSubstr("impossible"));
  }
}

}  // namespace
}  // namespace phalanx
