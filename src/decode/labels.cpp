// SPDX-License-Identifier: Apache-2.0
#include "decode/labels.h"

#include <string>

#include "decode/codec.h"
#include "decode/image_formats.h"
#include "decode/png/png_decoder.h"

namespace feedline::decode {

struct LabelDecoder::Impl {
  PngDecoder png;
  LabelHeader header;
};

LabelDecoder::LabelDecoder() : impl_(std::make_unique<Impl>()) {}
LabelDecoder::~LabelDecoder() = default;
LabelDecoder::LabelDecoder(LabelDecoder&&) noexcept = default;
LabelDecoder& LabelDecoder::operator=(LabelDecoder&&) noexcept = default;

Result<LabelHeader> LabelDecoder::open(std::span<const std::byte> bytes) {
  FEEDLINE_TRY(const ImageFormat* const format, sniff(bytes));
  if (format->codec != &kPngCodec)
    return decode_error("a mask must be a PNG, which is lossless; this image is " + std::string(format->title));
  FEEDLINE_TRY(const ImageHeader size, impl_->png.open(bytes));
  const PngHeader& png = impl_->png.header();
  if (png.channels() != 1)
    return decode_error("a mask must be a grey or palette PNG; this one has " + std::to_string(png.channels()) +
                        " channels");
  impl_->header = {size.width, size.height, png.depth == 16 ? DType::kUint16 : DType::kUint8};
  return impl_->header;
}

Result<void> LabelDecoder::decode(memory::PixelBuffer& out) {
  const LabelHeader& header = impl_->header;
  FEEDLINE_CHECK_OK(out.resize(header.width, header.height, static_cast<int>(size_of(header.dtype))));
  return impl_->png.decode_labels(out);
}

}  // namespace feedline::decode
