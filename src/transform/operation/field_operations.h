// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the operations for one field of a sample with several images and masks, and returns properties of operations.

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "feedline/operation.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {

// Returns the list of operations for one field. Operations for other fields are replaced by op::Skipped, so that the
// remaining ones have the same streams.
std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field);

// Calls visit(operation) for each operation that is nested directly in `operation`.
template <typename Visit>
void for_each_nested(const Operation& operation, Visit visit) {
  for (const auto& chain : operation->chains()) std::ranges::for_each(chain, visit);
}

// Return properties of an operation or its nested operations.
bool changes_size(const Operation& operation);
// Returns whether the operation moves pixels without changing their meaning, so that masks, boxes and points follow.
bool is_geometric(const Operation& operation);
// Returns whether the operation chooses its changes itself. Such changes may move pixels of images, but masks do not
// follow.
bool is_automatic(const Operation& operation);
// Returns whether the operation's draws depend on the size of the image. If so, fields that share the draws must have
// equal sizes.
bool draws_by_size(const Operation& operation);
// Returns whether the output of the operation has values other than bytes.
bool makes_values(const Operation& operation);
// Returns whether the operation writes rectangles over the image.
bool erases(const Operation& operation);

}  // namespace feedline::transform
