// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/loader.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/batch_memory.h"
#include "trainer/data/deal.h"
#include "trainer/data/length_windows.h"
#include "trainer/data/prefetcher.h"
#include "trainer/data/read_batch.h"
#include "trainer/data/sample_order.h"

namespace phalanx {
namespace {

// A drawn order takes 8 bytes a sample, and seconds an epoch, above this.
constexpr int64_t kMostDrawn = 1 << 22;

SampleOrder order_of_epoch(const LoaderConfig& config, int64_t samples, uint64_t seed,
                           int64_t epoch) {
  if (!config.shuffle) return SampleOrder::plain(samples);
  const auto suitable = samples > kMostDrawn ? OrderKind::computed : OrderKind::distributed_sampler;
  return config.order.value_or(suitable) == OrderKind::computed
             ? SampleOrder::computed(samples, seed, epoch)
             : SampleOrder::drawn(samples, seed, epoch);
}

class Loader : public BatchSource {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config, Deal deal,
         const BatchRequest& request)
      : dataset_(std::move(dataset)),
        config_(config),
        deal_(deal),
        dealt_(deal),
        seed_(request.seed),
        gpu_(request.gpu) {}

  int64_t samples_per_epoch() const override { return deal_.samples_per_epoch(); }
  int64_t batches_per_epoch() const override { return deal_.batches_after(0); }
  int64_t max_broken() const override { return config_.max_broken; }
  std::string fingerprint() const override { return dataset_->fingerprint(); }

  void start_epoch(int64_t epoch, int64_t consumed) override {
    prefetcher_.reset();  // Before the order that its workers read.
    dealt_ = deal_;
    order_ = order_of_epoch(config_, deal_.samples, seed_, epoch);
    open_epoch(epoch, config_.shuffle ? std::optional(seed_) : std::nullopt);
    windows_ = length_windows();
    deal_from(consumed);
  }

  void start_first(int64_t samples) override {
    start_some(samples);
    order_ = SampleOrder::plain(deal_.samples);
    windows_.reset();
    deal_from(0);
  }

  void start_spread(int64_t samples) override {
    start_some(samples);
    order_ = SampleOrder::spread(deal_.samples, dealt_.samples);
    windows_ = length_windows();
    deal_from(0);
  }

  std::string describe(int64_t sample, const std::string& problem) const override {
    return (epoch_ ? epoch_ : dataset_)->describe(sample, problem);
  }

  std::unique_ptr<Batch> read_again(std::span<const int64_t> samples) const override {
    return read_batch(epoch_ ? *epoch_ : *dataset_, samples);
  }

  std::unique_ptr<Batch> next() override {
    if (next_ == count_) return nullptr;
    std::unique_ptr<Batch> batch = prefetcher_ ? prefetcher_->next() : pinned(next_);
    ++next_;
    return batch;
  }

 private:
  // In the data's own order.
  void start_some(int64_t samples) {
    prefetcher_.reset();
    dealt_ = deal_;
    dealt_.samples = std::min(samples, deal_.samples);
    dealt_.drop_last = false;
    open_epoch(0, std::nullopt);
  }

  void open_epoch(int64_t epoch, std::optional<uint64_t> seed) {
    epoch_ = dataset_->of_epoch(epoch, seed);
    if (!epoch_) epoch_ = dataset_;
  }

  void deal_from(int64_t consumed) {
    consumed_ = consumed;
    count_ = dealt_.batches_after(consumed);
    next_ = 0;
    if (config_.num_workers > 0 && count_ > 0) {
      prefetcher_ = std::make_unique<Prefetcher>([this](int64_t number) { return pinned(number); },
                                                 count_, config_.num_workers,
                                                 config_.num_workers * config_.prefetch_batches);
    }
  }

  std::unique_ptr<Batch> pinned(int64_t number) const {
    auto batch = make(number);
    if (gpu_) pin(*batch, *gpu_);
    return batch;
  }

  std::unique_ptr<Batch> make(int64_t number) const {
    const auto indices = samples_at(dealt_.places(consumed_, number));
    // Nothing is left for this rank, but it takes part in the others' step: with one sample again,
    // as many as each of them has then.
    if (indices.empty()) return not_counted();
    if (config_.max_broken == 0) return read(indices);
    try {
      return read(indices);
    } catch (const BrokenSampleError&) {
      return without_broken(indices);
    }
  }

  std::unique_ptr<Batch> read(const std::vector<int64_t>& samples) const {
    return read_batch(*epoch_, samples);
  }

  // Tries each sample by itself.
  std::unique_ptr<Batch> without_broken(const std::vector<int64_t>& indices) const {
    std::vector<int64_t> whole;
    std::vector<BrokenSample> broken;
    for (const int64_t index : indices) {
      try {
        epoch_->batch(std::span(&index, 1));
        whole.push_back(index);
      } catch (const BrokenSampleError& error) {
        broken.push_back(error.sample());
      }
    }
    auto batch = whole.empty() ? not_counted() : read(whole);
    batch->broken = std::move(broken);
    return batch;
  }

  // A batch of the first sample that can be read.
  std::unique_ptr<Batch> not_counted() const {
    std::unique_ptr<Batch> batch;
    for (int64_t place = 0; !batch; ++place) {
      try {
        batch = read(samples_at({place}));
      } catch (const BrokenSampleError&) {
        if (place >= config_.max_broken || place + 1 >= dealt_.samples) throw;
      }
    }
    batch->counts = false;
    return batch;
  }

  std::optional<LengthWindows> length_windows() const {
    if (config_.sort_window == 1 || !epoch_->length(0)) return std::nullopt;
    return LengthWindows(
        dealt_.samples, config_.sort_window, [this](int64_t place) { return order_->at(place); },
        [this](int64_t sample) { return epoch_->length(sample).value(); });
  }

  std::vector<int64_t> samples_at(std::vector<int64_t> places) const {
    if (windows_) return windows_->samples_at(places);
    for (int64_t& place : places) place = order_->at(place);
    return places;
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderConfig config_;
  const Deal deal_;  // The deal of a whole epoch.
  Deal dealt_;       // The deal that has begun: an epoch, or its first samples.
  const uint64_t seed_;
  const std::optional<at::Device> gpu_;
  std::optional<SampleOrder> order_;
  std::shared_ptr<const Dataset> epoch_;  // The samples of the epoch.
  std::optional<LengthWindows> windows_;  // Where these differ in length.
  int64_t consumed_ = 0;
  int64_t count_ = 0;
  int64_t next_ = 0;
  std::unique_ptr<Prefetcher> prefetcher_;  // Last: its workers use the members above.
};

}  // namespace

void LoaderConfig::describe(config::Schema<LoaderConfig>& s) {
  s.field("shuffle", &LoaderConfig::shuffle, "a new order of the training samples every epoch");
  s.field(
       "order", &LoaderConfig::order,
       "how that order is made: drawn and stored as Python's DistributedSampler does, or computed "
       "sample by sample without memory; auto: computed for more than 2^22 samples")
      .choices({{"distributed_sampler", OrderKind::distributed_sampler},
                {"computed", OrderKind::computed}})
      .null_is("auto");
  s.field("sort_window", &LoaderConfig::sort_window,
          "where samples differ in length: of so many samples in that order, the longest come "
          "first, so that those of a batch need little padding; 1: the order as it is")
      .at_least(1)
      .unit("samples");
  s.field("drop_last", &LoaderConfig::drop_last,
          "leave out an epoch's last samples where they do not fill a batch on every rank");
  s.field("num_workers", &LoaderConfig::num_workers,
          "background threads that read ahead; 0 reads in the training thread")
      .in_range(0, 1024)
      .unit("threads")
      .resume_may_change();
  s.field("prefetch_batches", &LoaderConfig::prefetch_batches, "kept ready by each worker")
      .in_range(1, 65536)
      .unit("batches")
      .resume_may_change();
  s.field(
       "max_broken", &LoaderConfig::max_broken,
       "how many samples of a phase may be left out, over all ranks, because they cannot be read; "
       "their places stay empty")
      .at_least(0)
      .unit("samples")
      .resume_may_change();
  s.ineffective({"order"}, "shuffle is false", [](const LoaderConfig& c) { return !c.shuffle; });
  s.ineffective({"prefetch_batches"}, "num_workers is 0",
                [](const LoaderConfig& c) { return c.num_workers == 0; });
}

std::unique_ptr<BatchSource> load(std::shared_ptr<const Dataset> dataset,
                                  const LoaderConfig& config, const BatchRequest& request,
                                  bool training) {
  LoaderConfig used = config;
  if (!training) used.shuffle = used.drop_last = false;
  const Deal deal{.samples = dataset->size(),
                  .batch_size = request.batch_size,
                  .rank = request.rank,
                  .world_size = request.world_size,
                  .drop_last = used.drop_last};
  if (training && deal.samples_per_epoch() == 0) {
    throw UserError("drop_last leaves nothing to train on: there are " +
                    std::to_string(deal.samples) + " samples and a batch over all ranks takes " +
                    std::to_string(request.batch_size * request.world_size) +
                    "; set drop_last to false, lower training.batch_size or give more data");
  }
  require_room_for_batches(*dataset, request);
  return std::make_unique<Loader>(std::move(dataset), used, deal, request);
}

}  // namespace phalanx
