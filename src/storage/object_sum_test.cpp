// SPDX-License-Identifier: Apache-2.0
#include "storage/object_sum.h"

#include <gtest/gtest.h>

namespace feedline::storage {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// The standard check values of CRCs, computed for "123456789".
TEST(ObjectSum, IsReadAsServersWriteIt) {
  const std::string_view digits = "123456789";
  for (const auto& [kind, text] : {std::pair(SumKind::kCrc32c, "4waSgw=="), std::pair(SumKind::kCrc32, "y/Q5Jg=="),
                                   std::pair(SumKind::kCrc64Nvme, "rosUhgp5mIg="),
                                   std::pair(SumKind::kSha256, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=")}) {
    const auto said = sum_of_base64(kind, text);
    ASSERT_TRUE(said) << text;
    EXPECT_EQ(*said, sum_of(kind, bytes_of(digits))) << described(*said);
  }
  EXPECT_EQ(described(sum_of(SumKind::kCrc32c, bytes_of(digits))), "crc32c e3069283");
  EXPECT_EQ(described(sum_of(SumKind::kCrc64Nvme, bytes_of(digits))), "crc64nvme ae8b14860a799888");
}

TEST(ObjectSum, OfAnotherLengthIsNone) {
  EXPECT_FALSE(sum_of_base64(SumKind::kCrc32c, "4waS"));
  EXPECT_FALSE(sum_of_base64(SumKind::kCrc32c, "4waSgw==-3")) << "of parts, and not of the object";
  EXPECT_FALSE(sum_of_base64(SumKind::kCrc64Nvme, "4waSgw=="));
  EXPECT_FALSE(sum_of_base64(SumKind::kCrc32, ""));
  EXPECT_FALSE(sum_of_hex(SumKind::kSha256, "ba7816"));
  EXPECT_FALSE(sum_of_hex(SumKind::kCrc32c, "e306928x"));
  EXPECT_TRUE(sum_of_hex(SumKind::kCrc32c, "e3069283"));
}

TEST(ObjectSum, OfPiecesIsOfTheWhole) {
  const std::string text(1000, 'x');
  for (const SumKind kind : {SumKind::kCrc32c, SumKind::kCrc32, SumKind::kCrc64Nvme, SumKind::kSha256}) {
    RunningSum running(kind);
    for (std::size_t at = 0; at < text.size(); at += 77) running.add(bytes_of(std::string_view(text).substr(at, 77)));
    EXPECT_EQ(running.sum(), sum_of(kind, bytes_of(text)));
    EXPECT_NE(running.sum(), sum_of(kind, bytes_of(text + "x")));
  }
}

}  // namespace
}  // namespace feedline::storage
