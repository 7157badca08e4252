// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/restart_scan.h"

#include <cstddef>
#include <cstring>

namespace feedline::decode::baseline {

const std::uint8_t* pass_restarts_bytewise(const std::uint8_t* from, const std::uint8_t* end, int number, int count) {
  constexpr std::uint8_t kPrefix = 0xFF;
  while (end - from >= 2) {
    const auto* const at =
        static_cast<const std::uint8_t*>(std::memchr(from, kPrefix, static_cast<std::size_t>(end - from - 1)));
    if (!at) return nullptr;
    from = at + 1;
    if (at[1] == 0 || at[1] == kPrefix) continue;
    if (at[1] != kFirstRestart + number) return nullptr;
    if (--count == 0) return at + 2;
    number = (number + 1) % kRestartNumbers;
  }
  return nullptr;
}

}  // namespace feedline::decode::baseline
