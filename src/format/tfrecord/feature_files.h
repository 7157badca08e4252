// SPDX-License-Identifier: Apache-2.0
#pragma once

// A record's features as files of a sample, for copying it to a tar: what `feedline pack` writes.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/tfrecord/feature_choice.h"

namespace feedline::format {

// All features, those of no field too. The first image is "jpg", "png" or "webp", as its bytes are, the first integer
// "cls"; the others are called like their feature, small letters, digits, "-" and "_" of it: "NAME.jpg", "NAME.cls"
// (one integer), "NAME.npy" (numbers), "NAME.txt", "NAME.json" and "NAME.bin" (bytes), "NAME.K.bin" of the K-th of
// several byte strings. kData: it is no Example, has no features, or a feature of steps with different numbers of
// values.
Result<std::vector<SampleFiles::File>> files_of(std::span<const std::byte> record,
                                                const std::vector<FeatureChoice>& fields);

}  // namespace feedline::format
