// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feedline/operation.h"
#include "format/format.h"
#include "pipeline/field_path.h"
#include "pipeline/recipe.h"

namespace feedline::pipeline {

// What the paths of a recipe are made of.
struct FieldStages {
  const std::vector<Operation>& operations;  // that check_operations() accepted
  std::optional<DType> dtype;                // of images
  Layout layout;                             // likewise
  const CachePoint* cache;                   // nullptr: pixels are not kept
  const std::vector<Collation>& collations;  // the last one that names a field counts
  const MapPoint* map;                       // nullptr: no function takes fields
  const ViewPoint* views;                    // nullptr: no image has views
  const format::RecordFormat& records;
  const std::string& dataset;  // for messages
  bool leaves_elements;        // of dense images: rows get bytes, where floats can be made of them later
  std::shared_ptr<device::ImageDecoder> decoder;  // of the device that decodes images; nullptr: it does not
  RowsFor rows_for = RowsFor::kBatches;
};

// Can rows of the field stand in a batch so, and how can they?
bool can_collate(const format::FieldDescription& field, BatchForm form);
std::string what_can(const format::FieldDescription& field);

// The fields whose rows belong to boxes, by sanitize_bounding_boxes.
std::vector<std::string> labels_of_boxes(const std::vector<Operation>& operations);

// The path of a field, by its kind. kConfig: the operations do not give rows of one shape.
Result<std::shared_ptr<const FieldPath>> make_field_path(const format::FieldDescription& field,
                                                         const FieldStages& stages);

}  // namespace feedline::pipeline
