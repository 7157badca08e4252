// SPDX-License-Identifier: Apache-2.0
#include "base/crc.h"

#include <gtest/gtest.h>

#include <string>

namespace feedline::base {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string made_text(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i * 151 + i / 13);
  return text;
}

// Check values from the catalogue of parametrised CRC algorithms.
TEST(Crc, GivesThePublishedSums) {
  EXPECT_EQ(crc(CrcKind::k32, 0, bytes_of("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc(CrcKind::k32c, 0, bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc(CrcKind::k64Nvme, 0, bytes_of("123456789")), 0xae8b14860a799888u);
  // RFC 3720, B.4: 32 bytes of zeros and of ones
  EXPECT_EQ(crc(CrcKind::k32c, 0, bytes_of(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc(CrcKind::k32c, 0, bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(crc(CrcKind::k32, 0, {}), 0u);
}

TEST(Crc, OfPiecesIsOfTheWhole) {
  const std::string text = made_text(500);
  for (const CrcKind kind : {CrcKind::k32, CrcKind::k32c, CrcKind::k64Nvme})
    for (const std::size_t piece : {1u, 3u, 7u, 8u, 9u, 100u}) {
      std::uint64_t sum = 0;
      for (std::size_t at = 0; at < text.size(); at += piece)
        sum = crc(kind, sum, bytes_of(std::string_view(text).substr(at, piece)));
      EXPECT_EQ(sum, crc(kind, 0, bytes_of(text))) << piece;
    }
}

TEST(Crc, ByTheInstructionIsThatByTables) {
  const Crc32c hardware = crc32c_hardware();
  if (hardware == nullptr) GTEST_SKIP() << "this CPU has no instruction for it";
  const std::string text = made_text(100);
  for (std::size_t begin = 0; begin < 9; ++begin)  // for any address and length
    for (std::size_t length = 0; begin + length <= text.size(); ++length) {
      const auto bytes = bytes_of(std::string_view(text).substr(begin, length));
      EXPECT_EQ(hardware(0x1234u, bytes), crc_portably(CrcKind::k32c, 0x1234u, bytes)) << begin << " " << length;
    }
}

}  // namespace
}  // namespace feedline::base
