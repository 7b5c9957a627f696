// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/tree/no_fields.h"
#include "trainer/io/log_file.h"
#include "trainer/metrics/sink.h"

namespace phalanx {

/// Event files that TensorBoard reads, in `log_dir`: each number of a record as a scalar under the
/// tag `<phase>/<field>`, in single precision. A resumed run starts another file, which tells
/// TensorBoard to forget what the earlier ones hold beyond the resumed step.
class TensorboardSink : public Sink {
 public:
  using Config = config::NoFields;

  explicit TensorboardSink(const Config&) {}

  void open(const RunDescription& run, std::optional<int64_t> resumed_step) override;
  void write(const Record& record) override;
  void close() override;

 private:
  std::optional<LogFile> file_;
};

}  // namespace phalanx
