// SPDX-License-Identifier: Apache-2.0
#pragma once

// An array as a .npy file of version 1 (drawn in decode/npy/npy.h), for files that leave the format.

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/array.h"

namespace feedline::format {

// Requires: `data` are the elements of `spec`, in C order.
std::vector<std::byte> table_array_file(const ArraySpec& spec, std::span<const std::byte> data);

}  // namespace feedline::format
