// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a record's features to files of a sample, for copying it to a tar with `feedline pack`.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/tfrecord/feature_choice.h"

namespace feedline::format {

// Returns all features, including those that no field uses. The first image is named after its format ("jpg"),
// and the first integer "cls". Other files are named after their feature, in lower-case letters, digits, "-" and "_":
// "NAME.jpg", "NAME.cls" (one integer), "NAME.npy" (numbers), "NAME.txt", "NAME.json" and "NAME.bin" (bytes), and
// "NAME.K.bin" for byte string number K if there are several. Fails with kData if the record is not an Example, has no
// features, or has a feature with different numbers of values in its steps.
Result<std::vector<SampleFiles::File>> files_of(std::span<const std::byte> record,
                                                const std::vector<FeatureChoice>& fields);

}  // namespace feedline::format
