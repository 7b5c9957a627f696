// SPDX-License-Identifier: Apache-2.0
// Every layout's checkpoint into every layout: values, what comes after, bytes read, memory.
// With --config=long --test_output=all it prints the tables of docs/resharding.md; else each source
// goes into two layouts.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>

#include "tests/long.h"
#include "tests/trainer/checkpoint/process_figures.h"
#include "tests/trainer/checkpoint/training_layout.h"
#include "tests/trainer/checkpoint/whole_values.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/save/background_save.h"
#include "trainer/checkpoint/save/planned_save.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 2;
constexpr double kMiB = 1 << 20;

const std::vector<TrainingLayout>& layouts() {
  static const std::vector<TrainingLayout> all{
      {.name = "one rank"},
      {.name = "DDP 2", .ranks = 2},
      {.name = "FULL_SHARD 2", .ranks = 2, .strategy = ShardingStrategy::full_shard},
      {.name = "FULL_SHARD 4", .ranks = 4, .strategy = ShardingStrategy::full_shard},
      {.name = "HYBRID_SHARD 2x2",
       .ranks = 4,
       .strategy = ShardingStrategy::hybrid_shard,
       .shard_group_size = 2},
      {.name = "SHARD_GRAD_OP 3", .ranks = 3, .strategy = ShardingStrategy::shard_grad_op}};
  return all;
}

/// A layout whose ranks lie on hosts.
struct Source {
  TrainingLayout layout;
  std::string hosts;  ///< A letter for each rank; none: all on this one.

  std::string name() const { return layout.name + (hosts.empty() ? "" : ", hosts " + hosts); }
};

/// For GoogleTest's messages.
void PrintTo(const Source& source, std::ostream* out) { *out << source.name(); }

std::vector<Source> sources() {
  std::vector<Source> all;
  for (const TrainingLayout& layout : layouts()) all.push_back({.layout = layout, .hosts = {}});
  all.push_back({.layout = layouts()[4], .hosts = "aabb"});  // a copy on each
  all.push_back({.layout = layouts()[4], .hosts = "abab"});  // a half of both copies on each
  all.push_back({.layout = layouts()[3], .hosts = "aabb"});  // neither has all
  return all;
}

/// Whether a source goes into a layout: always in a long test, else into two that differ from one
/// source to the next, so that all are reached.
bool goes_into(const Source& source, const TrainingLayout& target) {
  if (runs_long_tests()) return true;
  const auto all = sources();
  const auto from = std::ranges::find(all, source.name(), &Source::name) - all.begin();
  const auto into =
      std::ranges::find(layouts(), target.name, &TrainingLayout::name) - layouts().begin();
  return from % 3 == into % 3;
}

/// What ranks tell the test.
using Figures = std::vector<double>;

void tell(const fs::path& folder, const Ranks& ranks, const Figures& figures) {
  std::ofstream file(folder / fmt::format("figures.{}", ranks.rank()));
  for (const double figure : figures) file << fmt::format("{} ", figure);
}

/// Each rank's.
std::vector<Figures> told(const fs::path& folder, int64_t ranks) {
  std::vector<Figures> all;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::ifstream file(folder / fmt::format("figures.{}", rank));
    all.emplace_back(std::istream_iterator<double>(file), std::istream_iterator<double>());
  }
  return all;
}

double most(const std::vector<Figures>& figures, std::size_t which) {
  double largest = 0;
  for (const Figures& of_rank : figures) largest = std::max(largest, of_rank.at(which));
  return largest;
}

uint64_t bytes_of(std::span<const ShardedTensorView> views) {
  uint64_t bytes = 0;
  for (const auto& view : views) bytes += view.local.nbytes();
  return bytes;
}

/// What one rank writes in a save.
uint64_t bytes_of_rank(const WritePlan& plan, int64_t rank) {
  uint64_t bytes = 0;
  for (const PlannedPiece& piece : plan.pieces) {
    if (piece.source != rank) continue;
    const auto& tensors = plan.parts[static_cast<std::size_t>(piece.part)].tensors;
    bytes += static_cast<uint64_t>(piece.end - piece.begin) *
             c10::elementSize(tensors[static_cast<std::size_t>(piece.tensor)].dtype);
  }
  return bytes;
}

Snapshot snapshot_of(const LaidOutTraining& training) {
  Snapshot snapshot;
  snapshot.state.step = kSteps;
  snapshot.model = training.model();
  snapshot.optimizer = training.optimizer();
  snapshot.rng_states = rng_states();
  return snapshot;
}

uint64_t memory_of(const std::function<void()>& action) {
  const GrownMemory grown;
  action();
  return grown.most_bytes();
}

/// The folders of one source.
struct Folders {
  explicit Folders(const fs::path& folder)
      : checkpoints(folder / "checkpoints"),
        in_background(folder / "in_background"),
        saved(folder / "saved"),
        next(folder / "next"),
        checkpoint(checkpoints / "step-00000002") {}

  fs::path checkpoints;
  fs::path in_background;
  WholeValues saved;  ///< What was saved.
  WholeValues next;   ///< What came a step later.
  fs::path checkpoint;
};

/// Trains, saves, and goes on for a step. Tells the loss of that step, the most memory beside the
/// model that saving took, and in the background, and the bytes that the rank copied for that.
void train_and_save(const Source& source, const fs::path& folder, const Ranks& ranks) {
  at::set_num_threads(1);
  const Folders to(folder);
  LaidOutTraining training(source.layout, ranks, /*seed=*/1);
  for (int64_t step = 0; step < kSteps; ++step) training.step(step);
  to.saved.write(training.views());

  SaveOptions options;
  if (!source.hosts.empty()) {
    options.host = source.hosts[static_cast<std::size_t>(ranks.rank())];
  }
  const uint64_t memory =
      memory_of([&] { save_checkpoint(to.checkpoints, snapshot_of(training), options, ranks); });
  const PlannedSave plan(to.in_background, snapshot_of(training), options, ranks);
  const uint64_t copied = bytes_of_rank(plan.plan(), ranks.rank());
  BackgroundSave background(ranks.separate("saving in the background"));
  const uint64_t background_memory = memory_of([&] {
    background.start(to.in_background, snapshot_of(training), options, ranks);
    background.finish();
  });
  const double loss = training.step(kSteps);
  to.next.write(training.views());
  tell(folder, ranks,
       {loss, static_cast<double>(memory), static_cast<double>(background_memory),
        static_cast<double>(copied)});
}

/// Loads, and goes on for a step. Tells the rank's share, the bytes of tensors that it read, all
/// that it read, the most memory beside the model that this took, the loss and the largest
/// difference of that step.
void load_and_train(const TrainingLayout& layout, const fs::path& folder, const Ranks& ranks) {
  at::set_num_threads(1);
  const Folders from(folder);
  LaidOutTraining training(layout, ranks, /*seed=*/2);
  const std::vector<ShardedTensorView> views = training.views();
  for (const auto& view : views) view.local.fill_(-7);  // its memory is there, too

  uint64_t read = 0;
  const uint64_t read_before = bytes_read_so_far();
  uint64_t read_after = 0;
  const uint64_t memory = memory_of([&] {
    const Checkpoint checkpoint = open_checkpoint(from.checkpoint);
    read = load_checkpoint(checkpoint, training.model(), training.optimizer(), ranks.rank())
               .bytes_read;
    read_after = bytes_read_so_far();
  });
  require(from.saved.difference(views) == 0, "what was loaded is what was saved, bit for bit");
  const double loss = training.step(kSteps);
  tell(folder, ranks,
       {static_cast<double>(bytes_of(views)), static_cast<double>(read),
        static_cast<double>(read_after - read_before), static_cast<double>(memory), loss,
        from.next.difference(training.views())});
}

/// Lengths of what is read beside tensors: the manifest and the heads of files.
uint64_t bytes_of_headers(const fs::path& checkpoint) {
  const Manifest manifest = load_manifest(checkpoint);
  uint64_t bytes = fs::file_size(checkpoint / "manifest.json");
  for (const auto& [name, file] : manifest.files) bytes += file.head_bytes;
  return bytes;
}

std::string row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

class ReshardMatrix : public testing::TestWithParam<Source> {
 protected:
  static void SetUpTestSuite() {
    std::vector<std::string> head{"saved by"};
    for (const TrainingLayout& layout : layouts()) head.push_back(layout.name);
    for (std::string* table : {&read_, &memory_, &differences_}) {
      *table = row(head) + row(std::vector<std::string>(head.size(), "---"));
    }
    saves_ = row({"saved by", "written by a rank", "memory", "in the background"}) +
             row({"---", "---", "---", "---"});
  }
  static void TearDownTestSuite() {
    std::cout << "bytes read, of the rank's share\n\n"
              << read_ << '\n'
              << "memory that loading takes, MiB\n\n"
              << memory_ << '\n'
              << "largest difference after another step: of the loss, of weights and moments\n\n"
              << differences_ << '\n'
              << "memory that saving takes, MiB\n\n"
              << saves_ << '\n';
  }

  static std::string read_, memory_, differences_, saves_;
};

std::string ReshardMatrix::read_, ReshardMatrix::memory_, ReshardMatrix::differences_,
    ReshardMatrix::saves_;

TEST_P(ReshardMatrix, IntoEveryLayout) {
  const Source& source = GetParam();
  const TemporaryFolder folder;
  const auto saving = in_ranks(source.layout.ranks, [&](World& world) {
    train_and_save(source, folder.path(), world.ranks());
  });
  ASSERT_EQ(saving.message, "");
  const std::vector<Figures> saved = told(folder.path(), source.layout.ranks);
  for (const Figures& rank : saved) {
    EXPECT_LE(rank[1], 6 * kMiB);            // at most a piece that goes to another host
    EXPECT_LE(rank[2], rank[3] + 6 * kMiB);  // the copy beside it
  }
  saves_ += row({source.name(), fmt::format("{:.1f}", most(saved, 3) / kMiB),
                 fmt::format("{:.1f}", most(saved, 1) / kMiB),
                 fmt::format("{:.1f}", most(saved, 2) / kMiB)});
  const double headers =
      static_cast<double>(bytes_of_headers(folder / "checkpoints/step-00000002"));

  std::vector<std::string> read{source.name()}, memory{source.name()}, differences{source.name()};
  for (const TrainingLayout& target : layouts()) {
    if (!goes_into(source, target)) {
      for (auto* cells : {&read, &memory, &differences}) cells->emplace_back("");
      continue;
    }
    SCOPED_TRACE(source.name() + " into " + target.name);
    const auto loading = in_ranks(
        target.ranks, [&](World& world) { load_and_train(target, folder.path(), world.ranks()); });
    ASSERT_EQ(loading.message, "");
    double most_read = 0;
    const std::vector<Figures> loaded = told(folder.path(), target.ranks);
    for (const Figures& rank : loaded) {
      most_read = std::max(most_read, rank[1] / rank[0]);
      EXPECT_LE(rank[1], 1.05 * rank[0]);
      EXPECT_LE(rank[2], rank[1] + headers + 8192) << "beside tensors";
    }
    EXPECT_LE(most(loaded, 3), 4 * kMiB);
    const double loss = std::abs(loaded[0][4] - saved[0][0]);
    const double values = most(loaded, 5);
    const bool is_same = target.name == source.layout.name;
    EXPECT_LE(loss, is_same ? 0 : 2e-6);
    EXPECT_LE(values, is_same ? 0 : 5e-7);
    read.push_back(fmt::format("{:.4f}", most_read));
    memory.push_back(fmt::format("{:.2f}", most(loaded, 3) / kMiB));
    differences.push_back(fmt::format("{:.1e}, {:.1e}", loss, values));
  }
  read_ += row(read);
  memory_ += row(memory);
  differences_ += row(differences);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, ReshardMatrix, testing::ValuesIn(sources()),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : info.param.name()) {
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace phalanx
