// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_frame.h"

#include <gtest/gtest.h>

#include <string>

#include "format/tfrecord/example_writer.h"

namespace feedline::format {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Compares with CRCs from RFC 3720 after masking them as in tensorflow/core/lib/hash/crc32c.h. The CRC of "123456789"
// is 0xe3069283.
TEST(RecordFrame, MasksTheChecksum) {
  EXPECT_EQ(masked_crc(bytes_of("123456789")), ((0xe3069283U >> 15U) | (0xe3069283U << 17U)) + 0xa282ead8U);
  EXPECT_EQ(masked_crc(bytes_of(std::string(32, '\0'))), ((0x8a9136aaU >> 15U) | (0x8a9136aaU << 17U)) + 0xa282ead8U);
  EXPECT_EQ(masked_crc({}), 0xa282ead8U);
}

TEST(RecordFrame, EveryFlippedBitIsSeen) {
  const std::string record = record_of("some data");
  ASSERT_EQ(length_in_header(bytes_of(record)), 9u);
  ASSERT_TRUE(has_good_data(bytes_of(record)));
  EXPECT_EQ(data_in(bytes_of(record)).size(), 9u);
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    std::string flipped = record;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const bool header = length_in_header(bytes_of(flipped)).has_value(), data = has_good_data(bytes_of(flipped));
    EXPECT_EQ(header, bit / 8 >= kRecordHeaderBytes) << bit;
    EXPECT_EQ(data, bit / 8 < kRecordHeaderBytes) << bit;
  }
  for (std::size_t length = 0; length < kRecordHeaderBytes; ++length)
    EXPECT_FALSE(length_in_header(bytes_of(record).first(length))) << length;
}

}  // namespace
}  // namespace feedline::format
