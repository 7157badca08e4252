// SPDX-License-Identifier: Apache-2.0
#include "pipeline/mask_path.h"

#include <utility>

#include "base/clock.h"
#include "pipeline/field_scratch.h"

namespace feedline::pipeline {

using telemetry::Stage;

void MaskPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.labels) scratch.labels = std::make_unique<LabelScratch>();
}

Result<void> MaskPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  LabelScratch& scratch = *work.scratch.labels;
  std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const decode::LabelHeader header, scratch.decoder.open(stored.bytes));
  if (header.dtype != spec().array.dtype)
    return data_error("labels of " + std::string(name_of(header.dtype)) + ", and those of the first sample are " +
                          std::string(name_of(spec().array.dtype)),
                      "decode");
  const Size size{header.height, header.width};
  FEEDLINE_CHECK_OK(check_drawn_size(work.scratch.drawn_for, size, spec().name));
  FEEDLINE_CHECK_OK(chain_->draw(size, work.key, scratch.drawing));
  FEEDLINE_CHECK_OK(scratch.decoder.decode(scratch.labels));
  work.meter.count(Stage::kDecode, started, memory::bytes_of(scratch.labels.view()));
  started = base::now_ns();
  const Size drawn = scratch.drawing.size();
  FEEDLINE_TRY(const ArrayView out, place(row, Shape{drawn.height, drawn.width}, work));
  transform::LabelChain::apply(scratch.drawing, scratch.labels.view(), out.data);
  work.meter.count(Stage::kTransform, started, out.spec.bytes());
  return {};
}

std::vector<std::string> MaskPath::explain() const {
  return {"labels as they are stored, moved as the images are, the nearest one where that resizes"};
}

}  // namespace feedline::pipeline
