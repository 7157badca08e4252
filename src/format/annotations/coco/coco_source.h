// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the parts of a COCO dataset: its table, stored or newly built, and the folder of its images.

#include <string>

#include "feedline/error.h"
#include "format/annotations/coco/coco_table.h"
#include "format/format.h"

namespace feedline::format {

// The minimum size of a JSON file for storing its table by default; smaller files are read within milliseconds.
inline constexpr std::uint64_t kWorthATable = 1 << 20;

// Returns the stored table for this version of the JSON. Without one, reads the JSON and stores the table where indexes
// of shards are stored. kStorage: the JSON cannot be read. kData: as for scan_coco(). Errors name the JSON.
Result<CocoTable> open_coco_table(const std::string& json, const OpenOptions& options);
// Reads the JSON, without loading or storing a table.
Result<CocoTable> read_coco_table(const std::string& json, const OpenOptions& options);

// The folder that file names are relative to: the user's choice, or else the first of the usual folders with the first
// image. kConfig: none has it; the message lists the folders searched.
Result<std::string> find_images(const std::string& json, const CocoTable& table, const OpenOptions& options);

// Returns whether `crowd` is "skip" or unset. kConfig: a `crowd` other than "skip" and "keep"; a split, since each
// split has its own file; or a setting for samples that lack a field.
Result<bool> check_coco_options(const OpenOptions& options);

}  // namespace feedline::format
