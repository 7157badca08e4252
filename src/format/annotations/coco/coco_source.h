// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the table of a COCO dataset, or builds it, and finds the folder of its images.

#include <string>

#include "feedline/error.h"
#include "format/annotations/coco/coco_table.h"
#include "format/format.h"

namespace feedline::format {

// By default, the table for a JSON file is stored if the file has at least this size. Smaller files are read in
// milliseconds.
inline constexpr std::uint64_t kWorthATable = 1 << 20;

// Returns the stored table for this version of the JSON file. If there is none, reads the file and stores its table in
// the folder for shard indexes. Fails with kStorage if the file cannot be read, and with kData in the same cases as
// scan_coco(). Errors name the file.
Result<CocoTable> open_coco_table(const std::string& json, const OpenOptions& options);
// Reads the JSON file without loading or storing a table.
Result<CocoTable> read_coco_table(const std::string& json, const OpenOptions& options);

// Returns the folder that file names are relative to: the one set by the user, or the first of the usual folders that
// contains the first image. Fails with kConfig if no folder contains the first image; the message lists the searched
// folders.
Result<std::string> find_images(const std::string& json, const CocoTable& table, const OpenOptions& options);

// Returns whether `crowd` is "skip" or empty. Fails with kConfig if `crowd` is neither empty, "skip" nor "keep", if a
// split is set (each split has its own file), or if `missing` is set.
Result<bool> check_coco_options(const OpenOptions& options);

}  // namespace feedline::format
