// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <utility>

#include "errors.h"
#include "text_caster.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using HeightWidth = std::pair<int, int>;
using Sides = std::array<int, 4>;  // left, top, right, bottom

Size size_of_pair(HeightWidth size) { return {size.first, size.second}; }
Padding padding_of(const Sides& sides) { return {sides[0], sides[1], sides[2], sides[3]}; }

}  // namespace

Dataset appended(const Dataset& dataset, const Fields& fields, Operation operation) {
  operation.fields = fields;
  Dataset longer = dataset.with(std::move(operation));
  unwrap(longer.check());
  return longer;
}

void bind_operations(nb::class_<Dataset>& cls) {
  cls.def(
         "decode",
         [](const Dataset& self, const Fields& fields, const std::string& mode, const std::string& fidelity,
            bool applies_exif) {
           return appended(self, fields, op::Decode{color_mode_of(mode), fidelity_of(fidelity), applies_exif});
         },
         "fields"_a, "mode"_a, "fidelity"_a, "applies_exif"_a)
      .def(
          "resize",
          [](const Dataset& self, const Fields& fields, HeightWidth size, std::optional<int> max_size,
             const std::string& interpolation) {
            return appended(self, fields, op::Resize{size_of_pair(size), max_size, interpolation_of(interpolation)});
          },
          "fields"_a, "size"_a, "max_size"_a.none(), "interpolation"_a)
      .def(
          "center_crop",
          [](const Dataset& self, const Fields& fields, HeightWidth size, const Color& fill,
             const std::string& padding_mode, bool rounds_down) {
            return appended(self, fields,
                            op::CenterCrop{size_of_pair(size), fill, padding_mode_of(padding_mode), rounds_down});
          },
          "fields"_a, "size"_a, "fill"_a, "padding_mode"_a, "rounds_down"_a)
      .def(
          "trim_border",
          [](const Dataset& self, const Fields& fields, int border) {
            return appended(self, fields, op::TrimBorder{border});
          },
          "fields"_a, "border"_a)
      .def(
          "random_crop_or_pad",
          [](const Dataset& self, const Fields& fields, HeightWidth size, const Color& fill,
             const std::string& padding_mode) {
            return appended(self, fields, op::RandomCropOrPad{size_of_pair(size), fill, padding_mode_of(padding_mode)});
          },
          "fields"_a, "size"_a, "fill"_a, "padding_mode"_a)
      .def(
          "random_crop",
          [](const Dataset& self, const Fields& fields, HeightWidth size, const Sides& padding, bool pad_if_needed,
             const Color& fill, const std::string& padding_mode) {
            return appended(self, fields,
                            op::RandomCrop{size_of_pair(size), padding_of(padding), pad_if_needed, fill,
                                           padding_mode_of(padding_mode)});
          },
          "fields"_a, "size"_a, "padding"_a, "pad_if_needed"_a, "fill"_a, "padding_mode"_a)
      .def(
          "random_resized_crop",
          [](const Dataset& self, const Fields& fields, HeightWidth size, LowHigh scale, LowHigh ratio,
             const std::string& interpolation) {
            return appended(self, fields,
                            op::RandomResizedCrop{size_of_pair(size), range_of(scale), range_of(ratio),
                                                  interpolation_of(interpolation)});
          },
          "fields"_a, "size"_a, "scale"_a, "ratio"_a, "interpolation"_a)
      .def(
          "random_horizontal_flip",
          [](const Dataset& self, const Fields& fields, double p) {
            return appended(self, fields, op::RandomHorizontalFlip{p});
          },
          "fields"_a, "p"_a)
      .def(
          "random_vertical_flip",
          [](const Dataset& self, const Fields& fields, double p) {
            return appended(self, fields, op::RandomVerticalFlip{p});
          },
          "fields"_a, "p"_a)
      .def(
          "pad",
          [](const Dataset& self, const Fields& fields, const Sides& padding, const Color& fill,
             const std::string& padding_mode) {
            return appended(self, fields, op::Pad{padding_of(padding), fill, padding_mode_of(padding_mode)});
          },
          "fields"_a, "padding"_a, "fill"_a, "padding_mode"_a)
      .def(
          "grayscale",
          [](const Dataset& self, const Fields& fields, int num_output_channels) {
            return appended(self, fields, op::Grayscale{num_output_channels});
          },
          "fields"_a, "num_output_channels"_a)
      .def(
          "color_jitter",
          [](const Dataset& self, const Fields& fields, LowHigh brightness, LowHigh contrast, LowHigh saturation,
             LowHigh hue) {
            return appended(
                self, fields,
                op::ColorJitter{range_of(brightness), range_of(contrast), range_of(saturation), range_of(hue)});
          },
          "fields"_a, "brightness"_a, "contrast"_a, "saturation"_a, "hue"_a)
      .def(
          "normalize",
          [](const Dataset& self, const Fields& fields, std::vector<float> mean, std::vector<float> std) {
            return appended(self, fields, op::Normalize{std::move(mean), std::move(std)});
          },
          "fields"_a, "mean"_a, "std"_a)
      .def(
          "to_dtype",
          [](const Dataset& self, const Fields& fields, const std::string& dtype, bool scale) {
            return appended(self, fields, op::ToDtype{dtype_of(dtype), scale});
          },
          "fields"_a, "dtype"_a, "scale"_a);
}

}  // namespace feedline::python
