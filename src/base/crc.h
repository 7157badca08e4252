// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cyclic redundancy checks that object stores keep of their objects. All three are reflected, begin with ones, and
// are inverted in the end.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace feedline::base {

enum class CrcKind : std::uint8_t {
  k32,      // IEEE 802.3, as zip and zlib have it
  k32c,     // Castagnoli (RFC 3720), by the CPU's own instruction where it has one (SSE 4.2, ARMv8)
  k64Nvme,  // of the NVM Express command set, which Amazon's S3 makes of what comes without a sum
};

// Of bytes that come behind others, whose sum is `before`; 0: there are none.
std::uint64_t crc(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes);

// ---- one step of it ----
// As crc(), by tables.
std::uint64_t crc_portably(CrcKind kind, std::uint64_t before, std::span<const std::byte> bytes);
// k32c as crc(), by an instruction; nullptr: this CPU has none.
using Crc32c = std::uint32_t (*)(std::uint32_t before, std::span<const std::byte> bytes);
Crc32c crc32c_hardware();

}  // namespace feedline::base
