// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers about an operation with its arguments. Code outside of ops/ asks these and never which operation it is.

#include <cstddef>

#include "feedline/operation.h"

namespace feedline::transform {

// Where an operation takes effect.
enum class Stage : std::uint8_t {
  kNone,     // nowhere
  kDecode,   // in the decoder
  kPixels,   // on 8-bit pixels
  kTargets,  // on boxes, never on pixels
  kValues,   // on numbers, as rows of the batch are written
};

struct Properties {
  Stage stage = Stage::kPixels;
  bool is_random = false;          // does it draw anything?
  bool moves_pixels = false;       // masks, boxes and points move with the image
  bool changes_size = false;       // the image may have another size after it. Implies moves_pixels
  bool draws_by_size = false;      // what is drawn depends on the image's size. Implies moves_pixels
  bool is_automatic = false;       // it chooses its changes, some of which move pixels without moving targets
  bool draws_by_boxes = false;     // what is drawn depends on the boxes of the sample
  bool makes_values = false;       // numbers come out that are not 8-bit pixels
  bool narrows_decoding = false;   // as a first step, only the pixels that it needs are decoded
  bool is_flip = false;            // fused into the resize or the output
  bool depends_on_pillow = false;  // its pixels changed between versions: follow_pillow()
  bool repeats_border = false;     // pads with pixels of the image
  bool erases = false;             // writes rectangles
  bool erases_with_noise = false;  // a number for every value
  int most_rectangles = 0;         // that it may write

  // On a GPU, for rows whose pixels are there.
  bool runs_on_device = false;
  bool resizes = false;
  bool adds_border = false;
  bool pads_if_needed = false;     // only by the size of each image, which a GPU does not do
  std::size_t colour_changes = 0;  // that it may draw

  // Arguments that steer more than the operation itself; nullptr for all others. Owned by the operation.
  const op::Decode* decode = nullptr;
  const op::Boxes* boxes = nullptr;
  const op::SanitizeBoundingBoxes* sanitize = nullptr;
};

}  // namespace feedline::transform
