// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "decode/deep_decoder.h"
#include "decode/labels.h"
#include "decode/video/clip_decoder.h"
#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/pixels.h"
#include "memory/planes.h"
#include "memory/volume.h"
#include "pipeline/media/audio_source.h"
#include "pipeline/media/clip_choice.h"
#include "pipeline/media/video_decoders.h"
#include "pipeline/media/video_source.h"
#include "transform/chain.h"
#include "transform/deep/deep_steps.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/axis_table.h"
#include "transform/targets/label_chain.h"
#include "transform/targets/target_chain.h"
#include "transform/volume/volume_operation.h"

namespace feedline::pipeline {

// State of one thread for images.
struct ImageScratch {
  decode::ImageDecoder decoder;
  decode::Depth deepest = decode::Depth::k8Bits;  // of the images opened since the last reset
  memory::PixelBuffer pixels;
  memory::Planes planes;
  transform::Drawing drawing;
  transform::Workspace workspace;
  transform::AxisTable columns, rows;        // of a resize done by a device
  transform::AlignedVector<std::byte> made;  // a row that the host makes instead of the device
};

// State of one thread for images with stored values.
struct DeepScratch {
  decode::DeepDecoder decoder;
  memory::PixelBuffer pixels;
  transform::Drawing drawing;
  transform::DeepWorkspace workspace;
};

// State of one thread for views, in addition to ImageScratch, which has the drawing of the shared steps.
struct ViewScratch {
  std::vector<transform::Drawing> drawings;       // one per view
  transform::AlignedVector<std::uint8_t> shared;  // source pixels of the views, if steps are applied
  std::vector<Box> regions;                       // of the views, in shared or in the image
  std::vector<ArrayView> destinations;            // one per field
};

// State of one thread for masks.
struct LabelScratch {
  decode::LabelDecoder decoder;
  memory::PixelBuffer labels;
  memory::PixelBuffer turned;  // labels after applying an EXIF orientation
  transform::LabelDrawing drawing;
};

// State of one thread for boxes, keypoints and arrays whose rows belong to boxes.
struct TargetScratch {
  transform::TargetDrawing boxes;          // the sample's
  transform::TargetDrawing rows;           // for keypoints and arrays
  transform::IouCrops iou_crops;           // the sample's
  bool are_drawn = false;                  // the boxes are transformed
  std::vector<float> numbers;              // of lists in JSON
  std::vector<std::byte> file, rows_file;  // for a cache
};

// State of one thread for audio.
struct AudioScratch {
  AudioSource source;
  std::vector<float> read, mixed, resampled;  // interleaved
  std::vector<float> planar, floats, noise;
  std::vector<std::int16_t> read_16;
  std::vector<std::byte> window;  // the part of a window that is inside the file
};
// State of one thread for videos.
struct VideoScratch {
  std::optional<decode::ClipDecoder> decoder;  // if a field is a video
  std::shared_ptr<VideoDecoders> decoders;     // of all threads; nullptr: no limit
  decode::ImageDecoder images;
  memory::PixelBuffer image;
  VideoSource source;
  std::shared_ptr<const FetchedClips> fetched;  // for the current sample; nullptr: nothing
  ChosenFrames chosen;
  transform::Drawing drawing;
  transform::Workspace workspace;
  memory::PixelBuffer pixels;  // a frame as grey
};

// State of one thread for volumes.
struct VolumeScratch {
  bool is_drawn = false;  // the rest of this part is that of the current sample
  Shape shape;            // the extents of the cropped axes of its volumes
  Shape origin;           // of its patch, along these axes; may be negative
  transform::VolumeGeometry geometry;
  memory::VolumeBuffers buffers;
  memory::ByteBuffer box, patch, native;
  transform::VolumeWorkspace workspace;
};

// The first image or mask of a sample. The size of the first field determines the geometry, and later images and masks
// must have the same size.
struct DrawnFor {
  Size size;
  const std::string* field = nullptr;  // nullptr if there is none yet
};

// Memory that a thread reuses across samples. Fields are processed one after another, so fields of the same kind share
// a part. Parts are created by the paths that need them.
struct FieldScratch {
  std::unique_ptr<ImageScratch> image;
  std::unique_ptr<DeepScratch> deep;
  std::unique_ptr<LabelScratch> labels;
  std::unique_ptr<TargetScratch> targets;
  std::unique_ptr<ViewScratch> views;
  std::unique_ptr<AudioScratch> audio;
  std::unique_ptr<VideoScratch> video;
  std::unique_ptr<VolumeScratch> volumes;
  DrawnFor drawn_for;  // of the current sample

  // Must be called after all parts have been created.
  void connect();
  // Discards the drawings of the previous sample.
  void begin_sample();
};

// Records the size of a field if it is the first one of its sample.
void note_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field);
// Records the size, or compares it with the recorded one. kData: they differ.
Result<void> check_drawn_size(DrawnFor& drawn_for, Size size, const std::string& field);

}  // namespace feedline::pipeline
