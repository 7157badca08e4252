// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which samples a Pascal VOC folder has, and which classes.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/annotations/annotation_part.h"
#include "format/format.h"

namespace feedline::format {

struct VocSet {
  std::string root;
  std::string list;  // the file in ImageSets that names the samples; empty: all annotations are taken
  std::vector<PartField> fields;
  std::vector<std::string> keys;    // of the samples, "2008_000008"
  std::vector<std::string> images;  // of each, its file in JPEGImages; empty: there is none
  std::vector<std::string> classes;
  bool reads_objects = false;  // does a field need the XML?
  bool reads_image = false;

  std::string annotation(std::uint64_t sample) const { return "Annotations/" + keys[sample] + ".xml"; }
  std::string mask(std::uint64_t sample, Part part) const {
    return (part == Part::kMask ? "SegmentationClass/" : "SegmentationObject/") + keys[sample] + ".png";
  }
};

// Lists the folder. Without a split the list is "train", where there is one. Classes are those that ImageSets/Main has
// lists of; of a set without such lists those of all its annotations, which are read then. kConfig: no such list or
// field, an option that is not for VOC, no sample. kStorage: something cannot be read. kData: a list that has more than
// a name in a line; an annotation that was read for its classes.
Result<VocSet> list_voc(const std::string& root, const OpenOptions& options);

}  // namespace feedline::format
