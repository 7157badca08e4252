// SPDX-License-Identifier: Apache-2.0
#include "decode/decoder.h"

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/foreign/foreign_decoder.h"
#include "decode/image_formats.h"
#include "decode/orientation.h"
#include "decode/plugin/plugin_table.h"

namespace feedline::decode {

std::string_view name_of(Depth depth) {
  switch (depth) {
    case Depth::k8Bits:
      break;
    case Depth::k16Bits:
      return "16 bits";
    case Depth::k32Bits:
      return "32 bits";
    case Depth::kFloat:
      return "floats";
  }
  return "8 bits";
}

std::unexpected<Error> decode_error(std::string what) { return data_error(std::move(what), "decode"); }

Result<void> check_size(std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0)
    return decode_error("image without pixels: " + std::to_string(width) + " x " + std::to_string(height));
  if (width > memory::PixelBuffer::kMaxPixels / height)
    return decode_error("image of " + std::to_string(width) + " x " + std::to_string(height) +
                        " pixels is over the limit of " + std::to_string(memory::PixelBuffer::kMaxPixels) + " pixels");
  return {};
}

struct ImageDecoder::Impl {
  std::vector<std::unique_ptr<Codec>> codecs;  // one per row of the table; null if the format has no codec
  ForeignDecoder foreign;
  Codec* current = nullptr;          // the codec of the opened image; null after decode() has consumed it
  std::span<const std::byte> bytes;  // of the opened image
  ImageHeader header;
  Orientation orientation;     // the opened image, described after rotation
  memory::PixelBuffer stored;  // a region before rotation

  // Returns whether an image is open and contains the region.
  bool has(const Box& region) const {
    return current != nullptr && region.left >= 0 && region.top >= 0 && region.width > 0 && region.height > 0 &&
           region.width <= header.width - region.left && region.height <= header.height - region.top;
  }

  // Creates all codecs at once: the JPEG codec reads an environment variable, and other threads may change the
  // environment later.
  Impl() {
    for (const ImageFormat& format : image_formats())
      codecs.push_back(format.codec == nullptr ? nullptr : format.codec->make());
  }

  Codec& codec_of(const ImageFormat& format) {
    if (format.codec == nullptr) {
      foreign.use(plugin_images_of(format));
      return foreign;
    }
    return *codecs[static_cast<std::size_t>(&format - image_formats().data())];
  }

  // Maps a region of the rotated image to the stored one.
  Box stored_box(const Box& region) const {
    if (orientation.is_stored()) return region;
    const Size size = orientation.transposes ? Size{header.width, header.height} : Size{header.height, header.width};
    return stored_region(orientation, region, size);
  }

  // `out` has the region's size. Requires: the codec has an image open.
  Result<void> decode(Codec& codec, const Box& region, ColorMode mode, memory::PixelBuffer& out) {
    if (orientation.is_stored()) return codec.decode(region, mode, out);
    const Box box = stored_box(region);
    FEEDLINE_CHECK_OK(stored.resize(box.width, box.height, channels_of(mode)));
    FEEDLINE_CHECK_OK(codec.decode(box, mode, stored));
    turn(orientation, stored.view(), out);
    return {};
  }
};

ImageDecoder::ImageDecoder() : impl_(std::make_unique<Impl>()) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

std::shared_ptr<JpegPart> ImageDecoder::find_part(const Box& region, const JpegOutline& outline, bool is_same_file,
                                                  const CheckpointStore& store) {
  FEEDLINE_CHECK(impl_->has(region));
  return impl_->current->find_part(impl_->stored_box(region), outline, is_same_file, store);
}

void ImageDecoder::use_part(JpegPart* part) {
  FEEDLINE_CHECK(impl_->current != nullptr);
  impl_->current->use_part(part);
}

void ImageDecoder::use_checkpoints(CheckpointStore* store) {
  for (const auto& codec : impl_->codecs)
    if (codec) codec->use_checkpoints(store);
}

Result<ImageHeader> ImageDecoder::open(std::span<const std::byte> bytes, bool applies_exif) {
  impl_->current = nullptr;
  FEEDLINE_TRY(const ImageFormat* const format, sniff(bytes));
  Codec& codec = impl_->codec_of(*format);
  impl_->foreign.apply_exif(applies_exif);
  auto header = codec.open(bytes);
  if (!header && format->codec == nullptr)
    header.error().what = std::string(format->title) + " image: " + header.error().what;
  FEEDLINE_TRY(impl_->header, std::move(header));
  impl_->header.format = format;
  impl_->orientation = applies_exif ? stored_orientation(*format, bytes) : Orientation{};
  if (impl_->orientation.transposes) std::swap(impl_->header.width, impl_->header.height);
  impl_->bytes = bytes;
  impl_->current = &codec;
  return impl_->header;
}

const ImageHeader& ImageDecoder::header() const { return impl_->header; }

int ImageDecoder::orientation() const {
  FEEDLINE_CHECK(impl_->current != nullptr);
  const ImageFormat& format = *impl_->header.format;
  return format.codec == nullptr ? impl_->foreign.orientation() : exif_orientation(format, impl_->bytes);
}

std::string ImageDecoder::kind() const {
  const ImageFormat& format = *impl_->header.format;
  return format.codec == nullptr ? impl_->foreign.kind() : std::string(format.name);
}

Result<void> ImageDecoder::decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  FEEDLINE_CHECK(impl_->has(region));
  Codec& codec = *std::exchange(impl_->current, nullptr);
  FEEDLINE_CHECK_OK(out.resize(region.width, region.height, channels_of(mode)));
  return impl_->decode(codec, region, mode, out);
}

std::array<Result<void>, 2> ImageDecoder::decode_in_turn(ImageDecoder& first, const Task& first_task,
                                                         ImageDecoder& second, const Task& second_task) {
  Impl &a = *first.impl_, &b = *second.impl_;
  const auto is_ready = [](const Impl& impl) { return impl.current != nullptr && impl.orientation.is_stored(); };
  if (!is_ready(a) || !is_ready(b) || a.header.format != b.header.format)
    return {first.decode(first_task.region, first_task.mode, *first_task.out),
            second.decode(second_task.region, second_task.mode, *second_task.out)};
  const auto room_for = [](Impl& impl, const Task& task) {
    FEEDLINE_CHECK(impl.has(task.region));
    return task.out->resize(task.region.width, task.region.height, channels_of(task.mode));
  };
  const std::array<Result<void>, 2> room{room_for(a, first_task), room_for(b, second_task)};
  if (!room[0] || !room[1])
    return {room[0] ? first.decode(first_task.region, first_task.mode, *first_task.out) : room[0],
            room[1] ? second.decode(second_task.region, second_task.mode, *second_task.out) : room[1]};
  Codec& codec = *std::exchange(a.current, nullptr);
  return codec.decode_pair(first_task, *std::exchange(b.current, nullptr), second_task);
}

bool ImageDecoder::decode_planes(const Box& region, ColorMode mode, const memory::Coarseness& most,
                                 memory::Planes& out) {
  FEEDLINE_CHECK(impl_->has(region));
  if (!impl_->orientation.is_stored()) return false;
  const bool decoded = impl_->current->decode_planes(region, mode, most, out);
  if (decoded) impl_->current = nullptr;
  return decoded;
}

}  // namespace feedline::decode
