// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operations.h"
#include "text_caster.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using HeightWidth = std::pair<int, int>;
using XY = std::array<double, 2>;

PadPosition position_of(bool center) { return center ? PadPosition::kCenter : PadPosition::kTopLeft; }

void bind_warps(nb::class_<Dataset>& cls) {
  cls.def(
         "random_rotation",
         [](const Dataset& self, const Fields& fields, LowHigh degrees, const std::string& interpolation, bool expand,
            const std::optional<XY>& center, const Color& fill) {
           return appended(
               self, fields,
               op::RandomRotation{range_of(degrees), interpolation_of(interpolation), expand, center, fill});
         },
         "fields"_a, "degrees"_a, "interpolation"_a, "expand"_a, "center"_a.none(), "fill"_a)
      .def(
          "random_affine",
          [](const Dataset& self, const Fields& fields, LowHigh degrees, const std::optional<XY>& translate,
             const std::optional<LowHigh>& scale, const std::optional<LowHigh>& shear_x,
             const std::optional<LowHigh>& shear_y, const std::string& interpolation, const Color& fill,
             const std::optional<XY>& center) {
            return appended(self, fields,
                            op::RandomAffine{range_of(degrees), translate, range_of(scale), range_of(shear_x),
                                             range_of(shear_y), interpolation_of(interpolation), fill, center});
          },
          "fields"_a, "degrees"_a, "translate"_a.none(), "scale"_a.none(), "shear_x"_a.none(), "shear_y"_a.none(),
          "interpolation"_a, "fill"_a, "center"_a.none())
      .def(
          "random_perspective",
          [](const Dataset& self, const Fields& fields, double distortion_scale, double p,
             const std::string& interpolation, const Color& fill) {
            return appended(self, fields,
                            op::RandomPerspective{distortion_scale, p, interpolation_of(interpolation), fill});
          },
          "fields"_a, "distortion_scale"_a, "p"_a, "interpolation"_a, "fill"_a)
      .def(
          "elastic_transform",
          [](const Dataset& self, const Fields& fields, const XY& alpha, const XY& sigma,
             const std::string& interpolation, const Color& fill) {
            return appended(self, fields, op::ElasticTransform{alpha, sigma, interpolation_of(interpolation), fill});
          },
          "fields"_a, "alpha"_a, "sigma"_a, "interpolation"_a, "fill"_a);
}

}  // namespace

void bind_geometry(nb::class_<Dataset>& cls) {
  bind_warps(cls);
  cls.def(
         "random_resize",
         [](const Dataset& self, const Fields& fields, int min_size, int max_size, const std::string& interpolation) {
           return appended(self, fields, op::RandomResize{min_size, max_size, interpolation_of(interpolation)});
         },
         "fields"_a, "min_size"_a, "max_size"_a, "interpolation"_a)
      .def(
          "random_short_side",
          [](const Dataset& self, const Fields& fields, std::vector<int> min_sizes, std::optional<int> max_size,
             const std::string& interpolation) {
            return appended(self, fields,
                            op::RandomShortSide{std::move(min_sizes), max_size, interpolation_of(interpolation)});
          },
          "fields"_a, "min_sizes"_a, "max_size"_a.none(), "interpolation"_a)
      .def(
          "scale_jitter",
          [](const Dataset& self, const Fields& fields, const std::array<int, 2>& target_size, LowHigh scale_range,
             const std::string& interpolation) {
            return appended(self, fields,
                            op::ScaleJitter{target_size, range_of(scale_range), interpolation_of(interpolation)});
          },
          "fields"_a, "target_size"_a, "scale_range"_a, "interpolation"_a)
      .def(
          "resize_keep_ratio",
          [](const Dataset& self, const Fields& fields, HeightWidth size, double longest,
             const std::string& interpolation, double scale_p, LowHigh scale_range, bool scales_area, double aspect_p,
             LowHigh aspect_range) {
            return appended(self, fields,
                            op::ResizeKeepRatio{{size.first, size.second},
                                                longest,
                                                interpolation_of(interpolation),
                                                scale_p,
                                                range_of(scale_range),
                                                scales_area,
                                                aspect_p,
                                                range_of(aspect_range)});
          },
          "fields"_a, "size"_a, "longest"_a, "interpolation"_a, "scale_p"_a, "scale_range"_a, "scales_area"_a,
          "aspect_p"_a, "aspect_range"_a)
      .def(
          "pad_to",
          [](const Dataset& self, const Fields& fields, HeightWidth size, const Color& fill,
             const std::string& padding_mode, bool center) {
            return appended(
                self, fields,
                op::PadTo{{size.first, size.second}, fill, padding_mode_of(padding_mode), position_of(center)});
          },
          "fields"_a, "size"_a, "fill"_a, "padding_mode"_a, "center"_a)
      .def(
          "letterbox",
          [](const Dataset& self, const Fields& fields, HeightWidth size, const Color& fill,
             const std::string& interpolation, bool scale_up, bool center) {
            return appended(
                self, fields,
                op::Letterbox{
                    {size.first, size.second}, fill, interpolation_of(interpolation), scale_up, position_of(center)});
          },
          "fields"_a, "size"_a, "fill"_a, "interpolation"_a, "scale_up"_a, "center"_a);
}

}  // namespace feedline::python
