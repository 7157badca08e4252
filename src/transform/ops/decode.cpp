// SPDX-License-Identifier: Apache-2.0
#include "transform/drawer.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

class Decode final : public OperationWith<Decode, op::Decode> {
 public:
  using OperationWith::OperationWith;
  static constexpr std::string_view kName = "decode";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::Decode::mode>("mode"), argument<&op::Decode::fidelity>("fidelity"),
       argument<&op::Decode::applies_exif>("apply_exif_orientation"), argument<&op::Decode::values>("dtype"),
       argument<&op::Decode::page>("page", {.low = 0})});

  std::string describe() const override {
    std::string text(args_.values == PixelValues::kBytes ? std::string(word_of(args_.mode))
                                                         : "dtype=" + std::string(word_of(args_.values)));
    if (args_.page != 0) text += ", page=" + number(args_.page);
    if (args_.fidelity == Fidelity::kNvjpeg) text += ", device=cuda";
    if (args_.fidelity == Fidelity::kFast) text += ", fidelity=fast";
    return text + (args_.applies_exif ? ", apply_exif_orientation=True" : "");
  }
  Properties properties() const override { return {.stage = Stage::kDecode, .decode = &args_}; }

  Result<void> infer(Inference& image) const override {
    if (!image.is_first()) return config_error("must be the first operation");
    if (args_.values != PixelValues::kBytes) {
      if (args_.mode != ColorMode::kRgb)
        return config_error("dtype= returns the channels of the files; omit the mode " +
                            std::string(word_of(args_.mode)));
      if (args_.fidelity != Fidelity::kExact)
        return config_error("dtype= decodes exactly, on the CPU; omit fidelity= and device=");
      image.state.values = args_.values;
      image.state.applies_exif = args_.applies_exif;
      image.state.channels = 0;
      return {};
    }
    if (args_.page != 0) return config_error("page= needs dtype=\"uint16\", \"float32\" or \"native\"");
    image.state.mode = args_.mode;
    image.state.fidelity = args_.fidelity;
    image.state.applies_exif = args_.applies_exif;
    image.state.channels = args_.mode == ColorMode::kRgb ? 3 : 1;
    return {};
  }
  Result<void> draw(Drawer& /*drawer*/) const override { return {}; }
};

}  // namespace
}  // namespace feedline::transform

FEEDLINE_OPERATION(decode, Decode)
