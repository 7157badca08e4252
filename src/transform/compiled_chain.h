// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transform/chain.h"
#include "transform/kernels/emitter.h"
#include "transform/noise.h"
#include "transform/steps.h"

namespace feedline::transform {

// Draws the operations in order and returns the size of the output. Random operations use streams numbered from
// `first_stream`. Requires: infer() accepted the operations. part: the part of the output to which the drawing is
// restricted, or nullptr for the whole output. others: streams that the first operations use instead.
Result<Size> draw_operations(std::span<const Operation> operations, std::uint32_t first_stream, Size image,
                             const base::SampleKey& key, Drawing& drawing, const Box* part = nullptr,
                             std::span<const std::uint32_t> others = {});
// Returns the decisions of a drawing as named values.
std::vector<DrawnValue> values_of(const Drawing& drawing);
// Returns one line for each operation on pixels. narrowed: the note for an operation that needs only a region of the
// image.
std::vector<std::string> explain_operations(std::span<const Operation> operations, const std::string& narrowed);

// The implementation of Chain::compile. Operations on pixels are drawn for each sample and fused into steps; operations
// on values are compiled into one table.
class CompiledChain final : public Chain {
 public:
  // The input of the operations.
  struct Input {
    ColorMode mode = ColorMode::kRgb;
    Fidelity fidelity = Fidelity::kExact;
    bool applies_exif = false;
    bool prepared = false;                   // pixels from Preparation, which are already decoded
    std::uint32_t first_stream = 0;          // number of operations before these
    std::vector<std::uint32_t> others = {};  // as for draw_operations()
  };
  // Requires: infer() has accepted the operations, and `emitter` and `eraser` match the output of the operations.
  CompiledChain(std::vector<Operation> operations, Input input, Emitter emitter, OutputEraser eraser,
                std::shared_ptr<const DeviceElements> device_elements);

  ColorMode color_mode() const override { return input_.mode; }
  bool applies_exif() const override { return input_.applies_exif; }
  Fidelity fidelity() const override { return input_.fidelity; }
  const ArraySpec& output() const override { return emitter_.spec(); }
  std::shared_ptr<const DeviceElements> device_elements() const override { return device_elements_; }
  std::vector<DeviceRectangle> list_rectangles(const Drawing& drawing, Workspace& workspace) const override;
  Result<void> draw(Size image, const base::SampleKey& key, Drawing& drawing) const override;
  Result<void> apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                     ArrayView out) const override;
  Result<void> apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                     ArrayView out) const override;
  std::vector<DrawnValue> values(const Drawing& drawing) const override;
  std::vector<std::string> explain() const override;

 private:
  bool has_fixed_size() const { return output().shape[1] >= 0 && output().shape[0] >= 0; }
  template <typename Decoded>
  Result<void> emit(const Drawing& drawing, const Decoded& decoded, Workspace& workspace, const ArrayView& out) const;

  std::vector<Operation> operations_;
  Input input_;
  Emitter emitter_;
  OutputEraser eraser_;
  std::shared_ptr<const DeviceElements> device_elements_;  // nullptr: nothing is left for a device
};

}  // namespace feedline::transform
