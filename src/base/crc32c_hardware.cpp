// SPDX-License-Identifier: Apache-2.0
// CRC-32C with the dedicated instruction of x86-64 (SSE 4.2) and most ARMv8 CPUs.
#include "base/crc.h"

#include <cstring>

#if defined(__x86_64__)

#include <nmmintrin.h>

namespace feedline::base {
namespace {

__attribute__((target("sse4.2"))) std::uint32_t by_hardware(std::uint32_t before, std::span<const std::byte> bytes) {
  std::uint64_t sum = ~before;
  for (; bytes.size() >= sizeof sum; bytes = bytes.subspan(sizeof sum)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    sum = _mm_crc32_u64(sum, word);
  }
  auto rest = static_cast<std::uint32_t>(sum);
  for (const std::byte byte : bytes) rest = _mm_crc32_u8(rest, std::to_integer<std::uint8_t>(byte));
  return ~rest;
}

}  // namespace

Crc32c crc32c_hardware() { return __builtin_cpu_supports("sse4.2") ? by_hardware : nullptr; }

}  // namespace feedline::base

#elif defined(__aarch64__) && defined(__linux__)

#include <arm_acle.h>
#include <sys/auxv.h>

namespace feedline::base {
namespace {

__attribute__((target("+crc"))) std::uint32_t by_hardware(std::uint32_t before, std::span<const std::byte> bytes) {
  std::uint32_t sum = ~before;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    sum = __crc32cd(sum, word);
  }
  for (const std::byte byte : bytes) sum = __crc32cb(sum, std::to_integer<std::uint8_t>(byte));
  return ~sum;
}

constexpr unsigned long kHasCrc32 = 1ul << 7;  // HWCAP_CRC32 of <asm/hwcap.h>

}  // namespace

Crc32c crc32c_hardware() { return (::getauxval(AT_HWCAP) & kHasCrc32) != 0 ? by_hardware : nullptr; }

}  // namespace feedline::base

#else

namespace feedline::base {
Crc32c crc32c_hardware() { return nullptr; }
}  // namespace feedline::base

#endif
