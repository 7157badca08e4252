// SPDX-License-Identifier: Apache-2.0
// Decodes images with a Python library: the engine's threads call feedline/data/storage/foreign_images.py while holding
// the GIL.
#include "feedline/foreign_images.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "interop/arrays.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

std::unexpected<Error> ends() { return std::unexpected(Error{ErrorCode::kCancelled, "the interpreter ends", {}, 0}); }

// Calls a Python function from any thread. arguments: builds them, with the GIL; take: converts the result, which is an
// error message if it is a string.
template <typename Arguments, typename Take>
auto called(const std::shared_ptr<void>& function, const Arguments& arguments, const Take& take)
    -> decltype(take(nb::handle())) {
  const EnteringPython entering;
  if (!entering) return ends();
  release_left();
  try {
    const nb::object given = arguments();
    const auto made = nb::steal(EnteringPython::run(object_of(function).ptr(), given.ptr()));
    if (!made.is_valid()) throw nb::python_error();
    if (nb::isinstance<nb::str>(made)) return data_error(nb::cast<std::string>(made), "decode");
    return take(nb::handle(made));
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_Exception)) return internal_error(std::string("reading an image: ") + error.what());
    return std::unexpected(
        Error{ErrorCode::kCancelled, "the program ends", {}, 0, held_by_anyone(nb::borrow(error.value()))});
  } catch (const nb::cast_error&) {
    return internal_error("reading an image returned no result");
  }
}

class PythonImages final : public ForeignImages {
 public:
  PythonImages(nb::object open, nb::object decode)
      : open_(held_by_anyone(std::move(open))), decode_(held_by_anyone(std::move(decode))) {}

  Result<Opened> open(std::span<const std::byte> bytes, bool applies_exif) const override {
    const auto arguments = [&] { return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), applies_exif); };
    return called(open_, arguments, [](nb::handle made) -> Result<Opened> {
      return Opened{nb::cast<std::string>(made[0]), nb::cast<int>(made[1]), nb::cast<int>(made[2]),
                    held_by_anyone(made[3]),        nb::cast<int>(made[4]), nb::cast<std::string>(made[5])};
    });
  }
  Result<void> decode(const Opened& opened, const Box& region, ColorMode mode, std::uint8_t* out,
                      std::size_t stride) const override {
    const std::size_t channels = mode == ColorMode::kRgb ? 3 : 1;
    const auto rows = static_cast<std::size_t>(region.height), row = static_cast<std::size_t>(region.width) * channels;
    const auto arguments = [&] {
      return nb::make_tuple(nb::borrow(object_of(opened.image)), mode == ColorMode::kRgb ? "RGB" : "L", region.left,
                            region.top, region.width, region.height);
    };
    return called(decode_, arguments, [&](nb::handle made) -> Result<void> {
      const HeldBytes held(made);
      if (held.bytes().size() != rows * row)
        return internal_error("reading an image returned pixels of a different size");
      for (std::size_t y = 0; y < rows; ++y) std::memcpy(out + y * stride, held.bytes().data() + y * row, row);
      return {};
    });
  }

 private:
  const std::shared_ptr<void> open_, decode_;
};

// open returns (kind, width, height, image, orientation, depth), decode returns pixels; both return an error as text.
void read_by(nb::object open, nb::object decode) {
  read_foreign_images_by(std::make_shared<PythonImages>(std::move(open), std::move(decode)));
}

}  // namespace

void bind_foreign_images(nb::module_& module) {
  module.def("read_foreign_images_by", &read_by, "open"_a, "decode"_a);
  module.def("audio_extensions", &audio_extensions, "The extensions of audio files, without a dot.");
  module.def(
      "set_audio_library",
      [](bool is_soxr, const std::string& file) {
        set_packaged(is_soxr ? AudioLibrary::kSoxr : AudioLibrary::kSndfile, file);
      },
      "is_soxr"_a, "file"_a);
  module.def(
      "audio_library",
      [](bool is_soxr) {
        const AudioLibraryState state = find_library(is_soxr ? AudioLibrary::kSoxr : AudioLibrary::kSndfile);
        return nb::make_tuple(state.file, state.version, state.problem);
      },
      "is_soxr"_a, nb::sig("def audio_library(is_soxr: bool) -> tuple[str, str, str]"));
  module.def("foreign_images_decoded", &foreign_images_decoded,
             "Returns the number of images that this process has decoded with Pillow, by kind.");
}

}  // namespace feedline::python
