// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

// Sets channel c of each pixel to its former channel values[c]. Images with one channel are not changed.
Result<void> permute_channels(const OwnKernel& /*self*/, const memory::PixelView& in, const KernelValues& values,
                              memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(copy(in, out));
  if (in.channels != 3) return {};
  const std::array from{static_cast<std::size_t>(values[0]), static_cast<std::size_t>(values[1]),
                        static_cast<std::size_t>(values[2])};
  for (int y = 0; y < out.height(); ++y)
    for (std::uint8_t *pixel = out.row(y), *end = pixel + out.width() * 3; pixel != end; pixel += 3) {
      const std::array<std::uint8_t, 3> before{pixel[0], pixel[1], pixel[2]};
      for (std::size_t c = 0; c < 3; ++c) pixel[c] = before[from[c]];
    }
  return {};
}

constexpr OwnKernel kPermuteChannels{.run = permute_channels};

class RandomPhotometricDistort final : public OperationWith<RandomPhotometricDistort, op::RandomPhotometricDistort> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "random_photometric_distort";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomPhotometricDistort::brightness>("brightness"),
       argument<&op::RandomPhotometricDistort::contrast>("contrast"),
       argument<&op::RandomPhotometricDistort::saturation>("saturation"),
       argument<&op::RandomPhotometricDistort::hue>("hue"), argument<&op::RandomPhotometricDistort::p>("p")});

  std::string describe() const override {
    return "brightness=" + in_brackets(args_.brightness) + ", contrast=" + in_brackets(args_.contrast) +
           ", saturation=" + in_brackets(args_.saturation) + ", hue=" + in_brackets(args_.hue) +
           ", p=" + number(args_.p);
  }
  Properties properties() const override { return {.is_random = true}; }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_probability(args_.p));
    FEEDLINE_CHECK_OK(check_jitter(args_.brightness, args_.contrast, args_.saturation, args_.hue));
    return image.needs_pixels();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const DistortDrawing drawn = draw_distortion(args_, random);
    if (drawn.changes) {
      drawer.canvas().jitter(drawn.jitter);
      drawer.record(Decision::Kind::kJitter).jitter = drawn.jitter;
    }
    if (drawn.channels) {
      const auto& from = *drawn.channels;
      drawer.canvas().run(kPermuteChannels, {double(from[0]), double(from[1]), double(from[2])});
      drawer.record(Decision::Kind::kPermutation).channels = *drawn.channels;
    }
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(random_photometric_distort, RandomPhotometricDistort)
