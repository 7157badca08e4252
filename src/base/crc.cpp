// SPDX-License-Identifier: Apache-2.0
// Processes eight bytes at a time with eight tables: table k has a byte's contribution to the checksum when k more
// bytes follow it (M. Kounavis, F. Berry: "A systematic approach to building high performance, software-based, CRC
// generators", 2005).
#include "base/crc.h"

#include <libdeflate.h>

#include <array>
#include <bit>
#include <cstring>

namespace feedline::base {
namespace {

constexpr std::size_t kStep = 8;
using Tables = std::array<std::array<std::uint64_t, 256>, kStep>;

// The polynomials, reflected.
constexpr std::uint64_t k32cPolynomial = 0x82f63b78, k64NvmePolynomial = 0x9a6c9329ac4bc9b5;

constexpr Tables tables_of(std::uint64_t polynomial) {
  Tables tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? polynomial : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < kStep; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t sum = tables[k - 1][byte];
      tables[k][byte] = sum >> 8 ^ tables[0][sum & 0xff];
    }
  return tables;
}

const Tables& tables_of(CrcKind kind) {
  static constexpr Tables k32c = tables_of(k32cPolynomial), k64Nvme = tables_of(k64NvmePolynomial);
  return kind == CrcKind::k32c ? k32c : k64Nvme;
}

std::uint64_t ones_of(CrcKind kind) { return kind == CrcKind::k64Nvme ? ~std::uint64_t{0} : 0xffffffff; }

std::uint64_t little_endian(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

}  // namespace

std::uint64_t crc_portably(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes) {
  const Tables& tables = tables_of(kind);
  std::uint64_t sum = before ^ ones_of(kind);
  while (bytes.size() >= kStep) {
    const std::uint64_t word = sum ^ little_endian(bytes.data());
    sum = 0;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < kStep; ++k) sum ^= tables[kStep - 1 - k][word >> (8 * k) & 0xff];
    bytes = bytes.subspan(kStep);
  }
  for (const std::byte byte : bytes) sum = sum >> 8 ^ tables[0][(sum ^ std::to_integer<std::uint64_t>(byte)) & 0xff];
  return sum ^ ones_of(kind);
}

std::uint64_t crc(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes) {
  if (kind == CrcKind::k32) return libdeflate_crc32(static_cast<std::uint32_t>(before), bytes.data(), bytes.size());
  static const Crc32c kHardware = crc32c_hardware();
  if (kind == CrcKind::k32c && kHardware != nullptr) return kHardware(static_cast<std::uint32_t>(before), bytes);
  return crc_portably(kind, before, bytes);
}

}  // namespace feedline::base
