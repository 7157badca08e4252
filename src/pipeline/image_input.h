// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stored image on its way to pixels, for the paths that make rows of one: a file, or pixels as they are.

#include <cstdint>
#include <string>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "format/pixels/pixel_record.h"
#include "memory/pixels.h"
#include "memory/record.h"
#include "pipeline/field_path.h"
#include "pipeline/field_scratch.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

bool is_encoded(const memory::Record::Field& stored);  // a file, which must be decoded
// Its size, from its header where it is a file, which is turned by its EXIF where that is asked for.
Result<Size> open_image(const memory::Record::Field& stored, bool applies_exif, ImageScratch& scratch);
// A region's pixels, valid until the scratch is used again. started_ns: when the header began to be read.
// Requires: open_image() came before.
Result<memory::PixelView> read_region(const memory::Record::Field& stored, const Box& region, ColorMode mode,
                                      FieldWork& work, std::uint64_t started_ns);
// Adds the image, prepared, to a record that Dataset::cache keeps.
Result<void> keep_image(const memory::Record::Field& stored, const transform::Preparation& preparation,
                        const std::string& field, FieldWork& work, format::PixelRecordBuilder& kept);

}  // namespace feedline::pipeline
