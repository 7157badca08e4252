// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of an annotation that can be fields, and their names in specs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "memory/record.h"

namespace feedline::format {

enum class Part : std::uint8_t {
  kImage,
  kBoxes,
  kLabels,
  kCategoryIds,
  kAnnotationIds,
  kArea,
  kIsCrowd,
  kImageId,
  kMasks,       // (N, height, width)
  kMask,        // (height, width), class labels
  kCrowdMask,   // (height, width), 1 for crowds
  kObjectMask,  // (height, width), object numbers
  kKeypoints,
  kVisibility,
  kCaptions,
  kCaption,  // the first caption
  kDifficult,
  kTruncated,
  kPoses,
};

struct PartField {
  FieldDescription description;
  Part part;
};

// Parses specs, "PART" or "NAME=PART", into fields. Without specs, returns a field for each part in `usual`. Fails with
// kConfig if a part is not in `known`, a spec has a kind, or two fields have the same name.
Result<std::vector<PartField>> choose_parts(const std::vector<std::string>& specs, std::span<const Part> known,
                                            std::span<const Part> usual);
std::string_view name_of(Part part);
bool has_part(std::span<const PartField> fields, Part part);
std::vector<FieldDescription> descriptions_of(std::span<const PartField> fields);

// Reserves space for the numbers in field `field`, in record.more after the first `pieces` buffers, and makes the field
// an array. Fails with kData if the record would exceed its size limit.
Result<std::span<std::byte>> add_array(memory::Record& record, std::size_t pieces, std::size_t field, ArraySpec spec);
// Like add_array(), but for the labels of one mask or of a stack of `count` masks. All labels are set to 0.
Result<std::span<std::uint8_t>> add_labels(memory::Record& record, std::size_t pieces, std::size_t field, int height,
                                           int width, int label_bytes);
Result<std::span<std::uint8_t>> add_label_stack(memory::Record& record, std::size_t pieces, std::size_t field,
                                                std::size_t count, int height, int width);

}  // namespace feedline::format
