// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/tensors.h"
#include "tests/trainer/checkpoint/example_run.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// What others wrote: one file, or two with an index.
class OthersModel : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& name, const at::Tensor& values) {
    write_safetensors(folder_ / file, std::vector{whole_tensor(name, values)});
  }

  void write_two() {
    write("model-00001-of-00002.safetensors", "a", tensors::arange(6, at::kFloat));
    write("model-00002-of-00002.safetensors", "b", tensors::arange(4, at::kFloat));
    spill(folder_ / "model.safetensors.index.json",
          R"({"metadata": {"total_size": 40}, "weight_map": {
            "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  }

  TemporaryFolder folder_;
};

TEST_F(OthersModel, OpensAsAFileAFolderOrAnIndex) {
  EXPECT_FALSE(is_safetensors_model(folder_.path()));
  write("model.safetensors", "a", tensors::arange(6, at::kFloat));
  for (const auto& path : {folder_.path(), folder_ / "model.safetensors"}) {
    ASSERT_TRUE(is_safetensors_model(path));
    const at::Tensor a = tensors::zeros({6});
    EXPECT_THAT(warm_start(open_safetensors_model(path), std::vector{whole_tensor("a", a)}, {}),
                IsEmpty());
    EXPECT_TRUE(a.equal(tensors::arange(6, at::kFloat)));
  }
  std::filesystem::remove(folder_ / "model.safetensors");
  write_two();
  const at::Tensor a = tensors::zeros({6});
  const at::Tensor b = tensors::zeros({4});
  warm_start(open_safetensors_model(folder_.path()),
             std::vector{whole_tensor("a", a), whole_tensor("b", b)}, {});
  EXPECT_TRUE(a.equal(tensors::arange(6, at::kFloat)));
  EXPECT_TRUE(b.equal(tensors::arange(4, at::kFloat)));
}

TEST_F(OthersModel, IndexesThatLeadElsewhereAreRefused) {
  write_two();
  const auto refused = [&](const std::string& index, const std::string& text) {
    spill(folder_ / "model.safetensors.index.json", index);
    EXPECT_THAT([&] { open_safetensors_model(folder_.path()); },
                ThrowsMessage<CheckpointError>(HasSubstr(text)));
  };
  refused(R"({"weight_map": {"a": "../model.safetensors"}})", "outside");
  refused(R"({"weight_map": {"a": "model-00002-of-00002.safetensors"}})", "has no tensor 'a'");
  refused(R"({"weight_map": ["a"]})", "is no index");
  refused("{", "is no index");
  spill(folder_ / "model.safetensors.index.json", R"({"weight_map": {"a": "lost.safetensors"}})");
  EXPECT_THAT([&] { open_safetensors_model(folder_.path()); },
              ThrowsMessage<IoError>(HasSubstr("lost.safetensors")));
}

TEST_F(OthersModel, RowsOfAnotherVocabularyAreTaken) {
  const at::Tensor there = tensors::arange(12, at::kFloat).view({4, 3});
  write("model.safetensors", "a", there.to(at::kBFloat16));
  const Checkpoint source = open_safetensors_model(folder_.path());
  const at::Tensor a = tensors::zeros({5, 3}).sub(1);
  const VocabularyRows rows{.tensors = {"a"}, .there = 4, .source = {3, -1, 0, 1, -1}};
  warm_start(source, std::vector{whole_tensor("a", a)}, {.rows = rows});
  for (int64_t row = 0; row < 5; ++row) {
    const int64_t from = rows.source[static_cast<size_t>(row)];
    const at::Tensor expected = from < 0 ? tensors::zeros({3}).sub(1) : there[from];
    EXPECT_TRUE(a[row].equal(expected)) << row;
  }
  EXPECT_EQ(rows.text(), "rows of the vocabulary: 3 taken, 2 new and initialised, 1 left there");
  EXPECT_THAT(rows_by_id(5, 3), ElementsAre(0, 1, 2, -1, -1));
  EXPECT_THAT(rows_by_id(2, 3), ElementsAre(0, 1));
}

// Ranks hold parts of rows; of many pieces the tensor is read as a whole.
TEST_F(OthersModel, RowsAreTakenOfAnyPartOfATensor) {
  constexpr int64_t kRows = 200;
  constexpr int64_t kWidth = 3;
  const at::Tensor there = tensors::arange(kRows * kWidth, at::kFloat).view({kRows, kWidth});
  write("model.safetensors", "a", there);
  const Checkpoint source = open_safetensors_model(folder_.path());
  for (const bool is_reversed : {false, true}) {
    VocabularyRows rows{.tensors = {"a"}, .there = kRows, .source = {}};
    at::Tensor expected = tensors::zeros({kRows + 7, kWidth}).sub(1);
    for (int64_t row = 0; row < kRows + 7; ++row) {
      const int64_t from = row % 50 == 3 || row >= kRows ? -1 : is_reversed ? kRows - 1 - row : row;
      rows.source.push_back(from);
      if (from >= 0) expected[row].copy_(there[from]);
    }
    for (const auto& [begin, end] :
         {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {4, 380}, {0, 621}, {599, 621}, {7, 7}}) {
      ShardedTensorView view = whole_tensor("a", tensors::zeros({kRows + 7, kWidth}));
      view.begin = begin;
      view.end = end;
      view.local = tensors::zeros({end - begin}).sub(1);
      warm_start(source, std::vector{view}, {.rows = rows});
      EXPECT_TRUE(view.local.equal(expected.view(-1).slice(0, begin, end))) << begin << " " << end;
    }
  }
}

// Ranks hold columns, or a tensor with other strides.
TEST_F(OthersModel, RowsAreTakenOfAnyBoxOfATensor) {
  const at::Tensor there = tensors::arange(5 * 4, at::kFloat).view({5, 4});
  write("model.safetensors", "a", there);
  const Checkpoint source = open_safetensors_model(folder_.path());
  const VocabularyRows rows{.tensors = {"a"}, .there = 5, .source = {4, -1, 0, 2}};
  at::Tensor expected = tensors::zeros({4, 4}).sub(1);
  for (const auto& [row, from] : {std::pair(0, 4), {2, 0}, {3, 2}})
    expected[row].copy_(there[from]);
  ShardedTensorView columns = whole_tensor("a", tensors::zeros({4, 4}));
  columns.box = TensorBox{{0, 1}, {4, 2}};
  columns.begin = 1;
  columns.end = 7;
  columns.local = tensors::zeros({6}).sub(1);
  warm_start(source, std::vector{columns}, {.rows = rows});
  EXPECT_TRUE(columns.local.equal(expected.narrow(1, 1, 2).reshape(-1).slice(0, 1, 7)));
  const at::Tensor turned = tensors::zeros({4, 4}).sub(1).t();
  warm_start(source, std::vector{whole_tensor("a", turned)}, {.rows = rows});
  EXPECT_TRUE(turned.equal(expected));
}

TEST_F(OthersModel, OtherPrecisionsAreConverted) {
  const at::Tensor values = tensors::arange(6, at::kFloat).add(0.5);
  write("model.safetensors", "a", values.to(at::kBFloat16));
  const at::Tensor a = tensors::zeros({6}, at::kDouble);
  warm_start(open_safetensors_model(folder_.path()), std::vector{whole_tensor("a", a)}, {});
  EXPECT_TRUE(a.equal(values.to(at::kDouble)));
}

TEST_F(OthersModel, ABoxIsFilledInAnotherPrecision) {
  write("model.safetensors", "a", tensors::arange(6, at::kFloat).view({2, 3}));
  ShardedTensorView view = whole_tensor("a", tensors::zeros({2, 3}, at::kDouble));
  view.box = TensorBox{{0, 1}, {2, 2}};
  view.end = 4;
  view.local = tensors::zeros({2, 2}, at::kDouble).t();
  warm_start(open_safetensors_model(folder_.path()), std::vector{view}, {});
  EXPECT_TRUE(view.local.equal(tensors::arange(6, at::kDouble).view({2, 3}).narrow(1, 1, 2)));
}

TEST_F(OthersModel, APartIsReadAlone) {
  write("model.safetensors", "a", tensors::arange(6, at::kFloat));
  ShardedTensorView view = whole_tensor("a", tensors::zeros({6}));
  view.begin = 2;
  view.end = 5;
  view.local = tensors::zeros({3});
  warm_start(open_safetensors_model(folder_.path()), std::vector{view}, {});
  EXPECT_TRUE(view.local.equal(tensors::arange(2, 5, at::kFloat)));
}

class WarmStarts : public testing::Test {
 protected:
  WarmStarts() {
    ExampleRun run;
    checkpoint_ = open_checkpoint(save_checkpoint(folder_.path(), run.snapshot(5)).path);
  }

  std::vector<ShardedTensorView> prefixed(const std::string& prefix) {
    auto model = run_.model();
    for (auto& view : model) view.name = prefix + view.name;
    return model;
  }

  TemporaryFolder folder_;
  Checkpoint checkpoint_;
  ExampleRun run_;
};

TEST_F(WarmStarts, NamesMayBeginOtherwise) {
  EXPECT_THAT(warm_start(checkpoint_, prefixed("model."), {.prefixes = {{"", "model."}}}),
              IsEmpty());
  ExampleRun expected;
  expected.set_to(5);
  EXPECT_TRUE(run_.weight.equal(expected.weight));
  EXPECT_TRUE(run_.bias.equal(expected.bias));
}

TEST_F(WarmStarts, TellHowFarTheyAreInThePrecisionThatIsRead) {
  const auto tell = [](at::ScalarType there, at::ScalarType here) {
    const TemporaryFolder folder;
    Snapshot snapshot;
    snapshot.model = {whole_tensor("a", tensors::zeros({100}, there))};
    const auto path = save_checkpoint(folder.path(), snapshot).path;
    ByteProgress progress;
    warm_start(open_checkpoint(path),
               std::vector{whole_tensor("a", tensors::ones({100}, here)),
                           whole_tensor("missing", tensors::ones({50}, here))},
               {.strict = false}, &progress);
    EXPECT_EQ(progress.done, progress.all);
    return progress.all.load();
  };
  EXPECT_EQ(tell(at::kFloat, at::kBFloat16), 400U);
  EXPECT_EQ(tell(at::kBFloat16, at::kFloat), 200U);
}

TEST_F(WarmStarts, TheLongestPrefixCounts) {
  auto model = run_.model();
  model[0].name = "first.weight";
  model[1].name = "h.0.bias";
  EXPECT_THAT(warm_start(checkpoint_, model, {.prefixes = {{"h.", "h."}, {"h.0.w", "first.w"}}}),
              IsEmpty());
}

TEST_F(WarmStarts, WhatIsMissingOrUnknownIsAnErrorOrTold) {
  auto model = run_.model();
  model[1].name = "h.0.bios";
  run_.set_to(0);
  EXPECT_THAT([&] { warm_start(checkpoint_, model, {}); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("missing model tensor 'h.0.bios'"),
                                             HasSubstr("unexpected model tensor 'h.0.bias'"),
                                             HasSubstr("load_strict=false"))));
  EXPECT_TRUE(run_.is_at(0)) << "nothing is written before all is compared";
  EXPECT_THAT(warm_start(checkpoint_, model, {.strict = false}),
              ElementsAre(HasSubstr("missing"), HasSubstr("unexpected")));
  ExampleRun expected;
  expected.set_to(5);
  EXPECT_TRUE(run_.weight.equal(expected.weight));
  EXPECT_TRUE(run_.bias.equal(tensors::full({16}, 0.25, at::kDouble)));
}

TEST_F(WarmStarts, NothingInCommonIsAnError) {
  EXPECT_THAT([&] { warm_start(checkpoint_, prefixed("x."), {.strict = false}); },
              ThrowsMessage<UserError>(HasSubstr("no tensor of this model")));
}

TEST_F(WarmStarts, OtherShapesAreAnErrorInAnyCase) {
  auto model = run_.model();
  model[0] = whole_tensor("h.0.weight", tensors::zeros({64, 32}));
  EXPECT_THAT([&] { warm_start(checkpoint_, model, {.strict = false}); },
              ThrowsMessage<UserError>(HasSubstr("F32 [64, 16] in the checkpoint")));
}

TEST_F(WarmStarts, TwoTensorsOfOneNameAreAnError) {
  EXPECT_THAT(
      [&] {
        warm_start(checkpoint_, run_.model(),
                   {.prefixes = {{"h.0.bias", "x"}, {"h.0.weight", "x"}}});
      },
      ThrowsMessage<UserError>(HasSubstr("come to have the name 'x'")));
}

}  // namespace
}  // namespace phalanx
