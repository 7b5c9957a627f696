#include "trainer/metrics/tensorboard_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>

#include "trainer/base/host.h"
#include "trainer/metrics/event.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

// The seconds in the name of the folder's last event file; nothing when there is none.
std::optional<int64_t> last_file_time(const fs::path& folder) {
  std::optional<int64_t> last;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t seconds = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seconds);
    last = std::max(last.value_or(0), seconds);
  }
  return last;
}

}  // namespace

void TensorboardSink::open(const RunDescription& run, std::optional<int64_t> resumed_step) {
  const fs::path folder = run.log_dir;
  const double now = unix_time();
  const std::optional<int64_t> earlier = last_file_time(folder);
  // TensorBoard reads the files of a folder in the order of their names, and each only once the
  // one before it has ended, so this one's name must come last even within the same second.
  const int64_t seconds = std::max(static_cast<int64_t>(now), earlier.value_or(-1) + 1);
  file_.emplace(
      folder / fmt::format("{}{:010d}.{}.{}.0", kPrefix, seconds, host_name(), ::getpid()),
      O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
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
