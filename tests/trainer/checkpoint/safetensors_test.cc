// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/tensors.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/checkpoint_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr at::ScalarType kAllDtypes[] = {at::kDouble, at::kFloat, at::kHalf,  at::kBFloat16,
                                         at::kLong,   at::kInt,   at::kShort, at::kChar,
                                         at::kByte,   at::kBool};

std::vector<ShardedTensorView> one_of_each() {
  std::vector<ShardedTensorView> views;
  for (const at::ScalarType dtype : kAllDtypes) {
    views.push_back(whole_tensor(std::string("t.") + c10::toString(dtype),
                                 tensors::arange(6).remainder(5).reshape({2, 3}).to(dtype)));
  }
  views.push_back(whole_tensor("scalar", tensors::full({}, 2.5, at::kFloat)));
  views.push_back(whole_tensor("empty", tensors::empty({3, 0}, at::kLong)));
  return views;
}

// A file of a header and data as they are given.
std::string file_of(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes.append(header).append(data);
}

TEST(Safetensors, EveryDtypeComesBackBitForBit) {
  const TemporaryFolder folder;
  const auto views = one_of_each();
  write_safetensors(folder / "a", views);
  const auto tensors = read_safetensors(folder / "a");
  ASSERT_EQ(tensors.size(), views.size());
  for (const ShardedTensorView& view : views) {
    const at::Tensor& tensor = tensors.at(view.name);
    EXPECT_EQ(tensor.scalar_type(), view.dtype) << view.name;
    EXPECT_EQ(tensor.sizes().vec(), view.shape) << view.name;
    EXPECT_TRUE(tensor.equal(view.local)) << view.name;
  }
}

TEST(Safetensors, NotANumberAndInfinityKeepTheirBits) {
  const TemporaryFolder folder;
  const at::Tensor values = tensors::empty({3}, at::kFloat);
  auto* floats = values.data_ptr<float>();
  floats[0] = std::numeric_limits<float>::quiet_NaN();
  floats[1] = -std::numeric_limits<float>::infinity();
  floats[2] = -0.0F;
  write_safetensors(folder / "a", std::vector{whole_tensor("w", values)});
  const at::Tensor read = read_safetensors(folder / "a").at("w");
  EXPECT_EQ(std::memcmp(read.data_ptr(), values.data_ptr(), values.nbytes()), 0);
}

TEST(Safetensors, TheBytesAreThoseOfTheFormat) {
  const TemporaryFolder folder;
  const std::vector views{whole_tensor("b", tensors::ones({1}, at::kByte)),
                          whole_tensor("a", tensors::zeros({1}, at::kByte)),
                          whole_tensor("w", tensors::ones({1}, at::kFloat))};
  write_safetensors(folder / "a", views);
  std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(slurp(folder / "a"), file_of(header, std::string_view("\0\0\x80\x3F\0\x01", 6)));
}

TEST(Safetensors, AFileWithoutTensorsIsSound) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {});
  EXPECT_TRUE(read_safetensors(folder / "a").empty());
}

TEST(Safetensors, ViewsThatAreNotWholeAreRefused) {
  const TemporaryFolder folder;
  ShardedTensorView half = whole_tensor("w", tensors::ones({4}));
  half.end = 2;
  half.local = half.local.slice(0, 0, 2);
  EXPECT_THAT([&] { write_safetensors(folder / "a", std::vector{half}); },
              ThrowsMessage<std::logic_error>(HasSubstr("elements [0, 2) of 4")));
  ShardedTensorView columns = whole_tensor("w", tensors::ones({2, 2}));
  columns.box = TensorBox{{0, 0}, {2, 2}};
  EXPECT_THROW(write_safetensors(folder / "a", std::vector{columns}), std::logic_error);
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(Safetensors, OtherStridesAreWrittenInLogicalOrder) {
  const TemporaryFolder folder;
  const at::Tensor turned = tensors::arange(6, at::kFloat).view({2, 3}).t();
  write_safetensors(folder / "a", std::vector{whole_tensor("w", turned)});
  EXPECT_TRUE(read_safetensors(folder / "a").at("w").equal(turned));
}

TEST(Safetensors, ARangeIsReadAlone) {
  const TemporaryFolder folder;
  const at::Tensor values = tensors::arange(10, at::kDouble).view({2, 5});
  write_safetensors(folder / "a", std::vector{whole_tensor("w", values)});
  const SafetensorsFile file(folder / "a");
  const SafetensorsEntry& entry = file.header().entries.front();
  for (const int64_t size : {0, 1, 4}) {
    const at::Tensor part = tensors::empty({size}, at::kDouble);
    file.read_range_into(entry, 6, part);
    EXPECT_TRUE(part.equal(values.view(-1).slice(0, 6, 6 + size)));
  }
  const at::Tensor five = tensors::empty({5}, at::kDouble);
  EXPECT_THROW(file.read_range_into(entry, 6, five), std::logic_error);
  EXPECT_THROW(file.read_range_into(entry, -1, five), std::logic_error);
  EXPECT_THROW(file.read_range_into(entry, 0, five.to(at::kFloat)), std::logic_error);
}

TEST(Safetensors, NamesAreUnique) {
  const TemporaryFolder folder;
  const std::vector twice{whole_tensor("w", tensors::ones({1})),
                          whole_tensor("w", tensors::ones({2}))};
  EXPECT_THROW(write_safetensors(folder / "a", twice), std::logic_error);
  const std::vector reserved{whole_tensor("__metadata__", tensors::ones({1}))};
  EXPECT_THROW(write_safetensors(folder / "a", reserved), std::logic_error);
}

TEST(Safetensors, AnExistingFileIsNotOverwritten) {
  const TemporaryFolder folder;
  spill(folder / "a", "precious");
  EXPECT_THROW(write_safetensors(folder / "a", {}), IoError);
  EXPECT_EQ(slurp(folder / "a"), "precious");
}

std::string open_error(const std::filesystem::path& path) {
  try {
    SafetensorsFile file(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Safetensors, SizesAreCheckedBeforeAnythingIsAllocated) {
  const TemporaryFolder folder;
  const auto error_for = [&](std::string_view bytes) {
    spill(folder / "a", bytes);
    return open_error(folder / "a");
  };
  EXPECT_THAT(error_for(""), AllOf(HasSubstr("has 0 bytes"), HasSubstr((folder / "a").string())));
  EXPECT_THAT(error_for("1234567"), HasSubstr("has 7 bytes"));
  EXPECT_THAT(error_for(std::string(8, '\xFF')), HasSubstr("claims 18446744073709551615 bytes"));
  EXPECT_THAT(error_for(std::string("\x01\xE1\xF5\x05\0\0\0\0", 8)), HasSubstr("claims 100000001"));
  EXPECT_THAT(error_for(std::string("\0\xE1\xF5\x05\0\0\0\0", 8)), HasSubstr("file has 8 in all"));
  EXPECT_THAT(error_for(file_of("{}", "").substr(0, 9)), HasSubstr("claims 2 bytes"));
  EXPECT_THAT(error_for(std::string(8, '\0')), HasSubstr("does not start with '{'"));
  EXPECT_EQ(error_for(file_of("{}", "")), "accepted");
}

TEST(Safetensors, OnlyRegularFilesAreRead) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {});
  std::filesystem::create_symlink(folder / "a", folder / "link");
  EXPECT_THAT(open_error(folder / "link"), HasSubstr("symbolic link"));
  EXPECT_THAT(open_error(folder.path()), HasSubstr("not a regular file"));
  EXPECT_THAT(open_error("/dev/zero"), HasSubstr("not a regular file"));
}

TEST(Safetensors, ADestinationMustFit) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", std::vector{whole_tensor("w", tensors::ones({2}))});
  const SafetensorsFile file(folder / "a");
  const SafetensorsEntry& entry = *file.find("w");
  EXPECT_EQ(file.find("v"), nullptr);
  EXPECT_THROW(file.read_into(entry, tensors::empty({3})), std::logic_error);
  EXPECT_THROW(file.read_into(entry, tensors::empty({2}, at::kInt)), std::logic_error);
}

TEST(Safetensors, ABoolIsZeroOrOneWhateverTheFileSays) {
  const TemporaryFolder folder;
  spill(folder / "a", file_of(R"({"m":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})",
                              std::string_view("\x02\0", 2)));
  const at::Tensor mask = read_safetensors(folder / "a").at("m");
  EXPECT_EQ(static_cast<const uint8_t*>(mask.data_ptr())[0], 1);
  EXPECT_EQ(static_cast<const uint8_t*>(mask.data_ptr())[1], 0);
}

}  // namespace
}  // namespace phalanx
