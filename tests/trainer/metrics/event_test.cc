// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/event.h"

#include <gtest/gtest.h>

#include <numeric>

#include "trainer/metrics/crc32c.h"

namespace phalanx {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesTheVectorsOfItsRfc) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string rising(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(crc32c(std::string(rising.rbegin(), rising.rend())), 0x113FDB5CU);
  const unsigned char read_command[48] = {
      0x01, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
      0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(crc32c({reinterpret_cast<const char*>(read_command), sizeof(read_command)}),
            0xD9963A56U);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
}

TEST(Crc32c, IsMaskedAsTfRecordsWant) {
  // rotated right by 15 bits, plus 0xA282EAD8
  EXPECT_EQ(masked_crc32c(""), 0xA282EAD8U);
  EXPECT_EQ(masked_crc32c("123456789"), 0xC78AB0E5U);
}

std::string bytes(std::initializer_list<int> values) { return {values.begin(), values.end()}; }

TEST(Event, FileVersionComesFirst) {
  EXPECT_EQ(encode_file_version_event(1.0),
            bytes({0x09, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0x1A, 13}) + "brain.Event:2");
}

TEST(Event, ScalarsCarryTagAndSinglePrecisionValue) {
  EXPECT_EQ(encode_scalars_event(1.0, 300, {{"a/b", 1.0F}}),
            bytes({0x09, 0,    0,    0,  0,    0, 0,   0xF0, 0x3F,  // wall_time
                   0x10, 0xAC, 0x02,                                // step
                   0x2A, 12,   0x0A, 10, 0x0A, 3, 'a', '/',  'b',  0x15, 0, 0, 0x80, 0x3F}));
}

TEST(Event, ASessionStartNamesItsStep) {
  EXPECT_EQ(encode_session_start_event(1.0, 2),
            bytes({0x09, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0x10, 2, 0x3A, 2, 0x08, 1}));
}

TEST(Event, ARecordIsFramedByLengthAndSums) {
  const std::string record = encode_record("123456789");
  ASSERT_EQ(record.size(), 8U + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), bytes({9, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(record.substr(21), bytes({0xE5, 0xB0, 0x8A, 0xC7}));
}

}  // namespace
}  // namespace phalanx
