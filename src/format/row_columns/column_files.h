// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a sample's columns to files, which `feedline pack` writes to a tar.

#include <cstddef>
#include <span>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/row_columns/column.h"
#include "format/row_columns/sample_layout.h"

namespace feedline::format {

// Converts all supported columns, including those that no field uses. The first image is named after its format
// ("jpg"), and the first integer field "cls". Other files are named after their column, in lower-case letters, digits,
// "-" and "_": "NAME.jpg", "NAME.cls" (one integer), "NAME.npy" (numbers and raw pixels), "NAME.txt", "NAME.json",
// "NAME.bin", and "NAME.K.jpg" for image number K if there are several. Fails with kData if a value is damaged.
Result<std::vector<SampleFiles::File>> files_of(std::span<const std::byte> sample, const SampleSchema& schema,
                                                const std::vector<ColumnChoice>& fields);

}  // namespace feedline::format
