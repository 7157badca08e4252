// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/deep_path.h"

#include "base/check.h"
#include "base/clock.h"
#include "pipeline/fields/field_scratch.h"

namespace feedline::pipeline {

using telemetry::Stage;

namespace {

Result<decode::DeepHeader> open_image_file(const memory::Record::Field& stored, const op::Decode& decode,
                                           decode::DeepDecoder& decoder) {
  if (stored.pixels.data != nullptr)
    return data_error("decode(dtype=) needs image files, but the dataset has stored 8-bit pixels: omit dtype=",
                      "decode");
  return decoder.open(stored.bytes, decode.page, decode.applies_exif);
}

}  // namespace

Result<decode::DeepHeader> open_deep_image(const memory::Record::Field& stored,
                                           const std::vector<Operation>& operations, decode::DeepDecoder& decoder) {
  for (const Operation& operation : operations)
    if (const op::Decode* const decode = operation->properties().decode)
      return open_image_file(stored, *decode, decoder);
  FEEDLINE_CHECK(!"the operations have no decode()");
}

Result<Size> DeepPath::size(const memory::Record::Field& stored, FieldScratch& scratch) const {
  FEEDLINE_TRY(const decode::DeepHeader header, open_image_file(stored, chain_->decode(), scratch.deep->decoder));
  return Size{header.height, header.width};
}

void DeepPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.deep) scratch.deep = std::make_unique<DeepScratch>();
}

Result<void> DeepPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  DeepScratch& scratch = *work.scratch.deep;
  std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const decode::DeepHeader header, open_image_file(stored, chain_->decode(), scratch.decoder));
  FEEDLINE_CHECK_OK(chain_->check(header.channels, header.dtype));
  const Size size{header.height, header.width};
  FEEDLINE_CHECK_OK(check_drawn_size(work.scratch.drawn_for, size, spec().name));
  FEEDLINE_CHECK_OK(chain_->draw(size, work.key, scratch.drawing));
  FEEDLINE_TRY(const ArrayView out, destination(row, chain_->shape_drawn(scratch.drawing), work));
  FEEDLINE_TRY(const memory::DeepView pixels, scratch.decoder.decode(scratch.drawing.region, scratch.pixels));
  work.meter.count(Stage::kDecode, started, memory::bytes_of(pixels.bytes));
  started = base::now_ns();
  FEEDLINE_CHECK_OK(chain_->apply(scratch.drawing, pixels, scratch.workspace, out));
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

// PixelCache refuses chains with stored values.
Result<void> DeepPath::prepare(const memory::Record::Field& /*stored*/, FieldWork& /*work*/,
                               format::PixelRecordBuilder& /*cached*/) const {
  FEEDLINE_CHECK(!"a cache stores 8-bit pixels");
}

}  // namespace feedline::pipeline
