// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/annotations/annotation_part.h"
#include "format/annotations/coco/coco_details.h"
#include "format/annotations/coco/coco_table.h"
#include "memory/record.h"

namespace feedline::format {

// Selects the annotations of a table, and their parts, for a sample's fields. Immutable and thread-safe.
class CocoFields {
 public:
  // kConfig: as for choose_parts(), or a part that no annotation in the table has.
  static Result<CocoFields> choose(const CocoTable& table, const std::vector<std::string>& specs, bool skips_crowd);

  const std::vector<PartField>& fields() const { return fields_; }
  bool skips_crowd() const { return skips_crowd_; }
  bool takes(const CocoAnnotation& one) const { return !skips_crowd_ || !one.is_crowd(); }
  // Fills in all fields of the record except images. An error names the annotation and its offset in the JSON.
  Result<void> fill(const CocoTable& table, std::uint64_t image, memory::Record& record) const;

 private:
  CocoFields() = default;
  Result<void> fill_field(const CocoTable& table, std::uint64_t image, std::size_t field, memory::Record& record) const;

  std::vector<PartField> fields_;
  bool skips_crowd_ = true;
};

// Returns the annotation's error: the recorded reason why the value cannot be used, or else `lacks`.
std::unexpected<Error> wrong_annotation(const CocoTable& table, const CocoAnnotation& one, CocoValue value,
                                        const std::string& lacks);

}  // namespace feedline::format
