// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "decode/decoder.h"
#include "memory/pixels.h"
#include "memory/planes.h"
#include "transform/chain.h"

namespace feedline::pipeline {

// What a thread makes images with.
struct ImageScratch {
  decode::ImageDecoder decoder;
  memory::PixelBuffer pixels;
  memory::Planes planes;
  transform::Drawing drawing;
  transform::Workspace workspace;
};

// Memory that one thread keeps from sample to sample. The fields of a sample are made one after the other, so those of
// a kind share theirs. A part is there once a path that uses it has asked for it.
struct FieldScratch {
  std::unique_ptr<ImageScratch> image;
};

}  // namespace feedline::pipeline
