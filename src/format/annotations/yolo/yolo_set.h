// SPDX-License-Identifier: Apache-2.0
#pragma once

// Determines the samples of a YOLO dataset from its YAML file.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/annotations/annotation_part.h"
#include "format/annotations/yolo/yolo_labels.h"
#include "format/format.h"

namespace feedline::format {

struct YoloSet {
  std::string root;  // the YAML file, or the folder if there is none
  std::vector<PartField> fields;
  std::vector<std::string> images;  // storage path of each sample's image; sorted
  std::vector<std::string> labels;  // path of each sample's label file; empty if there is none, and so no objects
  std::vector<std::string> keys;    // the images' paths relative to their folder
  std::vector<std::string> classes;
  YoloLines lines;
  std::uint64_t unlabeled = 0;  // number of images without a label file
};

// Returns the path of the YAML file: the source itself, or data.yaml in its folder. Returns an empty string if there is
// no YAML file.
std::string find_yaml(const std::string& source, const storage::Storage& storage);

// Lists the images of the split ("train" by default) and their label files. A label file has the same path as its
// image, except that the last "images" folder is replaced by "labels" and the extension is ".txt". Fails with kConfig
// if a split, field or folder is unknown, there are no images or no label files, or an option is not supported for
// YOLO. Fails with kData if the YAML is invalid, and with kStorage if a file cannot be read.
Result<YoloSet> list_yolo(const std::string& source, const OpenOptions& options);

}  // namespace feedline::format
