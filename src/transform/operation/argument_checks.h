// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks single arguments of operations. A kConfig error contains the accepted range and the given value. Pure
// functions.

#include <string>
#include <string_view>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline::transform {

// Larger sides and borders are assumed to be mistakes. Sums of a few values within this limit cannot overflow an int.
inline constexpr int kMostPixelsPerSide = 1 << 20;

std::string shown(double value);
std::string shown(const Range& range);  // (low, high)
std::string shown(Size size);           // height x width

Result<void> check_size(Size size);                                      // of an image that fits in memory
Result<void> check_side(std::string_view name, int side);                // pixels
Result<void> check_padding(const Padding& padding);                      // pixels
Result<void> check_positive(std::string_view name, const Range& range);  // 0 < low <= high
Result<void> check_between(std::string_view name, const Range& range, double low, double high);
// Checks the factors of brightness, contrast and saturation, and the shifts of hue.
Result<void> check_jitter(const Range& brightness, const Range& contrast, const Range& saturation, const Range& hue);
Result<void> check_degrees(std::string_view name, const Range& range);  // finite, in order
Result<void> check_probability(std::string_view name, double p);
Result<void> check_probability(double p);
Result<void> check_at_least_one(std::string_view name, double value);
Result<void> check_bins(int bins);  // number of magnitude bins

}  // namespace feedline::transform
