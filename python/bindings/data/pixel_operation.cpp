// SPDX-License-Identifier: Apache-2.0
#include "feedline/pixel_operation.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "feedline/image.h"
#include "interop/arrays.h"
#include "interop/enum_names.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using Pixels = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Noise = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;

// Creates an operation from its name and its numbers, in the order of its members.
class Parameters {
 public:
  Parameters(std::string name, std::vector<double> values) : name_(std::move(name)), values_(std::move(values)) {}

  const std::string& name() const { return name_; }
  std::size_t count() const { return values_.size(); }
  double number(std::size_t i) const { return values_.at(i); }
  int integer(std::size_t i) const { return static_cast<int>(values_.at(i)); }
  template <std::size_t kCount>
  std::array<double, kCount> numbers(std::size_t first) const {
    std::array<double, kCount> out;
    for (std::size_t i = 0; i < kCount; ++i) out[i] = values_.at(first + i);
    return out;
  }

 private:
  std::string name_;
  std::vector<double> values_;
};

struct Surroundings {
  Interpolation interpolation;
  Colour fill;
  std::optional<Size> size;
  std::span<const std::uint8_t> noise;
};

// Reads the bytes as float32.
std::span<const float> floats_in(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::optional<PixelOperation> geometric(const Parameters& p, const Surroundings& s) {
  if (p.name() == "affine") return pixel_op::Affine{p.numbers<6>(0), s.interpolation, s.fill, s.size};
  if (p.name() == "perspective") return pixel_op::Perspective{p.numbers<8>(0), s.interpolation, s.fill, s.size};
  if (p.name() == "rotate") {
    pixel_op::Rotate rotation{p.number(0), s.interpolation, p.number(1) != 0, {}, s.fill};
    if (p.count() > 2) rotation.center = p.numbers<2>(2);
    return rotation;
  }
  if (p.name() == "gaussian_blur") return pixel_op::GaussianBlur{{p.integer(0), p.integer(1)}, p.numbers<2>(2)};
  if (p.name() == "pillow_blur") return pixel_op::PillowBlur{p.number(0)};
  if (p.name() == "erase")
    return pixel_op::Erase{{p.integer(0), p.integer(1), p.integer(2), p.integer(3)}, s.fill, s.noise};
  if (p.name() == "elastic") return pixel_op::Elastic{floats_in(s.noise), s.interpolation, s.fill};
  return {};
}

std::optional<PixelOperation> pointwise(const Parameters& p) {
  if (p.name() == "autocontrast") return pixel_op::Autocontrast{};
  if (p.name() == "equalize") return pixel_op::Equalize{};
  if (p.name() == "invert") return pixel_op::Invert{};
  if (p.name() == "posterize") return pixel_op::Posterize{p.integer(0)};
  if (p.name() == "solarize") return pixel_op::Solarize{p.number(0)};
  if (p.name() == "solarize_add") return pixel_op::SolarizeAdd{p.integer(0), p.integer(1)};
  if (p.name() == "brightness") return pixel_op::Brightness{p.number(0)};
  if (p.name() == "contrast") return pixel_op::Contrast{p.number(0)};
  if (p.name() == "saturation") return pixel_op::Saturation{p.number(0)};
  if (p.name() == "sharpness") return pixel_op::Sharpness{p.number(0)};
  if (p.name() == "hue") return pixel_op::Hue{p.number(0)};
  if (p.name() == "grayscale") return pixel_op::Grayscale{p.integer(0)};
  return {};
}

struct Request {
  Image image;
  PixelOperation operation;
};

Request request_of(const Pixels& pixels, const std::string& name, const std::vector<double>& values,
                   const std::string& interpolation, const Colour& fill, const std::optional<std::pair<int, int>>& size,
                   const std::optional<Noise>& noise) {
  Surroundings around{interpolation_of(interpolation), fill, {}, {}};
  if (size) around.size = Size{size->first, size->second};
  if (noise) around.noise = {noise->data(), noise->size()};
  const Parameters parameters(name, values);
  std::optional<PixelOperation> operation = pointwise(parameters);
  if (!operation) operation = geometric(parameters, around);
  if (!operation) raise_unknown_name("pixel_operation: name", "the names of feedline/pixel_operation.h", name);
  const auto extent = [&](std::size_t i) { return static_cast<int>(pixels.shape(i)); };
  return {{extent(1), extent(0), extent(2), {pixels.data(), pixels.data() + pixels.size()}}, *operation};
}

nb::object to_numpy(Image image) {
  auto held = std::make_shared<Image>(std::move(image));
  const ArraySpec spec{DType::kUint8, {held->height, held->width, held->channels}};
  const ArrayView view{reinterpret_cast<std::byte*>(held->pixels.data()), spec};
  return to_array(view, std::move(held), Framework::kNumpy);
}

}  // namespace

void bind_pixel_operation(nb::module_& module) {
  module.def(
      "pixel_operation",
      [](const Pixels& pixels, const std::string& name, const std::vector<double>& values,
         const std::string& interpolation, const Colour& fill, const std::optional<std::pair<int, int>>& size,
         const std::optional<Noise>& noise) {
        const Request request = request_of(pixels, name, values, interpolation, fill, size, noise);
        return to_numpy(unwrap(without_gil([&] { return apply_pixel_operation(request.image, request.operation); })));
      },
      "pixels"_a, "name"_a, "values"_a, "interpolation"_a, "fill"_a, "size"_a.none(), "noise"_a.none(),
      nb::sig("def pixel_operation(pixels: numpy.typing.NDArray[numpy.uint8], name: str, values: Sequence[float], "
              "interpolation: str, fill: tuple[int, int, int], size: tuple[int, int] | None, "
              "noise: numpy.typing.NDArray[numpy.uint8] | None) -> numpy.typing.NDArray[numpy.uint8]"));
  module.def(
      "time_pixel_operation",
      [](const Pixels& pixels, const std::string& name, const std::vector<double>& values,
         const std::string& interpolation, int runs) {
        const Request request = request_of(pixels, name, values, interpolation, {}, {}, {});
        return unwrap(without_gil([&] { return time_pixel_operation(request.image, request.operation, runs); }));
      },
      "pixels"_a, "name"_a, "values"_a, "interpolation"_a, "runs"_a,
      nb::sig("def time_pixel_operation(pixels: numpy.typing.NDArray[numpy.uint8], name: str, "
              "values: Sequence[float], interpolation: str, runs: int) -> list[float]"));
  module.def(
      "elastic_displacement",
      [](std::pair<int, int> size, const std::array<double, 2>& alpha, const std::array<double, 2>& sigma,
         std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::uint32_t stream) {
        return unwrap(without_gil([&] {
          return elastic_displacement({alpha, sigma}, {size.first, size.second}, seed, epoch, sample, stream);
        }));
      },
      "size"_a, "alpha"_a, "sigma"_a, "seed"_a, "epoch"_a, "sample"_a, "stream"_a);
  module.def("inverse_affine_matrix", &inverse_affine_matrix, "center"_a, "angle"_a, "translate"_a, "scale"_a,
             "shear"_a);
  module.def(
      "perspective_coefficients",
      [](const std::array<Point, 4>& start, const std::array<Point, 4>& end) {
        return perspective_coefficients(start, end);
      },
      "start"_a, "end"_a);
}

}  // namespace feedline::python
