// SPDX-License-Identifier: Apache-2.0
#include "feedline/image.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/cpu_clock.h"
#include "base/guarded.h"
#include "decode/codec.h"
#include "decode/decoder.h"
#include "decode/image_formats.h"
#include "decode/jpeg/restart_transcoder.h"
#include "decode/orientation.h"
#include "memory/pixels.h"
#include "transform/chain.h"
#include "transform/kernels/pixel_ops/apply.h"
#include "transform/kernels/variants.h"
#include "transform/warp.h"

namespace feedline {
namespace {

Image copy_of(const memory::PixelBuffer& pixels) {
  Image image{pixels.width(), pixels.height(), pixels.channels(), {}};
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  image.pixels.resize(row_bytes * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y)
    std::memcpy(image.pixels.data() + static_cast<std::size_t>(y) * row_bytes, pixels.row(y), row_bytes);
  return image;
}

// Copies an image into a PixelBuffer, whose rows have the slack that kernels need.
Result<void> copy_in(const Image& image, const std::string& caller, memory::PixelBuffer& in) {
  if (image.width <= 0 || image.height <= 0) return config_error(caller + ": every side must be at least 1");
  if (image.channels != 1 && image.channels != 3)
    return config_error(caller + ": the image must have 1 or 3 channels, not " + std::to_string(image.channels));
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  if (image.pixels.size() != row_bytes * static_cast<std::size_t>(image.height))
    return config_error(caller + ": " + std::to_string(image.pixels.size()) + " bytes of pixels do not match " +
                        std::to_string(image.width) + " x " + std::to_string(image.height) + " x " +
                        std::to_string(image.channels));
  FEEDLINE_CHECK_OK(in.resize(image.width, image.height, image.channels));
  for (int y = 0; y < image.height; ++y)
    std::memcpy(in.row(y), image.pixels.data() + static_cast<std::size_t>(y) * row_bytes, row_bytes);
  return {};
}

}  // namespace

Result<ImageInfo> image_info(std::span<const std::byte> encoded) {
  return base::guarded([&]() -> Result<ImageInfo> {
    decode::ImageDecoder decoder;
    FEEDLINE_TRY(const decode::ImageHeader header, decoder.open(encoded));
    return ImageInfo{decoder.kind(), header.width, header.height};
  });
}

Result<ImageTraits> image_traits(std::span<const std::byte> encoded) {
  return base::guarded([&]() -> Result<ImageTraits> {
    FEEDLINE_TRY(const decode::ImageFormat* const format, decode::sniff(encoded));
    ImageTraits traits{std::string(format->name), decode::exif_orientation(*format, encoded), {}};
    if (format->codec != nullptr) {
      for (const std::string_view trait : format->codec->read_traits(encoded)) traits.stored.emplace_back(trait);
      return traits;
    }
    decode::ImageDecoder decoder;
    if (const auto header = decoder.open(encoded); header) {
      traits.orientation = decoder.orientation();
      if (header->depth != decode::Depth::k8Bits) traits.stored.emplace_back(decode::name_of(header->depth));
    }
    return traits;
  });
}

Result<Image> decode_image(std::span<const std::byte> encoded, std::optional<Box> region, ColorMode mode,
                           bool applies_exif) {
  return base::guarded([&]() -> Result<Image> {
    decode::ImageDecoder decoder;
    FEEDLINE_TRY(const decode::ImageHeader header, decoder.open(encoded, applies_exif));
    const Box box = region.value_or(Box{0, 0, header.width, header.height});
    // written without sums, which could overflow
    const bool inside = box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 && box.width <= header.width &&
                        box.height <= header.height && box.left <= header.width - box.width &&
                        box.top <= header.height - box.height;
    if (!inside)
      return config_error("decode_image: the box (left " + std::to_string(box.left) + ", top " +
                          std::to_string(box.top) + ", width " + std::to_string(box.width) + ", height " +
                          std::to_string(box.height) + ") is not inside the image of " + std::to_string(header.width) +
                          " x " + std::to_string(header.height) + " pixels");
    memory::PixelBuffer pixels;
    FEEDLINE_CHECK_OK(decoder.decode(box, mode, pixels));
    return copy_of(pixels);
  });
}

Result<Image> resize_image(const Image& image, Size size, Interpolation interpolation) {
  return base::guarded([&]() -> Result<Image> {
    if (size.width <= 0 || size.height <= 0) return config_error("resize_image: every side must be at least 1");
    memory::PixelBuffer in, out;
    FEEDLINE_CHECK_OK(copy_in(image, "resize_image", in));
    transform::Workspace workspace;
    FEEDLINE_CHECK_OK(transform::resize(in.view(), size, interpolation, workspace, out));
    return copy_of(out);
  });
}

Result<Image> apply_pixel_operation(const Image& image, const PixelOperation& operation) {
  return base::guarded([&]() -> Result<Image> {
    memory::PixelBuffer in, out;
    FEEDLINE_CHECK_OK(copy_in(image, std::string(name_of(operation)), in));
    transform::PixelScratch scratch;
    FEEDLINE_CHECK_OK(transform::apply(operation, in.view(), scratch, out));
    return copy_of(out);
  });
}

Result<std::vector<float>> elastic_displacement(const op::ElasticTransform& elastic, Size size, std::uint64_t seed,
                                                std::uint64_t epoch, std::uint64_t sample, std::uint32_t stream) {
  return base::guarded([&]() -> Result<std::vector<float>> {
    if (size.width < 1 || size.height < 1) return config_error("elastic_displacement: every side must be at least 1");
    transform::ElasticScratch scratch;
    const transform::ElasticWarp warp{elastic.alpha, elastic.sigma, {seed, epoch, sample}, stream};
    const auto displacement = transform::elastic_displacement(warp, size, scratch);
    return std::vector<float>(displacement.begin(), displacement.end());
  });
}

Result<std::vector<double>> time_pixel_operation(const Image& image, const PixelOperation& operation, int runs) {
  return base::guarded([&]() -> Result<std::vector<double>> {
    memory::PixelBuffer in, out;
    FEEDLINE_CHECK_OK(copy_in(image, std::string(name_of(operation)), in));
    transform::PixelScratch scratch;
    FEEDLINE_CHECK_OK(transform::apply(operation, in.view(), scratch, out));
    std::vector<double> seconds;
    for (int run = 0; run < runs; ++run) {
      const std::uint64_t start = base::thread_cpu_ns();
      FEEDLINE_CHECK_OK(transform::apply(operation, in.view(), scratch, out));
      seconds.push_back(static_cast<double>(base::thread_cpu_ns() - start) * 1e-9);
    }
    return seconds;
  });
}

Result<std::optional<std::vector<std::byte>>> jpeg_with_restarts(std::span<const std::byte> encoded, int interval) {
  if (interval < 0 || interval > decode::kMostRestartMcus)
    return config_error("the restart interval must be between 1 and " + std::to_string(decode::kMostRestartMcus) +
                        " MCUs, or 0 to derive it from the image's size; got " + std::to_string(interval));
  return base::guarded([&] { return decode::with_restarts(encoded, interval); });
}

std::vector<std::string> simd_variants() { return transform::simd_variants(); }
std::string active_simd_variant() { return transform::active_simd_variant(); }
Result<void> follow_pillow(int major) { return transform::follow_pillow(major); }
Result<void> force_simd_variant(const std::string& name) { return transform::force_simd_variant(name); }

}  // namespace feedline
