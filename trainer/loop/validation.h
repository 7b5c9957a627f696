// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/batch_source.h"
#include "trainer/api/loss.h"
#include "trainer/api/named_values.h"
#include "trainer/loop/broken_samples.h"
#include "trainer/loop/signal_agreement.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/step/pass_context.h"

namespace phalanx {

class ValidationSums;

/// Validation data of a name of its own, beside the task's.
struct ValidationSet {
  std::string name;
  std::shared_ptr<AnyTask> task;  ///< That made the data: its metrics are these data's.
  std::unique_ptr<BatchSource> data;
};

/// Called around each micro-batch of a validation.
struct ValidationHooks {
  std::function<void(const State&, const Batch&)> before;
  std::function<void(const State&, const Batch&, const Loss&)> after;
  /// Between two of them, on all ranks, where a signal asks for a checkpoint.
  std::function<void()> save;
  WorkCount count;
};

/// Measures a model on validation data: the task's own, and named sets. Leaves training's random
/// numbers, data order and mode as they were. Where `signals` are given, a signal to stop ends a
/// pass early, and its result is nothing. Every rank calls it, or none.
class Validation {
 public:
  /// What `context` refers to must outlive it. `batch_size`: samples of a micro-batch.
  Validation(const PassContext& context, int64_t batch_size)
      : context_(context), batch_size_(batch_size) {}

  const BatchSource* data() const { return data_.get(); }
  const std::vector<ValidationSet>& sets() const { return sets_; }
  /// Whether there is any data.
  bool has_data() const { return data_ || !sets_.empty(); }

  /// The task's own data; nullptr: it has none.
  void set_data(std::unique_ptr<BatchSource> data) { data_ = std::move(data); }
  /// Takes a set of an evaluation as the task's own data; files of the request in place of the
  /// named sets too. Throws UserError if there is none.
  void open(const BatchRequest& request);
  /// Adds a set: the request's files, read as the validation data of `task`, one more of the run's
  /// config. Throws UserError.
  void add_set(const std::string& name, std::shared_ptr<AnyTask> task, const BatchRequest& request);

  /// Means over all data (of `max_batches` micro-batches of each, at equal distances) and the
  /// task's metrics, then those of the named sets, as "books/loss".
  std::optional<NamedValues> means(std::optional<int64_t> max_batches, const ValidationHooks& hooks,
                                   SignalAgreement* signals);
  /// Throws UserError where texts are to be written, and the task has no data of its own: before
  /// the sets are measured.
  void require_text_data(int64_t texts) const;
  /// Means of the task's scores (AnyTask::text_scores) of the first samples of its own data, in
  /// their order (BatchSource::start_first). Throws UserError for a task that has none.
  std::optional<NamedValues> text_score_means(int64_t samples, const ValidationHooks& hooks,
                                              SignalAgreement* signals);
  /// Validates one micro-batch of each data, and writes texts for so many samples.
  void rehearse(int64_t texts, SignalAgreement* signals);
  /// The values that a validation gives, by the rehearsal; empty where it has found none.
  const std::vector<std::string>& names() const { return names_; }

  /// Those that the last validation has left out.
  const BrokenSamples& broken() const { return broken_; }

 private:
  // The data of a validation, and who measures on it.
  struct Measured {
    std::string prefix;  // of the values' names
    BatchSource& data;
    const AnyTask& task;
  };

  // The task's own data and the named sets. Throws UserError without any.
  std::vector<Measured> all_measured() const;
  std::optional<ValidationSums> sum(const Measured& measured, std::optional<int64_t> max_batches,
                                    const ValidationHooks& hooks, SignalAgreement* signals);
  void leave_out_broken(const ValidationSums& sums, const Measured& measured);
  std::unique_ptr<Batch> next_batch(BatchSource& data) const;

  PassContext context_;
  int64_t batch_size_;
  std::unique_ptr<BatchSource> data_;
  std::vector<ValidationSet> sets_;
  BrokenSamples broken_;
  std::vector<std::string> names_;
};

}  // namespace phalanx
