// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws operations in order; each one appends steps to a canvas and records its decisions.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "transform/augment/augmentation_level.h"
#include "transform/augment/iou_crop.h"
#include "transform/augment/sampling.h"
#include "transform/canvas.h"
#include "transform/steps.h"
#include "transform/warp.h"

namespace feedline::transform {

class Drawer {
 public:
  // Random operations use streams numbered from `first_stream`. All arguments must outlive the drawer. iou_crops: the
  // sample's crops, to which a canvas with boxes adds the crops that it draws; nullptr if unknown.
  Drawer(std::uint32_t first_stream, const base::SampleKey& key, std::vector<Decision>& decisions, Canvas& canvas,
         IouCrops* iou_crops = nullptr)
      : key_(key), first_stream_(first_stream), decisions_(decisions), canvas_(canvas), iou_crops_(iou_crops) {}

  void count_from(std::uint32_t first_stream) { first_stream_ = first_stream; }
  Result<void> draw(int index, const Operation& operation);

  // ---- for operations ----

  Canvas& canvas() { return canvas_; }
  Size size() const { return canvas_.size(); }
  const base::SampleKey& key() const { return key_; }
  std::uint32_t stream() const { return stream_; }  // of the current operation
  base::Random random() const { return {key_, stream_}; }
  int index() const { return index_; }
  IouCrops* iou_crops() { return iou_crops_; }

  // Operations after this call apply to finished rows.
  void begin_output() { of_output_ = true; }
  bool is_output() const { return of_output_; }

  Result<void> draw_nested(std::span<const Operation> operations);
  Result<void> draw_nested(std::size_t index, const Operation& operation);

  // Each function appends to the canvas and records the decision. kData: the image would have no pixels, or too many.
  Result<void> resize(Size size, Interpolation interpolation);
  Result<void> pad(const Padding& padding, PaddingMode mode, const Colour& fill);
  Result<void> warp(const Warp& drawn);
  Result<void> flip(double p, bool horizontal);
  void crop(const Box& box);
  void augment(const DrawnAugmentation& drawn, Interpolation interpolation, const Colour& fill);
  void augment_each(const Augmentations& drawn, Interpolation interpolation, const Colour& fill, base::Random& random);

  // For kRandom, draws bilinear or bicubic, like timm.
  Interpolation chosen(Interpolation interpolation, base::Random& random);
  Interpolation chosen(Interpolation interpolation);
  // Like chosen(), for operations that read their stream as noise.
  Interpolation chosen_with_noise(Interpolation interpolation);

  Decision& record(Decision::Kind kind);
  void record_crop(const Box& box) { record(Decision::Kind::kCrop).box = box; }
  void record_number(std::string_view label, double number, bool continues = false);
  void record_mix(const MixDrawing& drawn);

  // kData: an image of this size has no pixels, or too many.
  Result<void> check_outcome(Size size) const;
  // Returns a kData error that begins with the operation's name.
  std::unexpected<Error> refuse(const std::string& what) const;

 private:
  Interpolation record_chosen(bool is_bilinear);

  const base::SampleKey& key_;
  std::uint32_t first_stream_;
  std::vector<Decision>& decisions_;
  Canvas& canvas_;
  IouCrops* const iou_crops_;
  int index_ = 0;
  std::uint32_t stream_ = 0;
  std::string_view name_;
  int level_ = 0;  // nesting depth of the current operation
  bool of_output_ = false;
};

}  // namespace feedline::transform
