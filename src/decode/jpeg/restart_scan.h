// SPDX-License-Identifier: Apache-2.0
#pragma once

// Restart markers separate the restart intervals of a JPEG, and are numbered cyclically from 0 to 7.

#include <cstdint>

namespace feedline::decode::baseline {

inline constexpr int kRestartNumbers = 8;
inline constexpr std::uint8_t kFirstRestart = 0xD0;

// Searches from `from` on for the next `count` markers, which must be consecutive restart markers starting with
// `number`. Returns the first byte after the last of these markers, or nullptr if another marker is found or the data
// ends. Requires: count > 0. This is the scalar version of the kernel.
const std::uint8_t* pass_restarts_bytewise(const std::uint8_t* from, const std::uint8_t* end, int number, int count);

}  // namespace feedline::decode::baseline
