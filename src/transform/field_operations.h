// SPDX-License-Identifier: Apache-2.0
#pragma once

// Operations of a sample with several images and masks: which of them are for one field.

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "feedline/operation.h"

namespace feedline::transform {

// The list as one field has it: what is for other fields only is op::Skipped.
std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field);

// visit(operation) of each operation that stands in another, one level down.
template <typename Visit>
void for_each_nested(const Operation& operation, Visit visit) {
  if (const auto* apply = std::get_if<op::RandomApply>(&operation)) std::ranges::for_each(apply->operations, visit);
  if (const auto* order = std::get_if<op::RandomOrder>(&operation)) std::ranges::for_each(order->operations, visit);
  if (const auto* choice = std::get_if<op::RandomChoice>(&operation))
    for (const auto& chain : choice->chains) std::ranges::for_each(chain, visit);
}

// These are so of an operation too that holds one of which they are so.
// May an image be of another size behind it?
bool changes_size(const Operation& operation);
// Does it move pixels, and not change what they say? Those are for masks, boxes and points too.
bool is_geometric(const Operation& operation);
// Does it choose for itself what to do, so that it may move pixels of images, which no mask follows?
bool is_automatic(const Operation& operation);
// Does what is drawn depend on the image's size? Fields that are to be cut at the same place must be of one size then.
bool draws_by_size(const Operation& operation);
// Are there values behind it, and no bytes: normalize, or to_dtype to another type than uint8?
bool makes_values(const Operation& operation);
// Does it write rectangles over the image?
bool erases(const Operation& operation);

}  // namespace feedline::transform
