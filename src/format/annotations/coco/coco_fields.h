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

// Selects the annotations of a sample that its fields contain, and the parts of these annotations. Immutable and
// thread-safe.
class CocoFields {
 public:
  // Fails with kConfig in the same cases as choose_parts(), and if no annotation in the table has a requested part.
  static Result<CocoFields> choose(const CocoTable& table, const std::vector<std::string>& specs, bool skips_crowd);

  const std::vector<PartField>& fields() const { return fields_; }
  bool skips_crowd() const { return skips_crowd_; }
  bool takes(const CocoAnnotation& one) const { return !skips_crowd_ || !one.is_crowd(); }
  // Fills all fields of the record except images. Errors name the annotation and its offset in the JSON file.
  Result<void> fill(const CocoTable& table, std::uint64_t image, memory::Record& record) const;
  // Fills one of these fields.
  Result<void> fill_field(const CocoTable& table, std::uint64_t image, std::size_t field, memory::Record& record) const;

 private:
  CocoFields() = default;

  std::vector<PartField> fields_;
  bool skips_crowd_ = true;
};

// Returns the error for an annotation: the recorded reason why `value` cannot be used, or `lacks` if no reason was
// recorded.
std::unexpected<Error> wrong_annotation(const CocoTable& table, const CocoAnnotation& one, CocoValue value,
                                        const std::string& lacks);

}  // namespace feedline::format
