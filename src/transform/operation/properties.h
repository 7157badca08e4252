// SPDX-License-Identifier: Apache-2.0
#pragma once

// Properties of an operation with specific arguments. Code outside ops/ uses these properties instead of testing for an
// operation.

#include <cstddef>

#include "feedline/operation.h"

namespace feedline::transform {

class VolumeOperation;

// The stage of the pipeline that runs an operation.
enum class Stage : std::uint8_t {
  kNone,     // nothing runs it
  kDecode,   // the decoder
  kPixels,   // on 8-bit pixels
  kTargets,  // on boxes, never on pixels
  kValues,   // on values, while rows of the batch are written
  kAudio,    // on audio, never on pixels
  kVolume,   // on volumes, never on pixels
};

struct Properties {
  Stage stage = Stage::kPixels;
  bool is_random = false;          // draws random numbers
  bool moves_pixels = false;       // masks, boxes and points move with the image
  bool changes_size = false;       // may change the image's size; implies moves_pixels
  bool draws_by_size = false;      // draws depend on the image's size; implies moves_pixels
  bool is_automatic = false;       // chooses among changes, some of which move pixels but not targets
  bool draws_by_boxes = false;     // draws depend on the sample's boxes
  bool makes_values = false;       // outputs values other than 8-bit pixels
  bool narrows_decoding = false;   // as a first step, limits decoding to the pixels that it needs
  bool is_flip = false;            // fused into the resize or the output
  bool depends_on_pillow = false;  // pixels differ between Pillow versions: follow_pillow()
  bool repeats_border = false;     // pads with pixels of the image
  bool erases = false;             // writes rectangles
  bool erases_with_noise = false;  // with a separate number for every value
  int most_rectangles = 0;         // maximum number of rectangles

  // Whether a GPU can run the operation, for rows whose pixels are in its memory.
  bool runs_on_device = false;
  bool resizes = false;
  bool adds_border = false;
  bool pads_if_needed = false;     // depending on each image's size, which a GPU does not support
  std::size_t colour_changes = 0;  // maximum number of colour changes

  // Arguments that other stages need; nullptr for operations of other types. The operation owns the arguments.
  const op::Decode* decode = nullptr;
  const op::Boxes* boxes = nullptr;
  const op::SanitizeBoundingBoxes* sanitize = nullptr;
  const op::Audio* audio = nullptr;
  const op::SpeedPerturbation* speed = nullptr;
  const op::AddNoise* noise = nullptr;
  const op::RandomGain* gain = nullptr;
  const op::Clip* clip = nullptr;
  const op::Frames* frames = nullptr;
  const op::Patch* patch = nullptr;
  const op::RandomPatch* random_patch = nullptr;  // the same as `patch`
  bool is_grid_patch = false;
  const VolumeOperation* volume = nullptr;

  bool is_for_videos() const { return clip != nullptr || frames != nullptr; }
};

}  // namespace feedline::transform
