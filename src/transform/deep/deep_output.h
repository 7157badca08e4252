// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations on values after the last operation on pixels, for stored values, and writing rows of the batch.

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "feedline/array.h"
#include "feedline/operation.h"
#include "transform/kernels/aligned_vector.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {

// Returns whether single precision cannot hold all numbers of this dtype.
bool is_wide(DType dtype);

// One thread's scratch.
struct DeepRow {
  AlignedVector<float> floats;
  AlignedVector<double> doubles;
};

class DeepOutput final : public ValueSteps {
 public:
  // stored: the dtype of the values before the operations.
  DeepOutput(DType stored, int channels) : stored_(stored), dtype_(stored), channels_(channels) {}

  void normalize(const op::Normalize& normalize) override;
  void window(const op::Window& window) override;
  void convert(DType dtype, bool scale) override;
  // The reason if an operation is not possible for these images.
  const std::optional<std::string>& failure() const { return failure_; }
  void finish(Size size, Layout layout);  // spec() and write() are valid after it

  DType stored() const { return stored_; }
  DType dtype() const { return dtype_; }
  int channels() const { return channels_; }
  const ArraySpec& spec() const { return spec_; }
  Shape shape_of(Size size) const;  // of a row
  // Writes row `y` of an output of `size`. pixels: size.width pixels of that dtype, interleaved. mirrored: from right
  // to left.
  void write(DType dtype, const std::byte* pixels, int y, bool mirrored, Size size, DeepRow& scratch,
             std::byte* out) const;

 private:
  struct Scale {
    float divisor;
  };
  using Step = std::variant<op::Normalize, op::Window, Scale>;
  template <typename Work>
  void apply(Work* values, std::size_t count, std::size_t channel) const;
  template <typename Work>
  void write_values(DType dtype, const std::byte* pixels, int y, bool mirrored, Size size, AlignedVector<Work>& values,
                    std::byte* out) const;

  DType stored_, dtype_;
  int channels_;
  Layout layout_ = Layout::kNchw;
  ArraySpec spec_;
  std::vector<Step> steps_;
  std::optional<std::string> failure_;
};

}  // namespace feedline::transform
