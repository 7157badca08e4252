// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compiled list of operations for images with stored values (decode(dtype=)): any dtype and number of channels. The
// operations draw as those of a Chain, and the drawn steps run on the values: crops, flips, borders and
// nearest-neighbour resizes move them unchanged, other resizes and warps interpolate in single precision (in double
// precision for native 32- and 64-bit numbers), and the result is rounded once.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "feedline/array.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/deep_pixels.h"
#include "transform/chain.h"
#include "transform/deep/deep_output.h"
#include "transform/deep/deep_steps.h"

namespace feedline::transform {

// Returns whether the operations begin with decode(dtype=), so that images need a DeepChain instead of a Chain.
bool keeps_stored_values(const std::vector<Operation>& operations);

// The images of a field.
struct DeepInput {
  int channels = 1;
  DType dtype = DType::kUint8;  // of the first sample; of all samples if the values are native
};

// Immutable and thread-safe once compiled.
class DeepChain {
 public:
  // kConfig: as for Chain::compile. Requires: keeps_stored_values().
  static Result<std::shared_ptr<const DeepChain>> compile(std::vector<Operation> operations, DeepInput input,
                                                          std::optional<DType> dtype, Layout layout,
                                                          Chain::OutputSize size);

  const op::Decode& decode() const;
  const ArraySpec& output() const { return output_.spec(); }  // as Chain::output()
  // Returns kData if images of this dtype and number of channels are not those of the chain.
  Result<void> check(int channels, DType dtype) const;
  // As Chain::draw() and Chain::apply(). `decoded` has the pixels of drawing.region.
  Result<void> draw(Size image, const base::SampleKey& key, Drawing& drawing) const;
  Result<void> apply(const Drawing& drawing, const memory::DeepView& decoded, DeepWorkspace& workspace,
                     ArrayView out) const;
  Shape shape_drawn(const Drawing& drawing) const { return output_.shape_of(drawing.size); }
  std::vector<DrawnValue> values(const Drawing& drawing) const;
  std::vector<std::string> explain() const;

 private:
  DeepChain(std::vector<Operation> operations, DeepInput input, DeepOutput output)
      : operations_(std::move(operations)), input_(input), output_(std::move(output)) {}

  std::vector<Operation> operations_;
  DeepInput input_;
  DeepOutput output_;
};

}  // namespace feedline::transform
