// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a stored image (an encoded file or raw pixels) for the paths that make rows from it.

#include <cstdint>
#include <string>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "format/pixels/pixel_record.h"
#include "memory/pixels.h"
#include "memory/record.h"
#include "pipeline/fields/field_path.h"
#include "pipeline/fields/field_scratch.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

bool is_encoded(const memory::Record::Field& stored);  // an encoded file
// Returns the image's size; for a file, reads its header. Applies the EXIF orientation if requested.
Result<Size> open_image(const memory::Record::Field& stored, bool applies_exif, ImageScratch& scratch);
// Returns a region's pixels, valid until the scratch memory is used again. started_ns: the time at which reading the
// header began. Requires: open_image() was called.
Result<memory::PixelView> read_region(const memory::Record::Field& stored, const Box& region, ColorMode mode,
                                      FieldWork& work, std::uint64_t started_ns);
// Returns a region of decoded pixels, with the mode's number of channels. converted: room for pixels of another mode.
Result<memory::PixelView> region_of(memory::PixelView view, const Box& region, ColorMode mode,
                                    memory::PixelBuffer& converted);
// Adds the prepared image to a record that Dataset::cache stores.
Result<void> prepare_image(const memory::Record::Field& stored, const transform::Preparation& preparation,
                           const std::string& field, FieldWork& work, format::PixelRecordBuilder& cached);

}  // namespace feedline::pipeline
