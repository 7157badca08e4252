// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "errors.h"
#include "operations.h"
#include "text_caster.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

// Binds `name` with one number, the magnitude of the change.
void bind_change(nb::class_<Dataset>& cls, const char* name, Augmentation augmentation, const char* amount) {
  cls.def(
      name,
      [augmentation](const Dataset& self, const Fields& fields, double number, double p) {
        return appended(self, fields, op::RandomChange{augmentation, number, p});
      },
      "fields"_a, nb::arg(amount), "p"_a);
}

void bind_change(nb::class_<Dataset>& cls, const char* name, Augmentation augmentation) {
  cls.def(
      name,
      [augmentation](const Dataset& self, const Fields& fields, double p) {
        return appended(self, fields, op::RandomChange{augmentation, 0, p});
      },
      "fields"_a, "p"_a);
}

}  // namespace

void bind_augmentations(nb::class_<Dataset>& cls) {
  bind_change(cls, "random_invert", Augmentation::kInvert);
  bind_change(cls, "random_posterize", Augmentation::kPosterize, "bits");
  bind_change(cls, "random_solarize", Augmentation::kSolarize, "threshold");
  bind_change(cls, "random_adjust_sharpness", Augmentation::kSharpness, "sharpness_factor");
  bind_change(cls, "random_autocontrast", Augmentation::kAutoContrast);
  bind_change(cls, "random_equalize", Augmentation::kEqualize);
  bind_change(cls, "random_grayscale", Augmentation::kGrayscale);
  cls.def(
         "auto_augment",
         [](const Dataset& self, const Fields& fields, const std::string& policy, const std::string& interpolation,
            const Color& fill, const std::string& version) {
           return appended(self, fields,
                           op::AutoAugment{auto_augment_policy_of(policy), interpolation_of(interpolation), fill,
                                           torchvision_version_of(version)});
         },
         "fields"_a, "policy"_a, "interpolation"_a, "fill"_a, "version"_a)
      .def(
          "rand_augment",
          [](const Dataset& self, const Fields& fields, int num_ops, int magnitude, int num_magnitude_bins,
             const std::string& interpolation, const Color& fill, const std::string& version) {
            return appended(self, fields,
                            op::RandAugment{num_ops, magnitude, num_magnitude_bins, interpolation_of(interpolation),
                                            fill, torchvision_version_of(version)});
          },
          "fields"_a, "num_ops"_a, "magnitude"_a, "num_magnitude_bins"_a, "interpolation"_a, "fill"_a, "version"_a)
      .def(
          "trivial_augment_wide",
          [](const Dataset& self, const Fields& fields, int num_magnitude_bins, const std::string& interpolation,
             const Color& fill, const std::string& version) {
            return appended(self, fields,
                            op::TrivialAugmentWide{num_magnitude_bins, interpolation_of(interpolation), fill,
                                                   torchvision_version_of(version)});
          },
          "fields"_a, "num_magnitude_bins"_a, "interpolation"_a, "fill"_a, "version"_a)
      .def(
          "aug_mix",
          [](const Dataset& self, const Fields& fields, int severity, int mixture_width, int chain_depth, double alpha,
             bool all_ops, const std::string& interpolation, const Color& fill) {
            return appended(self, fields,
                            op::AugMix{severity, mixture_width, chain_depth, alpha, all_ops,
                                       interpolation_of(interpolation), fill});
          },
          "fields"_a, "severity"_a, "mixture_width"_a, "chain_depth"_a, "alpha"_a, "all_ops"_a, "interpolation"_a,
          "fill"_a)
      .def(
          "timm_augment",
          [](const Dataset& self, const Fields& fields, std::string config, const Color& fill,
             const std::string& interpolation, double translate) {
            auto read = timm_augment({std::move(config), fill, interpolation_of(interpolation), translate, nullptr});
            if (!read) read.error().what = "timm_augment: " + read.error().what;
            return appended(self, fields, unwrap(std::move(read)));
          },
          "fields"_a, "config"_a, "fill"_a, "interpolation"_a, "translate"_a);
}

}  // namespace feedline::python
