// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cyclic redundancy checks that object stores use. All three checksums are reflected, start with all bits set, and
// are inverted at the end. libdeflate provides only CRC-32.

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

// Continues from `before`, the checksum of the preceding bytes (0 at the start).
std::uint64_t crc(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes);

// ---- one step of it ----
// Like crc(), but with lookup tables; does not support k32.
std::uint64_t crc_portably(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes);
// Returns a function that computes k32c with a CPU instruction, or nullptr if this CPU does not have one.
using Crc32c = std::uint32_t (*)(std::uint32_t before, std::span<const std::byte> bytes);
Crc32c crc32c_hardware();

}  // namespace feedline::base
