// SPDX-License-Identifier: Apache-2.0
#include "transform/operation/field_operations.h"

#include <algorithm>

namespace feedline::transform {

std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field) {
  std::vector<Operation> list(operations.begin(), operations.end());
  for (Operation& operation : list)
    if (!operation.fields.empty() && std::ranges::find(operation.fields, field) == operation.fields.end())
      operation = op::Skipped{};
  return list;
}

namespace {

// Returns whether the operation or a nested one has the property.
bool has(const Operation& operation, bool Properties::*property) {
  bool found = operation->properties().*property;
  for_each_nested(operation, [&](const Operation& nested) { found = found || has(nested, property); });
  return found;
}

}  // namespace

bool changes_size(const Operation& operation) { return has(operation, &Properties::changes_size); }
bool is_geometric(const Operation& operation) { return has(operation, &Properties::moves_pixels); }
bool is_automatic(const Operation& operation) { return has(operation, &Properties::is_automatic); }
bool draws_by_size(const Operation& operation) { return has(operation, &Properties::draws_by_size); }
bool makes_values(const Operation& operation) { return has(operation, &Properties::makes_values); }
bool erases(const Operation& operation) { return has(operation, &Properties::erases); }

}  // namespace feedline::transform
