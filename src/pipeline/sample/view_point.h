// SPDX-License-Identifier: Apache-2.0
#pragma once

// The position of an image's views in a chain (Dataset::views), and their definition.

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
    std::vector<std::vector<Operation>> views;  // the operations of each
    bool is_stacked = false;                    // they form one array, even a single one
    std::vector<std::uint32_t> drawn_as = {};   // View::drawn_as, of a single one
  };
  std::string image;  // the source field
  std::vector<Field> fields;
  std::size_t position = 0;  // number of operations before
  std::string text;          // as a call

  // Returns the operations of a view: the dataset's operations before it, its own, and the later ones for field number
  // `field`.
  std::vector<Operation> operations_of(const std::vector<Operation>& operations, std::size_t field,
                                       std::size_t view) const;
  // Returns the dataset's operations on the image that precede the views.
  std::vector<Operation> shared(const std::vector<Operation>& operations) const;
};

// kConfig: see Dataset::views. image: empty if the source has only one image. check_operations() checks the results of
// the operations.
Result<ViewPoint> make_view_point(std::vector<View> views, const std::string& image, const Source& source,
                                  std::size_t operations, const MapPoint* map);
// For Dataset::five_crop and ten_crop. mirrored: how the second five views are flipped; kNot for five_crop.
enum class Mirrored : std::uint8_t { kNot, kHorizontally, kVertically };
Result<ViewPoint> make_corner_crops(Size size, Mirrored mirrored, const std::string& image, const Source& source,
                                    std::size_t operations, const MapPoint* map);

// Returns the fields to which operations after the views apply: the views replace their image. views: nullptr if there
// are none.
std::vector<format::FieldDescription> fields_behind(const std::vector<format::FieldDescription>& fields,
                                                    const ViewPoint* views);

}  // namespace feedline::pipeline
