// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

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

nb::list role_rows(const Dataset& self) {
  nb::list rows;
  for (const FieldRole& role : self.roles())
    rows.append(nb::make_tuple(role.name, role.kind, std::string(name_of(role.box_format)), role.clamps));
  return rows;
}

}  // namespace

void bind_targets(nb::class_<Dataset>& cls) {
  cls.def("roles", &role_rows, nb::sig("def roles(self) -> list[tuple[str, str, str, bool]]"))
      .def(
          "boxes",
          [](const Dataset& self, const Fields& fields, const std::string& format, bool clamps, bool takes_unsound) {
            return appended(self, fields, op::Boxes{box_format_of(format), clamps, takes_unsound});
          },
          "fields"_a, "format"_a, "clamps"_a, "takes_unsound"_a)
      .def(
          "sanitize_bounding_boxes",
          [](const Dataset& self, double min_size, double min_area, const Fields& labels) {
            return appended(self, {}, op::SanitizeBoundingBoxes{min_size, min_area, labels});
          },
          "min_size"_a, "min_area"_a, "labels"_a)
      .def(
          "random_iou_crop",
          [](const Dataset& self, const Fields& fields, LowHigh scale, LowHigh aspect_ratio,
             const std::vector<double>& sampler_options, int trials) {
            return appended(self, fields,
                            op::RandomIouCrop{scale.first, scale.second, aspect_ratio.first, aspect_ratio.second,
                                              sampler_options, trials});
          },
          "fields"_a, "scale"_a, "aspect_ratio"_a, "sampler_options"_a, "trials"_a)
      .def(
          "random_zoom_out",
          [](const Dataset& self, const Fields& fields, const Color& fill, LowHigh side_range, double p) {
            return appended(self, fields, op::RandomZoomOut{fill, range_of(side_range), p});
          },
          "fields"_a, "fill"_a, "side_range"_a, "p"_a)
      .def(
          "random_photometric_distort",
          [](const Dataset& self, const Fields& fields, LowHigh brightness, LowHigh contrast, LowHigh saturation,
             LowHigh hue, double p) {
            return appended(self, fields,
                            op::RandomPhotometricDistort{range_of(brightness), range_of(contrast), range_of(saturation),
                                                         range_of(hue), p});
          },
          "fields"_a, "brightness"_a, "contrast"_a, "saturation"_a, "hue"_a, "p"_a);
}

}  // namespace feedline::python
