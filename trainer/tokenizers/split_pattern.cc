// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8.h"
#include "trainer/tokenizers/patterns/oniguruma.h"

namespace phalanx {
namespace {

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

// Where PCRE2 writes the ends of a match: one place for all patterns, as they are read at once.
pcre2_match_data* match_data() {
  thread_local const std::unique_ptr<pcre2_match_data, FreeMatchData> data(
      pcre2_match_data_create(1, nullptr));
  if (!data) throw std::bad_alloc();
  return data.get();
}

}  // namespace

void SplitPattern::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

SplitPattern::SplitPattern(const std::string& pattern) {
  const std::string ours = pcre2_of_oniguruma(pattern);
  int error = 0;
  size_t place = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                            &error, &place, nullptr));
  if (!code_) {
    throw UserError(fmt::format("the pattern '{}' is none that PCRE2 knows: {} (before '{}')",
                                pattern, message_of(error), ours.substr(place)));
  }
  uint32_t may_be_empty = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  matches_nothing_ = may_be_empty != 0;
  is_compiled_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

// Whether text[from_, …) has a match.
bool SplitPattern::Matches::search(size_t& begin, size_t& end) const {
  const auto* const text = reinterpret_cast<PCRE2_SPTR>(text_.data());
  const pcre2_code* const code = pattern_.code_.get();
  pcre2_match_data* const data = match_data();
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (pattern_.is_compiled_) {
    found = pcre2_jit_match(code, text, text_.size(), from_, 0, data, nullptr);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // The interpreter backtracks on the heap.
    found = pcre2_match(code, text, text_.size(), from_, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                        nullptr);
  }
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) throw std::runtime_error("cannot cut a text into words: " + message_of(found));
  const size_t* const range = pcre2_get_ovector_pointer(data);
  begin = range[0];
  end = range[1];
  return true;
}

// An empty match right behind another does not count, as in Oniguruma's Rust binding.
bool SplitPattern::Matches::next(size_t& begin, size_t& end) {
  if (text_.empty()) return false;
  while (from_ <= text_.size() && search(begin, end)) {
    if (begin != end || last_end_ != end) {
      from_ = end;
      last_end_ = end;
      return true;
    }
    from_ += std::max<size_t>(character_length(text_.substr(from_)), 1);
  }
  return false;
}

bool SplitPattern::Pieces::next(Piece& piece) {
  if (done_ == text_.size()) return false;
  if (done_ == match_end_) {
    do {
      if (!matches_.next(match_begin_, match_end_)) match_begin_ = match_end_ = text_.size();
    } while (match_end_ == done_);  // Empty, where a piece ends anyway.
  }
  piece.is_match = done_ == match_begin_;
  const size_t end = piece.is_match ? match_end_ : match_begin_;
  piece.text = text_.substr(done_, end - done_);
  done_ = end;
  return true;
}

}  // namespace phalanx
