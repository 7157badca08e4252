// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

constexpr int kMostBlurred = 1023;  // pixels

class GaussianBlur final : public OperationWith<GaussianBlur, op::GaussianBlur> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "gaussian_blur";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::GaussianBlur::kernel_size>("kernel_size"), argument<&op::GaussianBlur::sigma>("sigma")});

  std::string describe() const override {
    return "kernel_size=" + in_brackets(args_.kernel_size) + ", sigma=" + in_brackets(args_.sigma);
  }
  Properties properties() const override { return {.is_random = true}; }

  Result<void> infer(Inference& image) const override {
    for (const int size : args_.kernel_size)
      if (size < 1 || size % 2 == 0 || size > kMostBlurred)
        return config_error("kernel_size must be odd, from 1 to " + number(kMostBlurred) + ", got " + number(size));
    FEEDLINE_CHECK_OK(check_positive("sigma", args_.sigma));
    return image.needs_pixels();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    const double sigma = random.uniform(args_.sigma.low, args_.sigma.high);
    drawer.canvas().change(pixel_op::GaussianBlur{args_.kernel_size, {sigma, sigma}}, false);
    drawer.record_number("sigma", sigma);
    return {};
  }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(gaussian_blur, GaussianBlur)
