// SPDX-License-Identifier: Apache-2.0
#pragma once

// Operations of a sample with several images and masks: which of them are for one field.

#include <span>
#include <string_view>
#include <vector>

#include "feedline/operation.h"

namespace feedline::transform {

// The list as one field has it: what is for other fields only is op::Skipped.
std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field);

// Does it move pixels, and not change what they say? Those are for masks too.
bool is_geometric(const Operation& operation);
// Does it choose for itself what to do, so that it may move pixels of images, which no mask follows?
bool is_automatic(const Operation& operation);
// Does what is drawn depend on the image's size? Fields that are to be cut at the same place must be of one size then.
bool draws_by_size(const Operation& operation);

}  // namespace feedline::transform
