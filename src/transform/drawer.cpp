// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"

#include "memory/pixels.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {

Result<void> Drawer::draw(int index, const Operation& operation) {
  index_ = index;
  stream_ = first_stream_ + static_cast<std::uint32_t>(index);
  name_ = operation->type().name;
  return operation->draw(*this);
}

Result<void> Drawer::draw_nested(std::span<const Operation> operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) FEEDLINE_CHECK_OK(draw_nested(i, operations[i]));
  return {};
}

// Each level of nesting uses eight bits of the stream number.
Result<void> Drawer::draw_nested(std::size_t index, const Operation& operation) {
  const std::uint32_t stream = stream_;
  const std::string_view name = name_;
  stream_ += static_cast<std::uint32_t>(index + 1) << (8 * ++level_);
  name_ = operation->type().name;
  const Result<void> drawn = operation->draw(*this);
  --level_;
  stream_ = stream;
  name_ = name;
  return drawn;
}

Result<void> Drawer::resize(Size size, Interpolation interpolation) {
  FEEDLINE_CHECK_OK(check_outcome(size));
  canvas_.resize(size, interpolation);
  record(Decision::Kind::kSize).size = size;
  return {};
}

Result<void> Drawer::pad(const Padding& padding, PaddingMode mode, const Colour& fill) {
  canvas_.pad(padding, mode, fill);
  record(Decision::Kind::kPadding).padding = padding;
  return {};
}

Result<void> Drawer::warp(const Warp& drawn) {
  FEEDLINE_CHECK_OK(check_outcome(size_after(drawn, canvas_.size())));
  canvas_.warp(drawn);
  record(Decision::Kind::kWarp).warp = drawn;
  return {};
}

Result<void> Drawer::flip(double p, bool horizontal) {
  base::Random drawing = random();
  const bool flips = draw_coin(p, drawing);
  canvas_.flip(flips && horizontal, flips && !horizontal);
  record(Decision::Kind::kFlip).flip = flips;
  return {};
}

void Drawer::crop(const Box& box) {
  canvas_.crop(box);
  record_crop(box);
}

void Drawer::augment(const DrawnAugmentation& drawn, Interpolation interpolation, const Colour& fill) {
  canvas_.augment(drawn, interpolation, fill);
  record(Decision::Kind::kAugmentation).augmentation = drawn;
}

void Drawer::augment_each(const Augmentations& drawn, Interpolation interpolation, const Colour& fill,
                          base::Random& random) {
  for (const DrawnAugmentation& one : drawn)
    augment(one, moves_pixels(one.augmentation) ? chosen(interpolation, random) : Interpolation::kNearest, fill);
}

Interpolation Drawer::chosen(Interpolation interpolation, base::Random& random) {
  if (interpolation != Interpolation::kRandom) return interpolation;
  return record_chosen(draw_coin(0.5, random));
}

Interpolation Drawer::chosen(Interpolation interpolation) {
  if (interpolation != Interpolation::kRandom) return interpolation;
  base::Random drawing = random();
  return chosen(interpolation, drawing);
}

// Noise reads the blocks of the stream from the first one on. An image has fewer pixels than there are blocks, so the
// last block is free for other draws.
Interpolation Drawer::chosen_with_noise(Interpolation interpolation) {
  if (interpolation != Interpolation::kRandom) return interpolation;
  const base::Random::Blocks last = random().blocks(~std::uint32_t{0});
  return record_chosen((base::philox4x32(last.counter, last.key)[0] & 1) != 0);
}

Interpolation Drawer::record_chosen(bool is_bilinear) {
  const Interpolation interpolation = is_bilinear ? Interpolation::kBilinear : Interpolation::kBicubic;
  record(Decision::Kind::kInterpolation).interpolation = interpolation;
  return interpolation;
}

Decision& Drawer::record(Decision::Kind kind) {
  Decision& decision = decisions_.emplace_back();
  decision.operation = index_;
  decision.name = name_;
  decision.kind = kind;
  return decision;
}

void Drawer::record_number(std::string_view label, double number, bool continues) {
  Decision& decision = record(Decision::Kind::kNumber);
  decision.label = label;
  decision.number = number;
  decision.continues = continues;
}

void Drawer::record_mix(const MixDrawing& drawn) {
  if (!drawn.in_turn) record_number(drawn.blended ? "blended" : "weights", drawn.blended.value_or(drawn.image));
  for (std::size_t i = 0; i < static_cast<std::size_t>(drawn.width); ++i)
    record_number("weights", drawn.chains[i], i > 0 || !(drawn.blended || drawn.in_turn));
}

std::unexpected<Error> Drawer::refuse(const std::string& what) const {
  return data_error(std::string(name_) + ": " + what, "transform");
}

Result<void> Drawer::check_outcome(Size size) const {
  if (size.width >= 1 && size.height >= 1 && std::int64_t{size.width} * size.height <= memory::PixelBuffer::kMaxPixels)
    return {};
  return refuse("an image of " + shown(canvas_.size()) + " would become " + shown(size));
}

}  // namespace feedline::transform
