// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cyclic redundancy checks that object stores use. All three are reflected, start with all ones, and are inverted
// at the end. libdeflate computes CRC-32; it has neither of the others.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace feedline::base {

enum class CrcKind : std::uint8_t {
  k32,      // IEEE 802.3, as in zip and zlib
  k32c,     // Castagnoli (RFC 3720), with the CPU's instruction if available (SSE 4.2, ARMv8)
  k64Nvme,  // from the NVM Express command set; S3 computes it for uploads without a checksum
};

// Continues the checksum `before` of the preceding bytes; 0 if there are none.
std::uint64_t crc(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes);

// ---- one step of it ----
// As crc(), by tables; not for k32.
std::uint64_t crc_portably(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes);
// Computes k32c with a CPU instruction; nullptr if this CPU has none.
using Crc32c = std::uint32_t (*)(std::uint32_t before, std::span<const std::byte> bytes);
Crc32c crc32c_hardware();

}  // namespace feedline::base
