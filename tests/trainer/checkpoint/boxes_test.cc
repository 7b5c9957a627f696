// SPDX-License-Identifier: Apache-2.0
// Checkpoints of ranks that hold boxes of tensors, and of tensors with other strides than row-major
// ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/long.h"
#include "tests/tensors.h"
#include "tests/trainer/checkpoint/random_parts.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/optimizer.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/background_save.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {
namespace {

constexpr int64_t kRanks = 4;

/// What a case saves and reads.
struct Tensors {
  std::vector<KnownTensor> model;
  std::vector<KnownTensor> optimizer;
  std::vector<KnownTensor> extra;

  explicit Tensors(std::mt19937& random) {
    for (auto* part : {&model, &optimizer, &extra}) {
      for (int i = 0; i < 3; ++i) {
        part->push_back(random_tensor(random, "tensor " + std::to_string(i)));
      }
    }
  }
};

std::vector<ShardedTensorView> shares(std::mt19937& random, const std::vector<KnownTensor>& tensors,
                                      int64_t rank) {
  std::vector<ShardedTensorView> views;
  for (const KnownTensor& tensor : tensors) {
    views.push_back(random_share(random, tensor, rank, kRanks));
  }
  return views;
}

/// At once, or every other time in the background, while the values change.
SavedCheckpoint save_case(const std::filesystem::path& folder, int64_t seed, const Ranks& ranks,
                          BackgroundSave& background) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const Tensors tensors(random);
  Snapshot snapshot;
  snapshot.state.step = seed;
  snapshot.model = shares(random, tensors.model, ranks.rank());
  snapshot.optimizer = shares(random, tensors.optimizer, ranks.rank());
  snapshot.parts = {{.name = "extra", .tensors = shares(random, tensors.extra, ranks.rank())}};
  snapshot.rng_states = {{"cpu", tensors::full({16}, ranks.rank(), at::kByte)}};
  std::vector<std::string> hosts;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    hosts.push_back("host " + std::to_string(random() % 3));
  }
  const SaveOptions options{
      .limits = {.file_bytes = 1 + random() % 300'000, .piece_bytes = uint64_t{64} << 10},
      .host = hosts[static_cast<std::size_t>(ranks.rank())]};
  if (seed % 2 == 0) return save_checkpoint(folder, snapshot, options, ranks);
  background.start(folder, snapshot, options, ranks);
  for (const auto* views : {&snapshot.model, &snapshot.optimizer, &snapshot.parts[0].tensors}) {
    for (const ShardedTensorView& view : *views) view.local.logical_not_();
  }
  return background.finish();
}

/// Views of any part of each tensor, whose values are not those of the checkpoint yet.
std::vector<ShardedTensorView> targets(std::mt19937& random,
                                       const std::vector<KnownTensor>& tensors) {
  std::vector<ShardedTensorView> views;
  for (const KnownTensor& tensor : tensors) {
    views.push_back(random_view(random, tensor, random_part(random, tensor.shape)));
    views.back().local.logical_not_();
  }
  return views;
}

void require_values(const std::vector<ShardedTensorView>& views,
                    const std::vector<KnownTensor>& tensors) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    require(views[i].local.reshape(-1).equal(tensors[i].values(views[i].part())), views[i].name);
  }
}

void read_case(const std::filesystem::path& path, int64_t seed) {
  const Checkpoint checkpoint = verify_checkpoint(path);
  std::mt19937 random(static_cast<unsigned>(seed));
  const Tensors tensors(random);
  for (int64_t reader = 0; reader < 5; ++reader) {
    const auto model = targets(random, tensors.model);
    const auto optimizer = targets(random, tensors.optimizer);
    const std::vector<StatePart> parts{
        {.name = "extra", .tensors = targets(random, tensors.extra)}};
    load_checkpoint(checkpoint, model, optimizer, 0, nullptr, parts);
    require_values(model, tensors.model);
    require_values(optimizer, tensors.optimizer);
    require_values(parts[0].tensors, tensors.extra);
  }
  // Whoever held what: the model's files are plain ones.
  std::size_t found = 0;
  for (const auto& [name, file] : checkpoint.manifest.files) {
    if (!name.starts_with("model") || !name.ends_with(".safetensors")) continue;
    for (const auto& [tensor, values] : read_safetensors(path / name)) {
      for (const KnownTensor& known : tensors.model) {
        if (known.name != tensor) continue;
        require(values.equal(known.values()), tensor + " in " + name);
        ++found;
      }
    }
  }
  require(found == tensors.model.size(), "all of the model's tensors, whole");
}

// In ranks, as LibTorch's operations start threads, after which no more ranks are forked.
TEST(Boxes, AnyPartsGiveAnyOtherPartsBack) {
  const int64_t cases = runs_long_tests() ? 2000 : 40;
  tell_sample(static_cast<std::size_t>(cases), 2000, "ways to cut tensors");
  const TemporaryFolder folder;
  const auto outcome = in_ranks(kRanks, [&](World& world) {
    BackgroundSave background(world.ranks().separate("saving"));
    for (int64_t seed = 1; seed <= cases; ++seed) {
      try {
        const auto saved = save_case(folder.path(), seed, world.ranks(), background);
        if (world.ranks().is_first()) read_case(saved.path, seed);
        world.ranks().barrier();
      } catch (const std::exception& error) {
        throw std::runtime_error("seed " + std::to_string(seed) + ": " + error.what());
      }
    }
  });
  EXPECT_EQ(outcome.message, "");
}

/// Columns of a matrix of 6 rows and 8 columns, whose elements are their own numbers.
ShardedTensorView columns(std::string name, int64_t first, int64_t count,
                          std::vector<int64_t> replicas) {
  const KnownTensor tensor{.name = std::move(name), .shape = {6, 8}};
  const TensorPart part{.box = TensorBox{{0, first}, {6, count}}, .begin = 0, .end = 6 * count};
  return {.name = tensor.name,
          .shape = tensor.shape,
          .dtype = at::kFloat,
          .box = part.box,
          .begin = 0,
          .end = part.end,
          .local = tensor.values(part),
          .replicas = std::move(replicas)};
}

int64_t version_in(const std::filesystem::path& checkpoint) {
  const std::string text = slurp(checkpoint / kManifestFile);
  const std::string field = "\"format_version\": ";
  return std::stoll(text.substr(text.find(field) + field.size()));
}

TEST(Boxes, TheVersionIsTheOlderOneWhereNoneIsWritten) {
  const TemporaryFolder folder;
  const auto outcome = in_ranks(2, [&](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    Snapshot snapshot;
    snapshot.rng_states = {{"cpu", tensors::zeros({16}, at::kByte)}};
    // Put together in the model; rows are a range.
    snapshot.model = {columns("w", 4 * rank, 4, {rank})};
    snapshot.optimizer = {columns("w.m", 0, 8, {0})};
    ShardedTensorView& rows = snapshot.optimizer[0];
    rows.box = TensorBox{{3 * rank, 0}, {3, 8}};
    rows.end = 24;
    rows.local = tensors::arange(24 * rank, 24 * rank + 24, at::kFloat);
    rows.replicas = {rank};
    snapshot.state.step = 1;
    const auto without = save_checkpoint(folder.path(), snapshot, {}, ranks);
    snapshot.optimizer = {columns("w.m", 4 * rank, 4, {rank})};
    snapshot.state.step = 2;
    const auto with = save_checkpoint(folder.path(), snapshot, {}, ranks);
    if (!ranks.is_first()) return;
    require(version_in(without.path) == 2, "version 2");
    require(version_in(with.path) == 3, "version 3");
    const SafetensorsFile file(with.path / "optimizer.safetensors");
    for (const char* name : {"w.m[0:6,0:4]", "w.m[0:6,4:8]"}) {
      const SafetensorsEntry* entry = file.find(name);
      require(entry != nullptr && entry->shape == std::vector<int64_t>{6, 4}, name);
    }
    for (const auto& path : {without.path, with.path}) {
      const auto model = whole_tensor("w", tensors::zeros({6, 8}));
      const auto optimizer = whole_tensor("w.m", tensors::zeros({6, 8}));
      load_checkpoint(verify_checkpoint(path), std::vector{model}, std::vector{optimizer});
      require(model.local.view(-1).equal(tensors::arange(48, at::kFloat)), "the model");
      require(optimizer.local.view(-1).equal(tensors::arange(48, at::kFloat)), "the optimizer");
    }
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Boxes, ThatDoNotMakeUpATensorAreRefusedOnAll) {
  const TemporaryFolder folder;
  const auto outcome = in_ranks(2, [&](World& world) {
    const int64_t rank = world.ranks().rank();
    const auto require_refused = [&](const ShardedTensorView& view, const std::string& wanted) {
      Snapshot snapshot;
      snapshot.model = {view};
      std::string text = "saved";
      try {
        save_checkpoint(folder.path(), snapshot, {}, world.ranks());
      } catch (const std::logic_error& error) {
        text = error.what();
      }
      require(text.find(wanted) != std::string::npos, text);
    };
    require_refused(columns("w", 3 * rank, 4, {rank}), "the ranks' boxes of 'w' overlap");
    require_refused(columns("w", 5 * rank, 3, {rank}), "'w' hold 36 of its 48 elements");
    require_refused(columns("w", rank, 7, {0, 1}), "another range of 'w'");
    ShardedTensorView outside = columns("w", 0, 8, {0, 1});
    outside.box->offsets[1] = 1;
    require_refused(outside, "box of tensor 'w' does not lie in its shape");
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Boxes, ChannelsLastIsSavedInLogicalOrderAndFilledAgain) {
  const TemporaryFolder folder;
  const at::Tensor logical = tensors::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  const at::Tensor weight = logical.contiguous(at::MemoryFormat::ChannelsLast);
  // As DDP gives it, on one rank.
  const NamedParameter parameter{
      .name = "conv.weight",
      .tensor = weight,
      .shard = ShardRange{.shape = {2, 3, 4, 5}, .begin = 0, .end = weight.numel()}};
  Snapshot snapshot;
  snapshot.model = {view_of(parameter)};
  snapshot.optimizer = {state_view(parameter, "exp_avg", weight.mul(2)),
                        whole_tensor("turned", logical.flatten(1).t())};
  snapshot.rng_states = {{"cpu", tensors::zeros({16}, at::kByte)}};
  ASSERT_FALSE(snapshot.optimizer[0].local.is_contiguous());
  const auto saved = save_checkpoint(folder.path(), snapshot);
  EXPECT_TRUE(read_safetensors(saved.path / "model.safetensors").at("conv.weight").equal(logical));
  const auto states = read_safetensors(saved.path / "optimizer.safetensors");
  EXPECT_TRUE(states.at("conv.weight.exp_avg").equal(logical.mul(2)));
  EXPECT_TRUE(states.at("turned").equal(logical.flatten(1).t()));

  weight.zero_();
  for (auto& view : snapshot.optimizer) view.local = tensors::zeros({}).expand(view.shape).clone();
  load_checkpoint(verify_checkpoint(saved.path), snapshot.model, snapshot.optimizer);
  EXPECT_TRUE(weight.equal(logical));
  EXPECT_TRUE(weight.is_contiguous(at::MemoryFormat::ChannelsLast)) << "in its own memory";
  EXPECT_TRUE(snapshot.optimizer[0].local.equal(logical.mul(2)));
}

}  // namespace
}  // namespace phalanx
