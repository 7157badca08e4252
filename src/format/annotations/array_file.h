// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/array.h"

namespace feedline::format {

// Numbers as a .npy file of version 1 (drawn in decode/npy/npy.h). Requires: float32, int64 or uint8, and as many bytes
// as the shape has.
std::vector<std::byte> array_file(const ArraySpec& spec, std::span<const std::byte> data);

}  // namespace feedline::format
