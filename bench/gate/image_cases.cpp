// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <utility>

#include "decode/decoder.h"
#include "gate/case.h"
#include "gate/made_images.h"
#include "transform/chain.h"

namespace feedline::gate {
namespace {

constexpr int kWidth = 500, kHeight = 375;  // a common size in ImageNet

// Boxes as drawn by random_resized_crop: large, small, wide, high, in corners.
constexpr std::array<Box, 6> kBoxes{{
    {20, 10, 430, 350},
    {140, 90, 180, 150},
    {0, 0, 333, 250},
    {251, 133, 249, 242},
    {60, 200, 300, 101},
    {33, 47, 97, 211},
}};

std::function<void()> decodes(Bytes encoded, std::size_t boxes) {
  struct State {
    Bytes encoded;
    decode::ImageDecoder decoder;
    memory::PixelBuffer out;
  };
  auto state = std::make_shared<State>();
  state->encoded = std::move(encoded);
  return [state, boxes] {
    for (std::size_t i = 0; i < boxes; ++i) {
      require(state->decoder.open(state->encoded).has_value(), "an image cannot be opened");
      require(state->decoder.decode(kBoxes[i], ColorMode::kRgb, state->out).has_value(), "an image cannot be decoded");
    }
  };
}

// The chain on whole images, which it crops itself.
std::function<void()> transforms(std::vector<Operation> operations, std::optional<DType> dtype) {
  struct State {
    std::shared_ptr<const transform::Chain> chain;
    memory::PixelBuffer image;
    transform::Drawing drawing;
    transform::Workspace workspace;
    std::vector<std::byte> row;
  };
  auto state = std::make_shared<State>();
  auto chain = transform::Chain::compile(operations, dtype, Layout::kNchw);
  require(chain.has_value(), "a chain cannot be compiled");
  state->chain = *chain;
  require(state->image.resize(kWidth, kHeight, 3).has_value(), "no memory");
  const std::vector<std::uint8_t> photo = made_photo(kWidth, kHeight);
  for (int y = 0; y < kHeight; ++y)
    std::copy_n(photo.begin() + std::ptrdiff_t{3} * kWidth * y, 3 * kWidth, state->image.row(y));
  state->row.resize(state->chain->output().bytes() + 64);
  return [state] {
    for (std::uint64_t sample = 0; sample < 6; ++sample) {
      const base::SampleKey key{.seed = 7, .epoch = 0, .sample = sample};
      require(state->chain->draw({kHeight, kWidth}, key, state->drawing).has_value(), "a chain cannot draw");
      memory::PixelView region = state->image.view();
      const Box& box = state->drawing.region;
      region.data = region.row(box.top) + std::size_t{3} * static_cast<std::size_t>(box.left);
      region.width = box.width;
      region.height = box.height;
      const ArrayView row{state->row.data(), state->chain->output()};
      require(state->chain->apply(state->drawing, region, state->workspace, row).has_value(), "a chain cannot run");
    }
  };
}

}  // namespace

std::vector<Case> image_cases() {
  const op::RandomResizedCrop crop{{224, 224}};
  const op::RandomHorizontalFlip flip{};
  const op::Normalize normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  return {
      {"jpeg_regions", [] { return decodes(made_jpeg(kWidth, kHeight, false), kBoxes.size()); }},
      {"jpeg_progressive", [] { return decodes(made_jpeg(kWidth, kHeight, true), 2); }},
      {"png", [] { return decodes(made_png(kWidth, kHeight), 1); }},
      {"resize_flip_normalize",
       [=] {
         return transforms({crop, flip, normalize}, std::nullopt);
       }},
      {"resize_flip_uint8",
       [=] {
         return transforms({crop, flip}, std::nullopt);
       }},
      {"resize_centre",
       [=] {
         return transforms({op::Resize{{256, 0}}, op::CenterCrop{{224, 224}}, normalize}, std::nullopt);
       }},
  };
}

}  // namespace feedline::gate
