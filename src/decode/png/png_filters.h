// SPDX-License-Identifier: Apache-2.0
#pragma once

// The filters of PNG rows (PNG specification, section 9): each byte is stored as its difference from a prediction made
// of the bytes to the left, above, and above on the left. Stateless and thread-safe.

#include <cstddef>
#include <cstdint>

namespace feedline::decode {

inline constexpr std::uint8_t kLastFilter = 4;  // Paeth's; a row that says another is damaged
constexpr bool is_filter(std::uint8_t number) { return number <= kLastFilter; }

// Takes the filter off `row`, in place. above: the row above as it was before filtering, zeros where there is none.
// pixel_bytes: 1, 2, 3, 4, 6 or 8; 1 for pixels of less than a byte. False where no filter has that number.
[[nodiscard]] bool unfilter(std::uint8_t filter, int pixel_bytes, std::uint8_t* row, const std::uint8_t* above,
                            std::size_t bytes);

}  // namespace feedline::decode
