// SPDX-License-Identifier: Apache-2.0
#pragma once

// Determines the samples and classes of a Pascal VOC folder.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/annotations/annotation_part.h"
#include "format/format.h"

namespace feedline::format {

struct VocSet {
  std::string root;
  std::string list;  // the file in ImageSets that lists the samples; empty to use all annotations
  std::vector<PartField> fields;
  std::vector<std::string> keys;    // of the samples, such as "2008_000008"
  std::vector<std::string> images;  // by sample, its file name in JPEGImages; empty if missing
  std::vector<std::string> classes;
  bool reads_objects = false;  // whether a field needs the XML

  std::string annotation(std::uint64_t sample) const { return "Annotations/" + keys[sample] + ".xml"; }
  std::string mask(std::uint64_t sample, Part part) const {
    return (part == Part::kMask ? "SegmentationClass/" : "SegmentationObject/") + keys[sample] + ".png";
  }
};

// Lists the samples of the folder. The default split is "train", if it has a list. The classes are those that have
// lists in ImageSets/Main; without such lists, the classes are read from all annotations. Fails with kConfig if a list
// or field is unknown, an option is not supported for VOC, or there are no samples. Fails with kStorage if a file
// cannot be read, and with kData if a line of a list is not a single name, or an annotation that is read for its
// classes is damaged.
Result<VocSet> list_voc(const std::string& root, const OpenOptions& options);

}  // namespace feedline::format
