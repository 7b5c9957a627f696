// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/tensors.h"
#include "tests/trainer/checkpoint/sharded_run.h"
#include "tests/trainer/io/file_size_limit.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/checkpoint/load/verify.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Throws unless every rank of so many gets what was saved.
void require_values(const Checkpoint& checkpoint, int64_t rank, int64_t ranks) {
  const Snapshot wanted = snapshot_of(0, rank, ranks);
  Snapshot read = snapshot_of(0, rank, ranks);
  for (auto* views : {&read.model, &read.optimizer}) {
    for (auto& view : *views) view.local.fill_(-1);
  }
  const Loaded loaded = load_checkpoint(checkpoint, read.model, read.optimizer, rank);
  for (const auto& [got, expected] :
       {std::pair(&read.model, &wanted.model), {&read.optimizer, &wanted.optimizer}}) {
    for (std::size_t i = 0; i < got->size(); ++i) {
      const at::Tensor values = tensors::arange((*got)[i].begin, (*got)[i].end, at::kFloat);
      require((*got)[i].local.equal(values), (*expected)[i].name);
    }
  }
  if (rank < checkpoint.manifest.world_size) {
    require(loaded.rng_states.at("cpu").equal(tensors::full({16}, rank, at::kByte)), "rng");
  } else {
    require(loaded.rng_states.empty(), "no rng");
  }
}

// In a rank, as LibTorch's operations start threads, after which no more ranks are forked.
void require_opens_anywhere(const fs::path& path, int64_t ranks) {
  const Checkpoint checkpoint = verify_checkpoint(path);
  require(checkpoint.manifest.world_size == ranks, "world_size");
  for (const int64_t readers : {1, 2, 3, 5}) {
    for (int64_t rank = 0; rank < readers; ++rank) require_values(checkpoint, rank, readers);
  }
}

TEST(SaveOfRanks, OpensInAnyNumberOfRanksWhereverTheyLie) {
  for (const auto& [ranks, hosts] : {std::pair(2, 1), {3, 1}, {3, 2}, {4, 2}, {2, 2}}) {
    const TemporaryFolder folder;
    const auto outcome = in_ranks(ranks, [&, ranks = ranks, hosts = hosts](World& world) {
      const int64_t rank = world.ranks().rank();
      save_checkpoint(
          folder.path(), snapshot_of(5, rank, ranks),
          {.limits = {.file_bytes = 100'000}, .host = "host " + std::to_string(rank % hosts)},
          world.ranks());
      if (rank == 0) require_opens_anywhere(folder / "step-00000005", ranks);
    });
    ASSERT_EQ(outcome.message, "");
  }
}

TEST(SaveOfRanks, WhatFailsOnOneFailsOnAllAndTheOldOneStays) {
  const TemporaryFolder folder;
  const auto outcome = in_ranks(3, [&](World& world) {
    const Ranks& ranks = world.ranks();
    const auto save = [&](int64_t step) {
      // Two hosts, so that what rank 0 cannot get rid of has to be taken from it all the same.
      save_checkpoint(folder.path(), snapshot_of(step, ranks.rank(), 3),
                      {.host = ranks.rank() == 0 ? "a" : "b"}, ranks);
    };
    save(1);
    std::optional<FileSizeLimit> limit;
    if (ranks.rank() == 2) limit.emplace(1000);
    try {
      save(2);
      require(false, "the save fails");
    } catch (const SaveError& error) {
      const std::string text = error.what();
      require(text.starts_with("rank 2: cannot write"), text);
      require(text.find("ulimit -f") != std::string::npos, text);
      require(error.is_here() == (ranks.rank() == 2), "where it failed");
    }
    limit.reset();
    ranks.barrier();
    require(committed_steps(folder.path()) == std::vector<int64_t>{1}, "only the old one");
    require(std::distance(fs::directory_iterator(folder.path()), {}) == 2, "nothing is left");
    ranks.barrier();
    save(3);
    if (ranks.is_first()) verify_checkpoint(folder / "step-00000003");
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(SaveOfRanks, ViewsThatDoNotMakeUpATensorAreRefusedOnAll) {
  const TemporaryFolder folder;
  const auto outcome = in_ranks(2, [&](World& world) {
    const int64_t rank = world.ranks().rank();
    const auto refused = [&](const std::vector<ShardedTensorView>& model) -> std::string {
      Snapshot snapshot;
      snapshot.model = model;
      try {
        save_checkpoint(folder.path(), snapshot, {}, world.ranks());
      } catch (const std::logic_error& error) {
        return error.what();
      }
      return "saved";
    };
    const auto require_text = [&](const std::string& text, const std::string& wanted) {
      require(text.find(wanted) != std::string::npos, text);
    };
    require_text(refused({part("w", 6, 4 * rank, 3 + 3 * rank, {rank})}), "gap at element 3");
    require_text(refused({part("w", 6, 2 * rank, 3 + 3 * rank, {rank})}), "overlap at element 2");
    require_text(refused({part("w", 9, 3 * rank, 3 + 3 * rank, {rank})}), "6 of the 9 elements");
    require_text(refused({part(rank == 0 ? "v" : "w", 6, 0, 6, {0})}), "different tensors");
    require_text(refused({part("w", 6, 0, 6 - rank, {0, 1})}), "another range of 'w'");
  });
  EXPECT_EQ(outcome.message, "");
  EXPECT_FALSE(fs::exists(folder / "latest"));
}

TEST(LoadOfRanks, WhatOneFindsDamagedAllSkip) {
  const TemporaryFolder folder;
  const auto outcome = in_ranks(2, [&](World& world) {
    const int64_t rank = world.ranks().rank();
    for (const int64_t step : {1, 2}) {
      save_checkpoint(folder.path(), snapshot_of(step, rank, 2), {}, world.ranks());
    }
    if (rank == 0) {
      // The last element of 'cut', which rank 1 alone reads.
      const fs::path path = folder / "step-00000002/model.safetensors";
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const Checkpoint checkpoint = open_checkpoint(path.parent_path());
      for (const auto& tensor : checkpoint.manifest.tensors) {
        if (tensor.name != "cut") continue;
        const ManifestSlice& slice = tensor.slices.back();
        file.seekp(static_cast<std::streamoff>(slice.offset));
        file.put('x');
      }
    }
    world.ranks().barrier();
    const LoadedCheckpoint loaded =
        load_first_good(world.ranks(), candidates(folder.path()),
                        [&](const Checkpoint& checkpoint) { require_values(checkpoint, rank, 2); });
    require(loaded.checkpoint->manifest.state.step == 1, "the older one");
    require(loaded.warnings.size() == 1, "a warning");
    require(loaded.warnings[0].find("skipped step-00000002: rank 1: ") == 0, loaded.warnings[0]);
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
