// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/column.h"

#include <algorithm>

namespace feedline::format {
namespace {

// Some writers do not record that a list has a fixed size.
bool may_be_equal(const Shape& a, const Shape& b) {
  return std::ranges::equal(
      a, b, [](std::int64_t x, std::int64_t y) { return x == y || x == kAnyLength || y == kAnyLength; });
}

}  // namespace

Shape samples_shape(const ColumnType& column) {
  if (column.order.empty()) return column.tensor;
  Shape shape;
  for (std::size_t i = column.order.size(); i-- > 0;) shape = shape.with_front(column.tensor[column.order[i]]);
  return shape;
}

std::unexpected<Error> not_an_array(const ColumnType& column, const std::string& how) {
  const std::string& form = column.nested_form;
  return data_error(how + (form.empty() ? "" : "; read the values as Python lists with '" + form + ":json' in fields="),
                    "format");
}

std::string described(const ColumnType& column) {
  return column.meaning.empty() ? column.shown : column.shown + ", " + column.meaning;
}

bool have_same_values(const ColumnType& a, const ColumnType& b) {
  const bool have_same_classes = a.classes.empty() || b.classes.empty() || a.classes == b.classes;
  return a.holds == b.holds && a.dtype == b.dtype && may_be_equal(a.lists, b.lists) && a.tensor == b.tensor &&
         a.order == b.order && a.unit == b.unit && have_same_classes;
}

}  // namespace feedline::format
