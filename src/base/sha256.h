// SPDX-License-Identifier: Apache-2.0
#pragma once

// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for signing requests and hashing whole objects. Uses SHA
// instructions if the CPU has them (x86-64).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace feedline::base {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
// Computes the SHA-256 of data given in consecutive chunks.
class RunningSha256 {
 public:
  void add(std::span<const std::byte> bytes);
  Sha256 digest() const;  // the digest of all bytes so far

 private:
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};  // of an incomplete block
  std::uint64_t bytes_ = 0;           // total
};
Sha256 hmac_sha256(std::string_view key, std::string_view bytes);
std::string hex_of(const Sha256& digest);  // lower case
std::string_view bytes_of(const Sha256& digest);

// ---- one step of it ----
// A function that adds blocks of 64 bytes to a state.
using AddSha256Blocks = void (*)(std::array<std::uint32_t, 8>& state, const std::byte* blocks, std::size_t count);
void add_sha256_blocks_portably(std::array<std::uint32_t, 8>& state, const std::byte* blocks, std::size_t count);
// Returns a function that uses CPU instructions, or nullptr if this CPU does not have them.
AddSha256Blocks sha256_hardware();

}  // namespace feedline::base
