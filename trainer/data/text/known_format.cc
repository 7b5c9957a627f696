// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/known_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>

#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"

namespace phalanx {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kNameTexts = "name the files with text";
constexpr std::string_view kUnpack = "unpack it, and name the texts in it";
constexpr std::string_view kUnpackOrSource =
    "unpack it, or name it in the source `text` or in `trainer tokenize`, which unpack";
constexpr std::string_view kWeights = "it holds a model's weights: name the files with text";

// How a format's files begin.
struct Signature {
  std::string_view bytes;
  KnownFormat format;
  size_t offset = 0;
  /// A text may begin so, too: a control character that no text has must follow soon.
  bool may_be_text = false;
};

constexpr std::array kSignatures{
    Signature{"PAR1"sv,
              {"a Parquet file",
               "write its texts as JSONL, in Python: pandas.read_parquet(FILE).to_json("
               "'NAME.jsonl', orient='records', lines=True)"},
              0,
              true},
    Signature{"ARROW1"sv,
              {"an Arrow file",
               "write its texts as JSONL, in Python: pandas.read_feather(FILE).to_json("
               "'NAME.jsonl', orient='records', lines=True)"},
              0,
              true},
    Signature{"\xff\xff\xff\xff"sv,
              {"an Arrow stream, as Hugging Face's datasets keep",
               "write its texts as JSONL, in Python: datasets.Dataset.from_file(FILE).to_json("
               "'NAME.jsonl')"}},
    Signature{"ORC"sv, {"an ORC file", "write its texts as JSONL"}, 0, true},
    Signature{"Obj\x01"sv, {"an Avro file", "write its texts as JSONL"}},
    Signature{"SQLite format 3\0"sv, {"an SQLite database", "write its texts as JSONL"}},
    Signature{"\x89HDF\r\n\x1a\n"sv, {"an HDF5 file", "write its texts as JSONL"}},
    Signature{"\x93NUMPY"sv, {"a NumPy array", kNameTexts}},
    Signature{"GGUF"sv, {"a GGUF file", kWeights}, 0, true},
    Signature{"\x80\x02"sv, {"a Python pickle, as older .pt and .bin files are", kNameTexts}},
    Signature{"\x80\x03"sv, {"a Python pickle", kNameTexts}},
    Signature{"\x80\x04"sv, {"a Python pickle", kNameTexts}},
    Signature{"\x80\x05"sv, {"a Python pickle", kNameTexts}},
    Signature{"\x88\xd8\x34\x01"sv,
              {"a file of llm.c's tokens", "name it in a source: {name: llmc, files: [FILE]}"}},
    Signature{"\xa1\xd9\x34\x01"sv,
              {"a file of llm.c's tokens", "name it in a source: {name: llmc, files: [FILE]}"}},
    Signature{
        "MMIDIDX\0\0"sv,
        {"an index of Megatron's tokens", "name it in a source: {name: megatron, files: [FILE]}"}},
    Signature{"PK\x03\x04"sv,
              {"a zip archive, as .pt, .npz, .docx and .xlsx are",
               "unpack it, or write its texts as plain text or JSONL"}},
    Signature{"\x1f\x8b"sv, {"packed by gzip", kUnpackOrSource}},
    Signature{"\x28\xb5\x2f\xfd"sv, {"packed by Zstandard", kUnpackOrSource}},
    Signature{"\xfd"
              "7zXZ\0"sv,
              {"packed by xz", "unpack it, or pack it anew as .gz or .zst"}},
    Signature{"1AY&SY"sv, {"packed by bzip2", "unpack it, or pack it anew as .gz or .zst"}, 4},
    Signature{"\x04\x22\x4d\x18"sv, {"packed by lz4", "unpack it, or pack it anew as .gz or .zst"}},
    Signature{"7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", kUnpack}},
    Signature{"Rar!\x1a\x07"sv, {"a RAR archive", kUnpack}},
    Signature{"ustar"sv, {"a tar archive", kUnpack}, 257, true},
    Signature{"\x7f"
              "ELF"sv,
              {"a program or library", kNameTexts}},
    Signature{"MZ"sv, {"a program of Windows", kNameTexts}, 0, true},
    Signature{"\xcf\xfa\xed\xfe"sv, {"a program of macOS", kNameTexts}},
    Signature{"%PDF-"sv, {"a PDF document", "write its text out first, with pdftotext, say"}},
    Signature{"\x89PNG"sv, {"a PNG picture", kNameTexts}},
    Signature{"\xff\xd8\xff"sv, {"a JPEG picture", kNameTexts}},
    Signature{"GIF8"sv, {"a GIF picture", kNameTexts}, 0, true},
    Signature{"RIFF"sv, {"a WAV, AVI or WebP file", kNameTexts}, 0, true},
    Signature{"OggS"sv, {"an Ogg file", kNameTexts}, 0, true},
    Signature{"ID3"sv, {"an MP3 file", kNameTexts}, 0, true},
    Signature{"ftyp"sv, {"an MP4 file", kNameTexts}, 4, true},
    Signature{"\xff\xfe\0\0"sv, {"in UTF-32", "make it UTF-8: iconv -f UTF-32 -t UTF-8 FILE"}},
    Signature{"\0\0\xfe\xff"sv, {"in UTF-32", "make it UTF-8: iconv -f UTF-32 -t UTF-8 FILE"}},
    Signature{"\xff\xfe"sv, {"in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE"}},
    Signature{"\xfe\xff"sv, {"in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE"}},
};

// Ends of names. Weights and tokens as .bin may have nothing that shows them.
constexpr std::array kEndings{
    ".7z"sv,      ".arrow"sv,       ".avro"sv,   ".avi"sv,    ".bin"sv,     ".bz2"sv,  ".ckpt"sv,
    ".db"sv,      ".dll"sv,         ".docx"sv,   ".exe"sv,    ".feather"sv, ".gguf"sv, ".gif"sv,
    ".h5"sv,      ".hdf5"sv,        ".idx"sv,    ".jpeg"sv,   ".jpg"sv,     ".lz4"sv,  ".model"sv,
    ".mp3"sv,     ".mp4"sv,         ".npy"sv,    ".npz"sv,    ".ogg"sv,     ".onnx"sv, ".orc"sv,
    ".parquet"sv, ".pdf"sv,         ".pickle"sv, ".pkl"sv,    ".png"sv,     ".pt"sv,   ".pth"sv,
    ".rar"sv,     ".safetensors"sv, ".so"sv,     ".sqlite"sv, ".tar"sv,     ".wav"sv,  ".xlsx"sv,
    ".xz"sv,      ".zip"sv};

// The length of a header of JSON, in 8 bytes, and its begin.
bool are_safetensors(std::string_view begin) {
  constexpr size_t kLength = 8;
  constexpr uint64_t kLongestHeader = 100'000'000;  // As the package safetensors takes.
  if (begin.size() <= kLength || begin[kLength] != '{') return false;
  uint64_t length = 0;
  for (size_t i = kLength; i > 0; --i) {
    length = length << 8 | static_cast<unsigned char>(begin[i - 1]);
  }
  return length >= 2 && length <= kLongestHeader && begin[kLength - 1] == '\0';
}

bool is_control_of_no_text(char c) {
  constexpr std::string_view kOfTexts = "\a\b\t\n\v\f\r\x1b";
  const auto code = static_cast<unsigned char>(c);
  return (code < 0x20 || code == 0x7f) && kOfTexts.find(c) == std::string_view::npos;
}

bool is_followed_by_control(std::string_view text, size_t place) {
  constexpr size_t kSoon = 32;
  const std::string_view next = text.substr(place, kSoon);
  return std::any_of(next.begin(), next.end(), is_control_of_no_text);
}

}  // namespace

std::optional<KnownFormat> known_format(std::string_view begin) {
  if (are_safetensors(begin)) return KnownFormat{"a safetensors file", kWeights};
  const auto found =
      std::find_if(kSignatures.begin(), kSignatures.end(), [&](const Signature& signature) {
        if (begin.size() < signature.offset) return false;
        const std::string_view there = begin.substr(signature.offset);
        return there.starts_with(signature.bytes) &&
               (!signature.may_be_text || is_followed_by_control(there, signature.bytes.size()));
      });
  return found == kSignatures.end() ? std::nullopt : std::optional(found->format);
}

bool has_name_of_known_format(std::string_view path) {
  const size_t dot = path.find_last_of("./");
  if (dot == std::string_view::npos || path[dot] == '/') return false;
  std::string ending(path.substr(dot));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

size_t bytes_of_no_text(std::string_view begin) {
  begin.remove_suffix(unfinished_length(begin));
  size_t count = 0;
  while (!begin.empty()) {
    const size_t length = character_length(begin);
    if (length == 0 || (length == 1 && is_control_of_no_text(begin.front()))) ++count;
    begin.remove_prefix(std::max<size_t>(length, 1));
  }
  return count;
}

}  // namespace phalanx
