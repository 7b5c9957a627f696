// SPDX-License-Identifier: Apache-2.0
// One rank's side of benchmarks/checkpoint: saves and loads a model's weights and AdamW's moments
// with Phalanx, or writes and reads as many bytes plainly.
//
//   checkpoint_probe '{"mode": MODE, "folder": FOLDER, "config": {GPT-2's sizes},
//                      "sharded": BOOL}'
//
// MODE: `phalanx` saves and loads, `background` saves while the caller could go on, `plain` is one
// file, written and read from end to end by a process alone, `plain-allocated` one that is given
// its room before it is written. The environment says which rank this is. FOLDER is empty;
// FOLDER/result.RANK is written there: by name what each took.

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/cost.h"
#include "models/gpt2/config.h"
#include "trainer/api/parameters.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/save/background_save.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/config/tree/schema.h"
#include "trainer/io/file.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/registry/kinds.h"
#include "trainer/tensors/random.h"

namespace phalanx {

/// What nlohmann's library looks for beside Cost.
static void to_json(nlohmann::json& json, const Cost& cost) {
  json = {
      {"seconds", cost.seconds}, {"cpu_seconds", cost.cpu_seconds}, {"extra_mib", cost.extra_mib}};
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Views = std::vector<ShardedTensorView>;

/// What is saved: as a trainer has it.
struct TrainedState {
  Views model;
  Views optimizer;
};

struct Bench {
  fs::path folder;
  const Ranks& ranks;
  TrainedState state;
  Json results = Json::object();
};

std::span<std::byte> bytes_of(const ShardedTensorView& view) {
  return {static_cast<std::byte*>(view.local.mutable_data_ptr()), view.local.nbytes()};
}

template <class Action>
void for_each_view(const TrainedState& state, const Action& action) {
  for (const auto& view : state.model) action(view);
  for (const auto& view : state.optimizer) action(view);
}

/// This rank's half of each tensor where the state is sharded, otherwise all of it.
ShardedTensorView held(const std::string& name, const at::Tensor& tensor, bool sharded,
                       const Ranks& ranks) {
  ShardedTensorView view = whole_tensor(name, tensor);
  view.replicas.clear();
  if (!sharded) {
    for (int64_t rank = 0; rank < ranks.world_size(); ++rank) view.replicas.push_back(rank);
    return view;
  }
  view.begin = tensor.numel() * ranks.rank() / ranks.world_size();
  view.end = tensor.numel() * (ranks.rank() + 1) / ranks.world_size();
  view.local = tensor.view(-1).narrow(0, view.begin, view.end - view.begin).clone();
  view.replicas = {ranks.rank()};
  return view;
}

gpt2::Config config_of(const Json& sizes) {
  gpt2::Config config;
  config.n_layer = sizes.at("n_layer");
  config.n_embd = sizes.at("n_embd");
  config.n_head = sizes.at("n_head");
  config.vocab_size = sizes.at("vocab_size");
  config.n_positions = sizes.at("n_positions");
  return config;
}

TrainedState make_state(const Json& sizes, bool sharded, const Ranks& ranks) {
  const at::NoGradGuard no_grad;
  seed_everything(0);
  // By name: Gpt2's header takes ten seconds to compile.
  const auto model =
      Registry<ModelBase>::instance().at("gpt2").make(config::write(config_of(sizes)));
  TrainedState state;
  for (const auto& [name, tensor, shard, is_table] : named_parameters(*model)) {
    const at::Tensor values = tensor.detach();
    state.optimizer.push_back(held(name + ".exp_avg", values.mul(0.1), sharded, ranks));
    state.optimizer.push_back(held(name + ".exp_avg_sq", values.mul(values), sharded, ranks));
    state.model.push_back(held(name, values, sharded, ranks));
  }
  return state;
}

uint64_t bytes_of(const TrainedState& state) {
  uint64_t bytes = 0;
  for_each_view(state, [&](const auto& view) { bytes += view.local.nbytes(); });
  return bytes;
}

std::vector<uint64_t> all_checksums(const TrainedState& state) {
  std::vector<uint64_t> sums;
  for_each_view(state, [&](const auto& view) {
    for (const uint64_t sum : checksums_of(bytes_of(view), Manifest::kMinChunkBytes)) {
      sums.push_back(sum);
    }
  });
  return sums;
}

/// Has the kernel forget what it keeps of these files, which are on disk.
void evict(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const File file(entry.path(), O_RDONLY);
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

/// Loads twice, the first time from disk, and makes sure that what was saved has come back.
template <class Load>
void measure_loads(Bench& bench, const fs::path& saved, const std::string& name, const Load& load) {
  const auto expected = all_checksums(bench.state);
  for (const std::string from : {"cold", "warm"}) {
    for_each_view(bench.state, [](const auto& view) { view.local.zero_(); });
    if (from == "cold" && bench.ranks.is_first()) evict(saved);
    settle_memory(2 * bytes_of(bench.state));
    bench.results[name + " " + from] = measure_cost(bench.ranks, load);
    if (all_checksums(bench.state) != expected) throw std::runtime_error("other values came back");
  }
}

Snapshot snapshot_of(const Bench& bench, int64_t step) {
  Snapshot snapshot{.state = {},
                    .model = bench.state.model,
                    .optimizer = bench.state.optimizer,
                    .rng_states = rng_states()};
  snapshot.state.step = step;
  return snapshot;
}

void run_phalanx(Bench& bench) {
  fs::path saved;
  settle_memory(2 * bytes_of(bench.state));
  bench.results["save"] = measure_cost(bench.ranks, [&] {
    saved =
        save_checkpoint(bench.folder / "checkpoints", snapshot_of(bench, 1), {}, bench.ranks).path;
  });
  measure_loads(bench, saved, "load", [&] {
    load_checkpoint(open_checkpoint(saved), bench.state.model, bench.state.optimizer,
                    bench.ranks.rank());
  });
  std::vector<uint64_t> sums;
  bench.results["checksums"] =
      measure_cost(bench.ranks, [&] { sums = all_checksums(bench.state); });
}

/// Two saves, the second of which finds host memory taken already.
void run_background(Bench& bench) {
  BackgroundSave save(bench.ranks.separate("saving in the background"));
  for (const std::string number : {"first", "next"}) {
    SavedCheckpoint saved;
    Cost stall;
    settle_memory(2 * bytes_of(bench.state));
    const Cost all = measure_cost(bench.ranks, [&] {
      stall = measure_cost(bench.ranks, [&] {
        save.start(bench.folder / "checkpoints", snapshot_of(bench, number == "first" ? 1 : 2), {},
                   bench.ranks);
      });
      saved = save.finish();
    });
    bench.results[number + " stall"] = stall;
    bench.results[number + " until durable"] = all;
    bench.ranks.barrier();
    if (bench.ranks.is_first()) remove_path(saved.path);
    ::sync();
  }
}

void write_plainly(const Bench& bench, const fs::path& path, bool allocates) {
  constexpr std::size_t kBlock = std::size_t{16} << 20;
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (allocates) file.allocate(bytes_of(bench.state));
  for_each_view(bench.state, [&](const auto& view) {
    for (auto bytes = bytes_of(view); !bytes.empty();) {
      const std::size_t size = std::min(kBlock, bytes.size());
      file.write(bytes.first(size));
      bytes = bytes.subspan(size);
    }
  });
  file.sync();
}

void run_plain(Bench& bench, bool allocates) {
  const fs::path saved = bench.folder / "plain";
  fs::create_directories(saved);
  settle_memory(2 * bytes_of(bench.state));
  bench.results["save"] =
      measure_cost(bench.ranks, [&] { write_plainly(bench, saved / "state", allocates); });
  if (allocates) return;  // It is read as the other one is.

  measure_loads(bench, saved, "load", [&] {
    const File file(saved / "state", O_RDONLY);
    uint64_t offset = 0;
    for_each_view(bench.state, [&](const auto& view) {
      file.read(bytes_of(view), offset);
      offset += view.local.nbytes();
    });
  });
}

void run(const Json& request) {
  World world = init_from_env();
  const Ranks& ranks = world.ranks();
  Bench bench{.folder = request.at("folder").get<std::string>(),
              .ranks = ranks,
              .state = make_state(request.at("config"), request.at("sharded"), ranks)};
  bench.results["bytes"] = bytes_of(bench.state);
  const std::string mode = request.at("mode");
  if (mode == "phalanx") {
    run_phalanx(bench);
  } else if (mode == "background") {
    run_background(bench);
  } else if (mode == "plain") {
    run_plain(bench, false);
  } else if (mode == "plain-allocated") {
    run_plain(bench, true);
  } else {
    throw std::invalid_argument("no mode '" + mode + "'");
  }
  std::ofstream(bench.folder / ("result." + std::to_string(ranks.rank()))) << bench.results.dump();
  world.close();
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    phalanx::run(nlohmann::json::parse(argv[1]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkpoint_probe: %s\n", error.what());
    return 1;
  }
  return 0;
}
