// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/operation.h"

namespace feedline::python {

// One method per operation: plain arguments, already brought to one form by feedline/arguments.py.
void bind_operations(nanobind::class_<Dataset>& cls);
// The random changes and the automatic augmentations.
void bind_augmentations(nanobind::class_<Dataset>& cls);
// Erasing and blur, and operations that take chains.
void bind_random_operations(nanobind::class_<Dataset>& cls);
// Boxes, keypoints, and what is drawn by them.
void bind_targets(nanobind::class_<Dataset>& cls);

// Resizes of every kind, borders up to a size, the affine family and elastic.
void bind_geometry(nanobind::class_<Dataset>& cls);

using Fields = std::vector<std::string>;  // that an operation is for; none: all
using Color = std::array<std::uint8_t, 3>;
using LowHigh = std::pair<double, double>;
inline Range range_of(LowHigh range) { return {range.first, range.second}; }
inline std::optional<Range> range_of(const std::optional<LowHigh>& range) {
  return range ? std::optional(range_of(*range)) : std::nullopt;
}
// Appends and checks at once, so that a wrong argument is reported where it was written.
Dataset appended(const Dataset& dataset, const Fields& fields, Operation operation);

}  // namespace feedline::python
