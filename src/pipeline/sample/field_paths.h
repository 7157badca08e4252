// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedline/operation.h"
#include "format/format.h"
#include "pipeline/fields/field_path.h"
#include "pipeline/sample/recipe.h"

namespace feedline::pipeline {

class ForegroundIndex;
class VideoIndexes;

// The inputs for creating a recipe's field paths.
struct FieldStages {
  const std::vector<Operation>& operations;  // accepted by check_operations()
  std::optional<DType> dtype;                // of images
  Layout layout;                             // of images
  const CachePoint* cache;                   // nullptr: pixels are not cached
  const std::vector<Collation>& collations;  // the last one that names a field applies
  const MapPoint* map;                       // nullptr: there is no map function
  const ViewPoint* views;                    // nullptr: no image has views
  const format::RecordFormat& records;
  const std::string& dataset;                     // for messages
  bool has_device_elements;                       // dense images stay bytes if the floats can be computed later
  std::shared_ptr<device::ImageDecoder> decoder;  // of the decoding device; nullptr if the CPU decodes
  RowsFor rows_for = RowsFor::kBatches;
  std::shared_ptr<VideoIndexes> videos = nullptr;  // of the source
  std::shared_ptr<ForegroundIndex> foreground = nullptr;
};

// Return whether a batch can contain the field's rows in that form, and which forms the field supports.
bool can_collate(const format::FieldDescription& field, BatchForm form);
std::string what_can(const format::FieldDescription& field);

// Returns the fields that sanitize_bounding_boxes names as labels, with one row per box.
std::vector<std::string> labels_of_boxes(const std::vector<Operation>& operations);

// Returns the name of the field with the sound of a video's clips.
std::string sound_of(const std::string& video);

// Returns the path for a field of this kind. kConfig: the operations do not produce rows of the same shape.
Result<std::shared_ptr<const FieldPath>> make_field_path(const format::FieldDescription& field,
                                                         const FieldStages& stages);

}  // namespace feedline::pipeline
