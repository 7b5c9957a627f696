// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/background_save.h"

#include <chrono>
#include <memory>
#include <utility>

#include "trainer/checkpoint/save/planned_save.h"
#include "trainer/checkpoint/save/together.h"
#include "trainer/memory/pinned_memory.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {

BackgroundSave::BackgroundSave(Ranks ranks, std::shared_ptr<const HostPins> pins)
    : ranks_(std::move(ranks)), pins_(std::move(pins)) {}

BackgroundSave::~BackgroundSave() {
  if (saved_.valid()) saved_.wait();
}

at::Tensor BackgroundSave::buffer(uint64_t bytes, bool pinned) {
  if (!buffer_.defined() || buffer_.nbytes() < bytes || is_pinned_ != pinned) {
    buffer_.reset();  // first, so that there are never two
    const auto size = static_cast<int64_t>(bytes);
    buffer_ = pinned ? pinned_empty({size}, at::kByte, pins_) : tensors::empty({size}, at::kByte);
    is_pinned_ = pinned;
  }
  return buffer_;
}

std::vector<at::Tensor> BackgroundSave::copy_values(const PlannedSave& save) {
  // Each at a multiple of what any dtype needs.
  constexpr uint64_t kAlignment = 64;
  uint64_t bytes = 0;
  bool on_gpu = false;
  std::vector<at::Tensor> values(save.plan().pieces.size());
  std::vector<uint64_t> places(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const PlannedPiece& piece = save.plan().pieces[i];
    if (piece.source != ranks_.rank()) continue;
    const at::Tensor& held = save.view_of(piece).local;
    on_gpu = on_gpu || !held.is_cpu();
    places[i] = bytes;
    const uint64_t size = static_cast<uint64_t>(elements_of(save.plan(), piece)) *
                          static_cast<uint64_t>(held.element_size());
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  const at::Tensor host = buffer(bytes, on_gpu);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (save.plan().pieces[i].source != ranks_.rank()) continue;
    const at::Tensor held = save.values(i);
    values[i] = host.narrow(0, static_cast<int64_t>(places[i]), static_cast<int64_t>(held.nbytes()))
                    .view(held.scalar_type());
    values[i].copy_(held);
  }
  return values;
}

void BackgroundSave::start(const std::filesystem::path& checkpoints_dir, Snapshot snapshot,
                           SaveOptions options, const Ranks& ranks) {
  progress_.begin(0);
  options.progress = &progress_;
  auto save = std::make_shared<PlannedSave>(checkpoints_dir, std::move(snapshot),
                                            std::move(options), ranks);
  std::vector<at::Tensor> copies;
  together(ranks, [&] { copies = copy_values(*save); });
  save->forget_tensors();
  saved_ = std::async(std::launch::async,
                      [save = std::move(save), copies = std::move(copies), ranks = ranks_] {
                        return save->run(ranks, [&](std::size_t piece) { return copies[piece]; });
                      });
}

bool BackgroundSave::is_done() const {
  return saved_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

SavedCheckpoint BackgroundSave::finish() { return saved_.get(); }

}  // namespace phalanx
