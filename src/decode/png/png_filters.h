// SPDX-License-Identifier: Apache-2.0
#pragma once

// The filters of PNG rows (PNG specification, section 9): each byte is stored as the difference from a prediction,
// which uses the bytes to the left, above, and above left. Stateless and thread-safe.

#include <cstddef>
#include <cstdint>

namespace feedline::decode {

inline constexpr std::uint8_t kLastFilter = 4;  // Paeth's; a row with a larger number is damaged
constexpr bool is_filter(std::uint8_t number) { return number <= kLastFilter; }

// Reverses the filter of `row` in place. above: the unfiltered previous row, or zeros if there is none. pixel_bytes: 1,
// 2, 3, 4, 6 or 8; 1 for pixels smaller than a byte. Returns false if the filter number is invalid.
[[nodiscard]] bool unfilter(std::uint8_t filter, int pixel_bytes, std::uint8_t* row, const std::uint8_t* above,
                            std::size_t bytes);

}  // namespace feedline::decode
