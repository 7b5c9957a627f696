// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/sinks/tensorboard_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/host/host.h"
#include "trainer/metrics/event.h"
#include "trainer/metrics/event_file.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

struct EventFile {
  fs::path path;
  int64_t seconds = 0;  // in its name
};

// The folder's last one; nothing when there is none.
std::optional<EventFile> last_event_file(const fs::path& folder) {
  std::optional<EventFile> last;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    EventFile file{.path = entry.path()};
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), file.seconds);
    if (!last || file.seconds >= last->seconds) last = std::move(file);
  }
  return last;
}

}  // namespace

void TensorboardSink::open(const RunDescription& run, std::optional<int64_t> resumed_step) {
  const fs::path folder = run.log_dir;
  const double now = unix_time();
  const std::optional<EventFile> earlier = last_event_file(folder);
  if (earlier) cut_torn_event(earlier->path);
  // TensorBoard reads the files of a folder in the order of their names, and each only once the
  // one before it has ended, so this one's name must come last even within the same second.
  const int64_t seconds =
      std::max(static_cast<int64_t>(now), earlier ? earlier->seconds + 1 : int64_t{0});
  file_.emplace(
      folder / fmt::format("{}{:010d}.{}.{}.0", kPrefix, seconds, host_name(), ::getpid()), O_EXCL);
  std::string records = encode_record(encode_file_version_event(now));
  if (earlier || resumed_step) {
    records += encode_record(encode_session_start_event(now, resumed_step.value_or(0) + 1));
  }
  file_->append(records);
}

void TensorboardSink::write(const Record& record) {
  std::vector<std::pair<std::string, float>> scalars;
  for (const auto& [name, value] : record.fields) {
    const std::string tag = fmt::format("{}/{}", to_string(record.phase), name);
    if (const auto* real = std::get_if<double>(&value)) {
      scalars.emplace_back(tag, static_cast<float>(*real));
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      scalars.emplace_back(tag, static_cast<float>(*integer));
    }
  }
  if (scalars.empty()) return;
  file_.value().append(
      encode_record(encode_scalars_event(record.time, record.state.step, scalars)));
}

void TensorboardSink::close() { file_.reset(); }

REGISTER_SINK("tensorboard", TensorboardSink);

}  // namespace phalanx
