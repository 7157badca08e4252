// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which samples a YOLO set has, by the YAML file that describes it.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/annotations/annotation_part.h"
#include "format/annotations/yolo/yolo_labels.h"
#include "format/format.h"

namespace feedline::format {

struct YoloSet {
  std::string root;  // the YAML file, or the folder without one
  std::vector<PartField> fields;
  std::vector<std::string> images;  // of each sample, its path in the storage; sorted
  std::vector<std::string> labels;  // likewise; empty: it has no label file, and no objects
  std::vector<std::string> keys;    // the images' paths below their folder
  std::vector<std::string> classes;
  YoloLines lines;
  std::uint64_t unlabeled = 0;  // images without a label file
};

// The YAML file that a source is of: itself, or data.yaml of a folder. Empty: there is none.
std::string find_yaml(const std::string& source, const storage::Storage& storage);

// Lists the images of the split, "train" where none is said, and their label files: those whose last "images" folder is
// called "labels", with the end ".txt". kConfig: no such split, field or folder, no image, no label file at all, an
// option that is not for YOLO. kData: the YAML cannot be read. kStorage: likewise.
Result<YoloSet> list_yolo(const std::string& source, const OpenOptions& options);

}  // namespace feedline::format
