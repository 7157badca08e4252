// SPDX-License-Identifier: Apache-2.0
#pragma once

// What fields can be of annotated images: a part of an annotation by its word.

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
  kMask,        // (height, width), of classes
  kCrowdMask,   // likewise: 1 where a crowd is
  kObjectMask,  // likewise: the number of the object
  kKeypoints,
  kVisibility,
  kCaptions,
  kCaption,  // the first of them
  kDifficult,
  kTruncated,
  kPoses,
};

struct PartField {
  FieldDescription description;
  Part part;
};

// The fields of specs, "PART" or "NAME=PART"; of no spec: those of `usual`. kConfig: no such part among `known`, a kind
// behind a spec, two fields of one name.
Result<std::vector<PartField>> choose_parts(const std::vector<std::string>& specs, std::span<const Part> known,
                                            std::span<const Part> usual);
std::string_view name_of(Part part);
bool has_part(std::span<const PartField> fields, Part part);
std::vector<FieldDescription> descriptions_of(std::span<const PartField> fields);

// Room for the numbers of field `field` in record.more, behind the `pieces` that lie there, and says in the field that
// they are an array. kData: more bytes than the record takes, with what it has read already.
Result<std::span<std::byte>> add_array(memory::Record& record, std::size_t pieces, std::size_t field, ArraySpec spec);
// The same of labels, all 0, as the pixels of a mask: of one, or of a stack of `count`.
Result<std::span<std::uint8_t>> add_labels(memory::Record& record, std::size_t pieces, std::size_t field, int height,
                                           int width, int label_bytes);
Result<std::span<std::uint8_t>> add_label_stack(memory::Record& record, std::size_t pieces, std::size_t field,
                                                std::size_t count, int height, int width);

}  // namespace feedline::format
