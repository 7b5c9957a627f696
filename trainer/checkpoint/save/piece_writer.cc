// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/piece_writer.h"

#include <fcntl.h>

#include <span>
#include <utility>

#include "trainer/checkpoint/box_values.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

/// A smaller piece waits for the fsync: it is not worth a request of its own.
constexpr uint64_t kWorthWriting = uint64_t{1} << 20;

/// Bytes that the disk may have to write at a time before more are given to it.
constexpr uint64_t kMaxStarted = uint64_t{64} << 20;

std::span<const std::byte> bytes_of(const at::Tensor& values) {
  return {static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()};
}

/// Keeps the first error, so that what others wait for can go on.
class FirstError {
 public:
  template <class Action>
  void keep(const Action& action) {
    if (error_) return;
    try {
      action();
    } catch (const std::exception&) {
      error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

}  // namespace

PieceWriter::PieceWriter(const WritePlan& plan, std::filesystem::path folder, Ranks ranks,
                         ByteProgress* progress)
    : plan_(plan), folder_(std::move(folder)), ranks_(std::move(ranks)), progress_(progress) {}

void PieceWriter::make_files() {
  for (std::size_t i = 0; i < plan_.files.size(); ++i) {
    const PlannedFile& planned = plan_.files[i];
    if (planned.maker != ranks_.rank()) continue;
    File file(folder_ / planned.name, O_WRONLY | O_CREAT | O_EXCL);
    file.allocate(planned.size);
    file.write(planned.head);
    files_.emplace(static_cast<int64_t>(i), std::move(file));
  }
}

File& PieceWriter::file_of(const PlannedPiece& piece) {
  const auto found = files_.find(piece.file);
  if (found != files_.end()) return found->second;
  const auto& name = plan_.files[static_cast<std::size_t>(piece.file)].name;
  return files_.emplace(piece.file, File(folder_ / name, O_WRONLY)).first->second;
}

at::Tensor PieceWriter::room_for(const PlannedPiece& piece) const {
  return tensors::empty({elements_of(plan_, piece)}, tensor_of(plan_, piece).dtype);
}

/// Writes a piece once all of its values are here.
void PieceWriter::put(const PlannedPiece& piece, const at::Tensor& values) {
  if (!piece.is_put_together) return write_piece(piece, values);
  const HeldTensor& tensor = tensor_of(plan_, piece);
  if (!together_.defined()) together_ = tensors::empty({piece.end - piece.begin}, tensor.dtype);
  const TensorPart part{.box = std::nullopt, .begin = piece.begin, .end = piece.end};
  unpack(values, share_of(tensor, piece), together_, part.in(tensor.shape));
  if (!piece.is_last_share) return;
  write_piece(piece, together_);
  together_.reset();
}

void PieceWriter::write_piece(const PlannedPiece& piece, const at::Tensor& values) {
  const auto bytes = bytes_of(values);
  const std::vector<uint64_t> sums = checksums_of(bytes, plan_.chunk_bytes);
  checksums_.insert(checksums_.end(), sums.begin(), sums.end());
  File& file = file_of(piece);
  file.write_at(bytes, piece.offset);
  keep_disk_busy(file, piece.offset, bytes.size());
  if (progress_ != nullptr) progress_->done += bytes.size();
}

/// The disk works while the next pieces are copied, not only at the end; and what it has written
/// leaves the page cache, so that a checkpoint pushes nothing else out of memory.
void PieceWriter::keep_disk_busy(File& file, uint64_t offset, uint64_t size) {
  if (size < kWorthWriting) return;
  file.start_sync(offset, size);
  started_.push_back({.file = &file, .offset = offset, .size = size});
  for (started_bytes_ += size; started_bytes_ > kMaxStarted; started_.pop_front()) {
    const Started& oldest = started_.front();
    oldest.file->finish_sync(oldest.offset, oldest.size);
    started_bytes_ -= oldest.size;
  }
}

std::vector<uint64_t> PieceWriter::write(const PieceValues& values) {
  const int64_t rank = ranks_.rank();
  FirstError error;
  // All ranks go through the pieces in one order, so none waits for one that waits for it.
  for (std::size_t i = 0; i < plan_.pieces.size(); ++i) {
    const PlannedPiece& piece = plan_.pieces[i];
    if (piece.source == rank && piece.writer == rank) {
      error.keep([&] { put(piece, values(i)); });
    } else if (piece.source == rank) {
      at::Tensor sent;
      error.keep([&] { sent = values(i); });
      ranks_.send(sent.defined() ? sent : room_for(piece), piece.writer);
    } else if (piece.writer == rank) {
      const at::Tensor received = room_for(piece);
      ranks_.receive(received, piece.source);
      error.keep([&] { put(piece, received); });
    }
  }
  for (auto& [index, file] : files_) error.keep([&file = file] { file.sync(); });
  error.rethrow();
  return std::move(checksums_);
}

}  // namespace phalanx
