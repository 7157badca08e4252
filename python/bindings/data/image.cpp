// SPDX-License-Identifier: Apache-2.0
#include "feedline/image.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "feedline/foreign_images.h"
#include "feedline/image_formats.h"
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

using Corners = std::tuple<int, int, int, int>;  // left, top, width, height
using Pixels = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

nb::object to_numpy(Image image) {
  auto held = std::make_shared<Image>(std::move(image));
  const ArraySpec spec{DType::kUint8, {held->height, held->width, held->channels}};
  const ArrayView view{reinterpret_cast<std::byte*>(held->pixels.data()), spec};
  return to_array(view, std::move(held), Framework::kNumpy);
}

nb::object decode(nb::handle encoded, const std::optional<Corners>& region, const std::string& mode,
                  bool applies_exif) {
  const HeldBytes held(encoded);
  const ColorMode color_mode = color_mode_of(mode);
  std::optional<Box> box;
  if (region) box = Box{std::get<0>(*region), std::get<1>(*region), std::get<2>(*region), std::get<3>(*region)};
  auto image = [&] {
    const WithoutGil released;
    return decode_image(held.bytes(), box, color_mode, applies_exif);
  }();
  return to_numpy(unwrap(std::move(image)));
}

nb::object resize(const Pixels& pixels, int height, int width, const std::string& interpolation) {
  const Interpolation filter = interpolation_of(interpolation);
  const auto extent = [&](std::size_t i) { return static_cast<int>(pixels.shape(i)); };
  auto resized = [&] {
    const WithoutGil released;
    const Image image{extent(1), extent(0), extent(2), {pixels.data(), pixels.data() + pixels.size()}};
    return resize_image(image, Size{height, width}, filter);
  }();
  return to_numpy(unwrap(std::move(resized)));
}

using Values = nb::ndarray<const float, nb::shape<3, 256>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using WindowNumbers = std::tuple<int, int, int, int, int, int>;  // resized height, width; left, top, width, height

// The pixels are written to `out`.
void write_input(nb::handle encoded, const std::tuple<int, int>& image, const std::string& interpolation,
                 const std::vector<WindowNumbers>& windows, const std::tuple<int, int, int>& patches,
                 const Values& values, const Floats& out) {
  const HeldBytes held(encoded);
  EncoderInput input{.image = {std::get<0>(image), std::get<1>(image)},
                     .interpolation = interpolation_of(interpolation),
                     .windows = {},
                     .patch = std::get<0>(patches),
                     .merge = std::get<1>(patches),
                     .frames = std::get<2>(patches)};
  for (const auto& [height, width, left, top, window_width, window_height] : windows)
    input.windows.push_back({{height, width}, {left, top, window_width, window_height}});
  std::copy_n(values.data(), values.size(), input.values.front().data());
  unwrap(without_gil([&] { return write_encoder_input(held.bytes(), input, {out.data(), out.size()}); }));
}

nb::list list_image_formats() {
  nb::list all;
  for (const ImageFormatDescription& format : image_formats()) {
    nb::dict facts;
    facts["name"] = format.name;
    facts["title"] = format.title;
    facts["extensions"] = nb::tuple(nb::cast(format.extensions));
    facts["image_folder_extensions"] = nb::tuple(nb::cast(format.image_folder_extensions));
    facts["is_native"] = format.is_native;
    facts["pillow_requires"] = format.pillow_requires;
    facts["is_rotated_by_pillow"] = format.is_rotated_by_pillow;
    all.append(facts);
  }
  return all;
}

}  // namespace

void bind_image(nb::module_& module) {
  module.def("image_formats", &list_image_formats, nb::sig("def image_formats() -> list[dict[str, typing.Any]]"));
  module.def(
      "video_extensions",
      [] {
        const auto names = video_extensions();
        return std::vector<std::string_view>(names.begin(), names.end());
      },
      nb::sig("def video_extensions() -> list[str]"));
  module.def(
      "ffmpeg_version", [] { return unwrap(ffmpeg_version()); }, nb::sig("def ffmpeg_version() -> str"));
  module.def(
      "image_format_of", [](nb::handle encoded) { return image_format_of(HeldBytes(encoded).bytes()); }, "encoded"_a,
      nb::sig("def image_format_of(encoded: bytes | bytearray | memoryview) -> str"));
  module.def(
      "pillow_mode_of", [](nb::handle encoded) { return pillow_mode_of(HeldBytes(encoded).bytes()); }, "encoded"_a,
      nb::sig("def pillow_mode_of(encoded: bytes | bytearray | memoryview) -> str"));
  module.def(
      "image_traits",
      [](nb::handle encoded) {
        const HeldBytes held(encoded);
        const ImageTraits traits = unwrap(image_traits(held.bytes()));
        return nb::make_tuple(traits.format, traits.orientation, traits.stored);
      },
      "encoded"_a, nb::sig("def image_traits(encoded: bytes | bytearray | memoryview) -> tuple[str, int, list[str]]"));
  module.def(
      "image_info",
      [](nb::handle encoded) {
        const HeldBytes held(encoded);
        const ImageInfo info = unwrap(image_info(held.bytes()));
        return nb::make_tuple(info.format, info.width, info.height);
      },
      "encoded"_a, nb::sig("def image_info(encoded: bytes | bytearray | memoryview) -> tuple[str, int, int]"));
  module.def(
      "decode_image", &decode, "encoded"_a, "region"_a.none(), "mode"_a, "applies_exif"_a = false,
      nb::sig("def decode_image(encoded: bytes | bytearray | memoryview, region: tuple[int, int, int, int] | None, "
              "mode: str, applies_exif: bool = ...) -> numpy.typing.NDArray[numpy.uint8]"));
  module.def("resize_image", &resize, "pixels"_a, "height"_a, "width"_a, "interpolation"_a,
             nb::sig("def resize_image(pixels: numpy.typing.NDArray[numpy.uint8], height: int, width: int, "
                     "interpolation: str) -> numpy.typing.NDArray[numpy.uint8]"));
  module.def(
      "upright_size",
      [](nb::handle encoded) {
        const HeldBytes held(encoded);
        const Size size = unwrap(upright_size(held.bytes()));
        return nb::make_tuple(size.height, size.width);
      },
      "encoded"_a, nb::sig("def upright_size(encoded: bytes | bytearray | memoryview) -> tuple[int, int]"));
  module.def("write_encoder_input", &write_input, "encoded"_a, "image"_a, "interpolation"_a, "windows"_a, "patches"_a,
             "values"_a, "out"_a,
             nb::sig("def write_encoder_input(encoded: bytes | bytearray | memoryview, image: tuple[int, int], "
                     "interpolation: str, windows: list[tuple[int, int, int, int, int, int]], "
                     "patches: tuple[int, int, int], values: numpy.typing.NDArray[numpy.float32], "
                     "out: numpy.typing.NDArray[numpy.float32]) -> None"));
  module.def(
      "jpeg_with_restarts",
      [](nb::handle encoded, int interval) -> nb::object {
        const HeldBytes held(encoded);
        const auto written = unwrap(without_gil([&] { return jpeg_with_restarts(held.bytes(), interval); }));
        if (!written) return nb::none();
        return nb::bytes(written->data(), written->size());
      },
      "encoded"_a, "interval"_a,
      nb::sig("def jpeg_with_restarts(encoded: bytes | bytearray | memoryview, interval: int) -> bytes | None"));
  module.def("simd_variants", &simd_variants);
  module.def("active_simd_variant", &active_simd_variant);
  module.def(
      "force_simd_variant", [](const std::string& name) { unwrap(force_simd_variant(name)); }, "name"_a);
  module.def(
      "follow_pillow", [](int major) { unwrap(follow_pillow(major)); }, "major"_a);
}

}  // namespace feedline::python
