// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the parts of a COCO set are: its table, kept or made, and the folder of its images.

#include <string>

#include "feedline/error.h"
#include "format/annotations/coco/coco_table.h"
#include "format/format.h"

namespace feedline::format {

// JSON from this size on is worth a table that is kept unasked: a smaller one is read within some milliseconds.
inline constexpr std::uint64_t kWorthATable = 1 << 20;

// The table that is kept of this version of the JSON; else it is read, and the table kept beside it, as an index of a
// shard is. kStorage: it cannot be read. kData: as scan_coco(). Errors name the JSON.
Result<CocoTable> open_coco_table(const std::string& json, const OpenOptions& options);
// Reads the JSON, and neither looks for a table nor keeps one.
Result<CocoTable> read_coco_table(const std::string& json, const OpenOptions& options);

// The folder that file names are relative to: what the user says; else the first of the usual ones that has the first
// image. kConfig: none has, and which were looked at.
Result<std::string> find_images(const std::string& json, const CocoTable& table, const OpenOptions& options);

// "skip" and nothing are true. kConfig: neither "skip" nor "keep"; a split, which a file of its own is here; samples
// that lack something, which none does.
Result<bool> check_coco_options(const OpenOptions& options);

}  // namespace feedline::format
