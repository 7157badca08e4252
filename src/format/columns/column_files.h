// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sample's columns as files, for copying it to a tar: what `feedline pack` writes.

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/columns/column.h"
#include "format/columns/sample_layout.h"

namespace feedline::format {

// All columns that are not refused, those of no field too. The first image is "jpg", "png" or "webp", as its bytes are,
// the first integer of a field "cls"; the others are called like their column, small letters, digits, "-" and "_" of
// it: "NAME.jpg", "NAME.cls" (one integer), "NAME.npy" (numbers and raw pixels), "NAME.txt", "NAME.json", "NAME.bin",
// and "NAME.K.jpg" of the K-th of several images. kData: a value is damaged.
Result<std::vector<SampleFiles::File>> files_of(std::span<const std::byte> sample, const SampleSchema& schema,
                                                const std::vector<ColumnChoice>& fields);

}  // namespace feedline::format
