// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/write_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "trainer/checkpoint/format/safetensors_header.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

HeldTensor tensor(std::string name, int64_t elements, std::vector<HeldSlice> slices) {
  return {.name = std::move(name), .shape = {elements}, .slices = std::move(slices)};
}

std::vector<std::string> names_of(const WritePlan& plan) {
  std::vector<std::string> names;
  for (const PlannedFile& file : plan.files) names.push_back(file.name);
  return names;
}

// Bytes that each rank writes.
std::vector<uint64_t> loads(const WritePlan& plan, std::size_t ranks) {
  std::vector<uint64_t> bytes(ranks);
  for (const PlannedPiece& piece : plan.pieces) {
    bytes[static_cast<std::size_t>(piece.writer)] +=
        static_cast<uint64_t>(piece.end - piece.begin) * sizeof(float);
  }
  return bytes;
}

constexpr uint64_t kPiece = uint64_t{64} << 10;
constexpr int64_t kPieceElements = kPiece / sizeof(float);

TEST(WritePlan, ReplicasShareTheWork) {
  const int64_t size = 10 * kPieceElements;
  const std::vector<int64_t> hosts{0, 0};
  const WritePlan plan =
      plan_writes({{.name = "model", .tensors = {tensor("w", size, {{0, size, {0, 1}}})}}}, hosts,
                  {.piece_bytes = kPiece});
  EXPECT_THAT(names_of(plan), ElementsAre("model.safetensors"));
  EXPECT_THAT(loads(plan, 2), ElementsAre(5 * kPiece, 5 * kPiece));
}

TEST(WritePlan, RanksOfOneHostWriteTheirRangesInPlace) {
  const std::vector<int64_t> hosts{0, 0};
  const WritePlan plan = plan_writes(
      {{.name = "model", .tensors = {tensor("w", 7, {{0, 4, {0}}, {4, 7, {1}}})}}}, hosts);
  ASSERT_EQ(plan.pieces.size(), 2U);
  EXPECT_EQ(plan.pieces[0].writer, 0);
  EXPECT_EQ(plan.pieces[1].writer, 1);
  EXPECT_EQ(plan.pieces[1].source, 1);
  EXPECT_EQ(plan.pieces[1].offset, plan.pieces[0].offset + 4 * sizeof(float));
  ASSERT_EQ(plan.files.size(), 1U);
  EXPECT_EQ(plan.files[0].maker, 0);
}

TEST(WritePlan, AModelsTensorGoesWholeToTheHostThatHasMostOfIt) {
  const std::vector<int64_t> hosts{0, 1};
  const WritePlan plan = plan_writes(
      {{.name = "model", .tensors = {tensor("w", 7, {{0, 3, {0}}, {3, 7, {1}}})}}}, hosts);
  ASSERT_EQ(plan.pieces.size(), 2U);
  EXPECT_EQ(plan.pieces[0].source, 0);
  EXPECT_EQ(plan.pieces[0].writer, 1);
  EXPECT_EQ(plan.pieces[1].source, 1);
  EXPECT_EQ(plan.pieces[1].writer, 1);
  EXPECT_EQ(plan.files.at(0).maker, 1);
}

TEST(WritePlan, SlicesStayOnTheirHosts) {
  const std::vector<int64_t> hosts{0, 0, 1};
  const WritePlan plan =
      plan_writes({{.name = "optimizer",
                    .layout = Layout::slices,
                    .tensors = {tensor("m", 9, {{0, 3, {0}}, {3, 6, {1}}, {6, 9, {2}}}),
                                tensor("n", 3, {{0, 3, {0, 1, 2}}})}}},
                  hosts);
  EXPECT_THAT(names_of(plan), ElementsAre("optimizer-00001-of-00002.safetensors",
                                          "optimizer-00002-of-00002.safetensors"));
  for (const PlannedPiece& piece : plan.pieces) EXPECT_EQ(piece.source, piece.writer);
  const SafetensorsHeader first =
      parse_safetensors_header(plan.files[0].head.substr(8), 6 * sizeof(float));
  ASSERT_EQ(first.entries.size(), 1U) << "what lies side by side is one";
  EXPECT_EQ(first.entries[0].name, "m[0:6]");
}

TEST(WritePlan, FilesAreCutAtTheirLimit) {
  std::vector<HeldTensor> tensors;
  for (const char* name : {"a", "b", "c", "d", "e"})
    tensors.push_back(tensor(name, 4, {{0, 4, {0}}}));
  tensors.push_back(tensor("empty", 0, {}));
  const std::vector<int64_t> hosts{0};
  const WritePlan plan = plan_writes({{.name = "model", .tensors = tensors}}, hosts,
                                     {.file_bytes = 2 * 4 * sizeof(float)});
  EXPECT_THAT(names_of(plan),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors"));
  std::set<int64_t> listed;
  for (const PlannedFile& file : plan.files)
    listed.insert(file.tensors.begin(), file.tensors.end());
  EXPECT_EQ(listed.size(), tensors.size());
}

TEST(WritePlan, APartWithoutTensorsHasAFile) {
  const std::vector<int64_t> hosts{0};
  EXPECT_THAT(names_of(plan_writes({{.name = "optimizer", .layout = Layout::slices}}, hosts)),
              ElementsAre("optimizer.safetensors"));
}

TEST(WritePlan, ANameTwiceIsTheCallersMistake) {
  const std::vector<int64_t> hosts{0};
  const auto twice = tensor("w", 1, {{0, 1, {0}}});
  EXPECT_THROW(plan_writes({{.name = "model", .tensors = {twice, twice}}}, hosts),
               std::logic_error);
}

// Cuts a tensor at random, and gives each part to some ranks.
HeldTensor random_tensor(std::mt19937& random, int64_t ranks, const std::string& name) {
  const auto elements = static_cast<int64_t>(random() % 40000);
  std::vector<int64_t> cuts{0, elements};
  for (std::size_t i = random() % 4; i > 0 && elements > 0; --i) {
    cuts.push_back(static_cast<int64_t>(random()) % elements);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  HeldTensor held = tensor(name, elements, {});
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    HeldSlice slice{.begin = cuts[i], .end = cuts[i + 1], .holders = {}};
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (random() % 2 == 0) slice.holders.push_back(rank);
    }
    if (slice.holders.empty()) slice.holders.push_back(static_cast<int64_t>(random()) % ranks);
    held.slices.push_back(std::move(slice));
  }
  return held;
}

class RandomPlan : public testing::TestWithParam<int> {};

TEST_P(RandomPlan, WritesEveryByteOnceWhereItBelongsFromWhoHasIt) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const int64_t ranks = 1 + static_cast<int64_t>(random() % 6);
  std::vector<int64_t> hosts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t next = hosts.empty() ? 0 : *std::max_element(hosts.begin(), hosts.end()) + 1;
    hosts.push_back(static_cast<int64_t>(random()) % (next + 1));
  }
  std::vector<PlannedPart> parts{{.name = "model"},
                                 {.name = "optimizer", .layout = Layout::slices}};
  for (auto& part : parts) {
    for (int i = 0; i < 6; ++i)
      part.tensors.push_back(random_tensor(random, ranks, std::to_string(i)));
  }
  const WritePlan plan =
      plan_writes(parts, hosts, {.file_bytes = 1 + random() % 300000, .piece_bytes = kPiece});
  EXPECT_EQ(kPiece % plan.chunk_bytes, 0U);

  const auto host = [&](int64_t rank) { return hosts[static_cast<std::size_t>(rank)]; };
  std::map<int64_t, std::vector<std::pair<uint64_t, uint64_t>>> ranges;  // of bytes, by file
  std::map<std::pair<int64_t, int64_t>, int64_t> covered;                // by part and tensor
  for (const PlannedPiece& piece : plan.pieces) {
    const HeldTensor& held =
        parts[static_cast<std::size_t>(piece.part)].tensors[static_cast<std::size_t>(piece.tensor)];
    const auto slice = std::find_if(held.slices.begin(), held.slices.end(), [&](const auto& s) {
      return s.begin <= piece.begin && piece.end <= s.end;
    });
    ASSERT_NE(slice, held.slices.end());
    const auto& holders = slice->holders;
    EXPECT_NE(std::find(holders.begin(), holders.end(), piece.source), holders.end());
    const PlannedFile& file = plan.files[static_cast<std::size_t>(piece.file)];
    EXPECT_EQ(host(piece.writer), host(file.maker)) << "a file is of one host";
    if (piece.source != piece.writer) {
      EXPECT_NE(host(piece.source), host(piece.writer));
      EXPECT_EQ(piece.part, 0) << "slices stay where they are";
    }
    int64_t& reached = covered[{piece.part, piece.tensor}];
    EXPECT_EQ(piece.begin, reached) << "pieces come in order";
    reached = piece.end;
    const uint64_t bytes = static_cast<uint64_t>(piece.end - piece.begin) * sizeof(float);
    ranges[piece.file].emplace_back(piece.offset, piece.offset + bytes);
  }
  for (const auto& [key, end] : covered) {
    EXPECT_EQ(end, parts[static_cast<std::size_t>(key.first)]
                       .tensors[static_cast<std::size_t>(key.second)]
                       .elements());
  }
  for (std::size_t f = 0; f < plan.files.size(); ++f) {
    auto& of_file = ranges[static_cast<int64_t>(f)];
    std::sort(of_file.begin(), of_file.end());
    uint64_t position = plan.files[f].head.size();
    for (const auto& [begin, end] : of_file) {
      EXPECT_EQ(begin, position);
      position = end;
    }
    EXPECT_EQ(position, plan.files[f].size);
    parse_safetensors_header(std::string_view(plan.files[f].head).substr(8),
                             plan.files[f].size - plan.files[f].head.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlan, testing::Range(0, 200));

}  // namespace
}  // namespace phalanx
