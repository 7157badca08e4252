// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "decode/labels.h"
#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/pixels.h"
#include "memory/planes.h"
#include "transform/chain.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/axis_table.h"
#include "transform/targets/label_chain.h"
#include "transform/targets/target_chain.h"

namespace feedline::pipeline {

// What a thread makes images with.
struct ImageScratch {
  decode::ImageDecoder decoder;
  decode::Depth deepest = decode::Depth::k8Bits;  // of the images opened since the last reset
  memory::PixelBuffer pixels;
  memory::Planes planes;
  transform::Drawing drawing;
  transform::Workspace workspace;
  transform::AxisTable columns, rows;        // of a resize that a device does
  transform::AlignedVector<std::byte> made;  // a row for a device that does not make it
};

// What a thread makes the views of an image with, beside ImageScratch, whose drawing is that of what they share.
struct ViewScratch {
  std::vector<transform::Drawing> drawings;       // of each view
  transform::AlignedVector<std::uint8_t> shared;  // the pixels that the views are made of, where steps make them
  std::vector<Box> regions;                       // of the views, in pixels of that or of the image
  std::vector<ArrayView> places;                  // of each field
};

// What a thread makes masks with.
struct LabelScratch {
  decode::LabelDecoder decoder;
  memory::PixelBuffer labels;
  memory::PixelBuffer turned;  // labels of an image with an EXIF orientation
  transform::LabelDrawing drawing;
};

// What a thread makes boxes and keypoints with, and the rows of arrays that belong to boxes.
struct TargetScratch {
  transform::TargetDrawing boxes;          // of the sample
  transform::TargetDrawing rows;           // of keypoints, and of arrays
  transform::IouCrops iou_crops;           // of the sample
  bool are_drawn = false;                  // its boxes are moved already
  std::vector<float> numbers;              // of lists in JSON
  std::vector<std::byte> file, rows_file;  // for a cache
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
  std::unique_ptr<TargetScratch> targets;
  std::unique_ptr<ViewScratch> views;
  DrawnFor drawn_for;  // of the sample that is made

  // Once all parts are there.
  void connect();
  // What was drawn for the last sample is no more.
  void begin_sample();
};

// Notes the size of a field, if it is the first of its sample.
void note_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field);
// Likewise, or compares it. kData: they differ.
Result<void> check_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field);

}  // namespace feedline::pipeline
