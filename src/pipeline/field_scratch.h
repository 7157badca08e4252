// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "decode/decoder.h"
#include "decode/labels.h"
#include "feedline/error.h"
#include "memory/pixels.h"
#include "memory/planes.h"
#include "transform/chain.h"
#include "transform/label_chain.h"

namespace feedline::pipeline {

// What a thread makes images with.
struct ImageScratch {
  decode::ImageDecoder decoder;
  memory::PixelBuffer pixels;
  memory::Planes planes;
  transform::Drawing drawing;
  transform::Workspace workspace;
};

// What a thread makes masks with.
struct LabelScratch {
  decode::LabelDecoder decoder;
  memory::PixelBuffer labels;
  transform::LabelDrawing drawing;
};

// The image or mask of a sample that the geometry was drawn for first: those that follow it must be of its size.
struct DrawnFor {
  Size size;
  const std::string* field = nullptr;  // nullptr: none yet
};

// Memory that one thread keeps from sample to sample. The fields of a sample are made one after the other, so those of
// a kind share theirs. A part is there once a path that uses it has asked for it.
struct FieldScratch {
  std::unique_ptr<ImageScratch> image;
  std::unique_ptr<LabelScratch> labels;
  DrawnFor drawn_for;  // of the sample that is made
};

// Notes the size of a field, if it is the first of its sample.
void note_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field);
// Likewise, or compares it. kData: they differ.
Result<void> check_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field);

}  // namespace feedline::pipeline
