// SPDX-License-Identifier: Apache-2.0
#pragma once

// Restart markers of a JPEG: what stands between its intervals, numbered 0 ... 7 in turn.

#include <cstdint>

namespace feedline::decode::baseline {

inline constexpr int kRestartNumbers = 8;
inline constexpr std::uint8_t kFirstRestart = 0xD0;

// Looks for the next `count` markers from `from` on, of which the first one must be restart marker `number`, the second
// the one after it, and so on. Returns the first byte behind the last of them; null where a marker is another one, or
// where the data ends. Requires: count > 0. The plain version of the kernel.
const std::uint8_t* pass_restarts_bytewise(const std::uint8_t* from, const std::uint8_t* end, int number, int count);

}  // namespace feedline::decode::baseline
