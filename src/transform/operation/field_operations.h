// SPDX-License-Identifier: Apache-2.0
#pragma once

// Operations of a sample with several images and masks: selects those for one field, and answers about each.

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "feedline/operation.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {

// The list for one field: operations for other fields only are op::Skipped, so that the others keep their streams.
std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field);

// visit(operation) of each operation that is in another, one level down.
template <typename Visit>
void for_each_nested(const Operation& operation, Visit visit) {
  for (const auto& chain : operation->chains()) std::ranges::for_each(chain, visit);
}

// Properties of an operation, or of one in it.
bool changes_size(const Operation& operation);
// Does it move pixels, without changing their meaning? Masks, boxes and points follow.
bool is_geometric(const Operation& operation);
// Does it choose its changes, so that it may move pixels of images and no mask follows?
bool is_automatic(const Operation& operation);
// Does its drawing depend on the image's size? Fields that are cut at the same place must have one size then.
bool draws_by_size(const Operation& operation);
// Are there values after it that are not bytes?
bool makes_values(const Operation& operation);
// Does it write rectangles over the image?
bool erases(const Operation& operation);

}  // namespace feedline::transform
