// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where in a chain views of an image are made (Dataset::views), and what they are.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline::format {
struct FieldDescription;
}

namespace feedline::pipeline {

class MapPoint;
class Source;

struct ViewPoint {
  struct Field {
    std::string name;
    std::vector<std::vector<Operation>> views;  // what is done to each
    bool is_stacked = false;                    // they stand as one array, even a single one
    std::vector<std::uint32_t> drawn_as = {};   // View::drawn_as, of a single one
  };
  std::string image;  // the field that they are made of
  std::vector<Field> fields;
  std::size_t position = 0;  // operations before
  std::string text;          // as a call

  // The operations of a view: those of the dataset before it, its own, those behind, as field number `field` has them.
  std::vector<Operation> operations_of(const std::vector<Operation>& operations, std::size_t field,
                                       std::size_t view) const;
  // Of the dataset, before the views, as the image has them.
  std::vector<Operation> shared(const std::vector<Operation>& operations) const;
};

// kConfig: see Dataset::views. image: empty where the source has one. What the operations give is checked by
// check_operations().
Result<ViewPoint> make_view_point(std::vector<View> views, const std::string& image, const Source& source,
                                  std::size_t operations, const MapPoint* map);
// See Dataset::five_crop and ten_crop. flips: what the second five are of; nullopt: there are none.
enum class Mirrored : std::uint8_t { kNot, kHorizontally, kVertically };
Result<ViewPoint> make_corner_crops(Size size, Mirrored mirrored, const std::string& image, const Source& source,
                                    std::size_t operations, const MapPoint* map);

// The fields that the operations behind views have: each view in the place of the image. views: nullptr: there are
// none.
std::vector<format::FieldDescription> fields_behind(const std::vector<format::FieldDescription>& fields,
                                                    const ViewPoint* views);

}  // namespace feedline::pipeline
