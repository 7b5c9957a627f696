// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/tokenize.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/data/text/tokenize_state.h"
#include "trainer/io/file.h"
#include "trainer/io/file_lock.h"
#include "trainer/tokenizers/unknown_token.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kBatchBytes = 1 << 20;

// Whether a document is for validation: by its number alone, so that it is the same in every run.
bool is_drawn(int64_t document, double fraction) {
  const auto drawn = static_cast<double>(XXH3_64bits(&document, sizeof document));
  return drawn < fraction * static_cast<double>(std::numeric_limits<uint64_t>::max());
}

TokenWriter::Layout layout_of(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  const bool is_small = tokenizer.vocabulary_size() <= std::numeric_limits<uint16_t>::max() + 1;
  const bool is_megatron = options.format == TokenFileFormat::megatron;
  return {.format = options.format,
          .type = is_small      ? TokenType::uint16
                  : is_megatron ? TokenType::int32
                                : TokenType::uint32,
          .end_of_text = tokenizer.end_of_text(),
          .file_tokens = options.file_tokens};
}

// Documents that are being encoded, or have been.
struct Batch {
  std::future<std::vector<EncodedDocument>> documents;
  DocumentReader::Position end;  // Behind them.
  uint64_t read_of_files = 0;    // Up to there.
};

// Reads texts, encodes them on several threads and hands them out in their order.
class EncodedBatches {
 public:
  EncodedBatches(const Tokenizer& tokenizer, const TokenizeOptions& options,
                 DocumentReader::Position from)
      : tokenizer_(tokenizer),
        options_(options),
        reader_(
            options.files, options.unit, from,
            [&tokenizer](std::string_view text) { return tokenizer.last_cut(text); },
            [&options](const fs::path& file, std::string_view begin) {
              require_text(file, begin, options.any_bytes);
            }) {}

  // False at the end.
  bool next(Batch& batch) {
    // One more than threads encode: the next is read meanwhile.
    while (!at_end_ && static_cast<int64_t>(batches_.size()) <= options_.threads) read_one();
    if (batches_.empty()) return false;
    batch = std::move(batches_.front());
    batches_.pop_front();
    return true;
  }

  // Before the first call of `next`: bytes of the files that an earlier start has read.
  uint64_t read_before() {
    reader_.open_next();
    return reader_.read_of_files();
  }

 private:
  void read_one() {
    std::vector<Document> documents = reader_.next(kBatchBytes);
    at_end_ = documents.empty();
    if (at_end_) return;
    auto encode = [this, documents = std::move(documents)] {
      return encode_documents(tokenizer_, documents, options_.files, options_.field,
                              options_.on_broken);
    };
    batches_.push_back({.documents = std::async(std::launch::async, std::move(encode)),
                        .end = reader_.position(),
                        .read_of_files = reader_.read_of_files()});
  }

  const Tokenizer& tokenizer_;
  const TokenizeOptions& options_;
  DocumentReader reader_;
  bool at_end_ = false;
  std::deque<Batch> batches_;  // Last: their threads use what stands above.
};

// Counts a document whose parts are all written.
void count(const UnfinishedDocument& document, bool validates, TokenizeSummary& summary) {
  if (document.tokens == 0) {
    summary.empty_documents += document.left_out == 0 ? 1 : 0;
    return;
  }
  summary.documents += 1;
  summary.tokens += document.tokens;
  summary.characters += document.characters;
  summary.longest = std::max(summary.longest, document.tokens);
  if (validates) {
    summary.validation_documents += 1;
    summary.validation_tokens += document.tokens;
  }
  summary.broken_characters += document.broken_characters;
}

// Makes the files in a folder; goes on where its state says.
class Making {
 public:
  Making(const LoadedTokenizer& tokenizer, const TokenizeOptions& options, const fs::path& folder)
      : options_(options),
        folder_(folder),
        texts_(states_of(options.files)),
        identity_(identity_of(tokenizer, options, texts_)),
        state_(begin()),
        layout_(layout_of(*tokenizer.tokenizer, options)),
        unknown_(unknown_token(tokenizer)),
        training_(folder, "train", layout_, state_.training),
        validation_(folder, "val", layout_, state_.validation) {}

  void run(const Tokenizer& tokenizer, ByteProgress& progress) {
    save();  // So that it is known from now on what is made here.
    EncodedBatches batches(tokenizer, options_, state_.position);
    progress.begin(progress.all, batches.read_before());
    Clock::time_point saved = Clock::now();
    Batch batch;
    std::vector<EncodedDocument> documents;
    while (next(batches, batch, documents)) {
      for (const EncodedDocument& document : documents) take(document);
      state_.position = batch.end;
      progress.done = batch.read_of_files;
      if (Clock::now() - saved < options_.save_every) continue;
      save();
      saved = Clock::now();
    }
    training_.finish();
    validation_.finish();
    // All is done: who goes on after a kill needs none of the files that are removed next.
    save();
    progress.done = progress.all.load();
  }

  // Throws UserError for a text that changed: what was read is neither the old one nor the new one.
  void require_unchanged() const {
    const std::vector<TextState> now = states_of(options_.files);
    const auto [text, other] = std::mismatch(texts_.begin(), texts_.end(), now.begin());
    if (text == texts_.end()) return;
    clear_work(folder_);
    const auto file = static_cast<size_t>(text - texts_.begin());
    throw UserError(
        fmt::format("'{}' changed while it was read: start again once nothing writes to it",
                    options_.files.name(file)));
  }

  const TokenizeState& state() const { return state_; }
  const TokenWriter::Layout& layout() const { return layout_; }

 private:
  std::optional<TokenizeState> earlier_state() const {
    if (options_.earlier == EarlierWork::discard) return std::nullopt;
    try {
      return read_state(folder_, identity_);
    } catch (const UserError&) {
      if (options_.earlier == EarlierWork::go_on) throw;
      return std::nullopt;
    }
  }

  TokenizeState begin() const {
    const std::optional<TokenizeState> state = earlier_state();
    if (!state) {
      clear_work(folder_);
      return {};
    }
    if (state->documents_read > 0 || state->position.inside > 0) {
      options_.say(fmt::format("going on in '{}', behind {} document{}", folder_.string(),
                               state->documents_read, state->documents_read == 1 ? "" : "s"));
    }
    return *state;
  }

  // False at the end. What is done before a broken text is kept.
  bool next(EncodedBatches& batches, Batch& batch, std::vector<EncodedDocument>& documents) {
    try {
      if (!batches.next(batch)) return false;
      documents = batch.documents.get();
      return true;
    } catch (const UserError&) {
      save();
      throw;
    }
  }

  // Adds a document, or a part of one, to the files and the summary.
  void take(const EncodedDocument& part) {
    UnfinishedDocument& document = state_.document;
    const bool validates = is_drawn(state_.documents_read, options_.validation_fraction);
    TokenWriter& writer = validates ? validation_ : training_;
    if (!part.tokens.empty()) {
      if (document.tokens == 0) writer.begin_document();
      writer.append(part.tokens);
    }
    document.tokens += static_cast<int64_t>(part.tokens.size());
    if (unknown_) {
      state_.summary.unknown_tokens +=
          std::count(part.tokens.begin(), part.tokens.end(), unknown_->token);
    }
    document.characters += part.characters;
    if (part.has_broken_characters) document.broken_characters = 1;
    if (part.begins_plain_json) state_.summary.plain_json_files += 1;
    if (part.problem) leave_out(*part.problem);
    if (!part.ends) return;
    if (document.tokens > 0) writer.end_document(document.tokens);
    count(document, validates, state_.summary);
    ++state_.documents_read;
    document = {};
  }

  void leave_out(const BrokenDocument& problem) {
    state_.document.left_out = 1;
    if (++state_.summary.left_out[problem.kind()] > 1) return;
    options_.say(fmt::format("left out: {}; the end counts all such", problem.what()));
  }

  void save() {
    training_.sync();
    validation_.sync();
    state_.training = training_.state();
    state_.validation = validation_.state();
    write_state(folder_, identity_, state_);
  }

  const TokenizeOptions& options_;
  const fs::path& folder_;
  const std::vector<TextState> texts_;  // As they were before.
  const nlohmann::json identity_;
  TokenizeState state_;
  const TokenWriter::Layout layout_;
  const std::optional<UnknownToken> unknown_;
  TokenWriter training_;
  TokenWriter validation_;
};

// Nothing can be made of such a set.
void require_tokens(const TokenizeSummary& summary, const fs::path& folder) {
  if (summary.tokens > 0) return;
  remove_path(folder);
  int64_t left_out = 0;
  for (const auto& [cause, documents] : summary.left_out) left_out += documents;
  throw UserError(fmt::format(
      "the texts give no token: {} of their documents are empty, and {} are broken, left out",
      summary.empty_documents, left_out));
}

void check(const TokenizeOptions& options, const fs::path& destination) {
  // Its header has 31 bits for them.
  constexpr int64_t kMostOfLlmc = std::numeric_limits<int32_t>::max();
  if (options.format == TokenFileFormat::llmc && options.file_tokens > kMostOfLlmc) {
    throw UserError(fmt::format("a file of llm.c holds at most {} tokens, not {}", kMostOfLlmc,
                                options.file_tokens));
  }
  std::error_code ignored;
  if (!fs::exists(destination, ignored)) return;
  if (fs::is_directory(destination, ignored) && fs::is_empty(destination, ignored)) return;
  throw UserError(fmt::format("'{}' exists and is no empty folder: name another, or remove it",
                              destination.string()));
}

uint64_t bytes_of_files(const FileList& files) {
  uint64_t bytes = 0;
  for (const fs::path file : files) bytes += fs::file_size(file);
  return bytes;
}

// What is not possible there is the user's to mend: nothing has begun.
File open_work(const fs::path& folder) {
  try {
    create_folders(folder);
    return {folder / kLockFile, O_RDWR | O_CREAT};
  } catch (const IoError& e) {
    throw UserError(e.what());
  }
}

void write_tokenizer(const LoadedTokenizer& tokenizer, const fs::path& folder) {
  if (tokenizer.files.empty()) return;
  create_folders(folder);
  for (const TokenizerFile& file : tokenizer.files) replace_file(folder / file.name, file.content);
}

}  // namespace

std::string about_plain_json(int64_t files) {
  return fmt::format("read as plain text, as {} no array of objects: {} .json file{}",
                     files == 1 ? "it holds" : "they hold", files, files == 1 ? "" : "s");
}

fs::path work_folder(const fs::path& destination) {
  // A path may end with a slash.
  const fs::path whole = fs::absolute(destination).lexically_normal();
  const fs::path place = whole.has_filename() ? whole : whole.parent_path();
  return fs::path(place) += ".part";
}

TokenizeSummary tokenize(const LoadedTokenizer& tokenizer, const TokenizeOptions& options,
                         const fs::path& destination, ByteProgress& progress) {
  check(options, destination);
  require_texts(options.files, Packed::unpacked, options.any_bytes);
  const fs::path folder = work_folder(destination);
  progress.begin(bytes_of_files(options.files));
  File lock = open_work(folder);
  if (!try_lock_or_warn(lock, "nothing keeps a second process from making these tokens, too")) {
    throw UserError(fmt::format("another process is making '{}': wait for it, or end it",
                                destination.string()));
  }
  Making making(tokenizer, options, folder);
  making.run(*tokenizer.tokenizer, progress);
  making.require_unchanged();
  if (options.needs_tokens) require_tokens(making.state().summary, folder);
  write_tokenizer(tokenizer, folder / "tokenizer");
  const nlohmann::json description =
      description_of(tokenizer, options, making.layout(), making.state());
  replace_file(folder / "tokens.json", description.dump(2) + "\n");
  remove_work_files(folder);
  sync_folder(folder);
  rename_path(folder, folder.parent_path() / folder.stem());  // Over an empty folder, if any.
  sync_folder(folder.parent_path());
  return making.state().summary;
}

}  // namespace phalanx
