// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "transform/chain.h"
#include "transform/emitter.h"
#include "transform/steps.h"

namespace feedline::transform {

// What Chain::compile makes: the operations on pixels are drawn per sample and fused into steps; those on values are
// already one table.
class CompiledChain final : public Chain {
 public:
  // Requires: infer() accepted the operations, and `emitter` is for what they give.
  CompiledChain(std::vector<Operation> operations, ColorMode mode, Fidelity fidelity, Emitter emitter);

  ColorMode color_mode() const override { return mode_; }
  Fidelity fidelity() const override { return fidelity_; }
  const ArraySpec& output() const override { return emitter_.spec(); }
  Result<void> draw(Size image, const base::SampleKey& key, Drawing& drawing) const override;
  Result<void> apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                     ArrayView out) const override;
  Result<void> apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                     ArrayView out) const override;
  std::vector<DrawnValue> values(const Drawing& drawing) const override;
  std::vector<std::string> explain() const override;

 private:
  std::vector<Operation> operations_;
  ColorMode mode_;
  Fidelity fidelity_;
  Emitter emitter_;
};

}  // namespace feedline::transform
