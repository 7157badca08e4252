// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/row_shape.h"

#include <algorithm>

namespace feedline::pipeline {
namespace {

// Returns whether the row's extents match those common to all rows.
bool fits(const Shape& row, const FieldSpec& field) {
  const Shape& shape = field.array.shape;
  if (field.form == BatchForm::kList) return true;
  return row.dims() == shape.dims() && std::equal(row.begin(), row.end(), shape.begin(), [](auto here, auto there) {
           return there == kAnyLength || here == there;
         });
}

std::string what_helps(const FieldSpec& field) {
  return field.form == BatchForm::kDense
             ? "collate(\"pad\") allows the first dimension to differ, collate(\"list\") any dimension"
             : "collate(\"list\") allows any";
}

std::string text_of(const ArraySpec& spec) { return std::string(name_of(spec.dtype)) + spec.shape.to_string(); }

}  // namespace

Result<void> check_row(const ArraySpec& row, const FieldSpec& field, const std::string& what, const char* stage) {
  const ArraySpec& all = field.array;
  if (row.dtype != all.dtype)
    return data_error(what + " an array of " + text_of(row) + ", but that of the first sample is " +
                          std::string(name_of(all.dtype)) + "; use one dtype for all",
                      stage);
  if (!fits(row.shape, field))
    return data_error(
        what + " an array of " + text_of(row) + ", but all must be " + text_of(all) + "; " + what_helps(field), stage);
  return {};
}

}  // namespace feedline::pipeline
