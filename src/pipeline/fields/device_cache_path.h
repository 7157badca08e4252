// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/fields/field_path.h"
#include "transform/chain.h"
#include "transform/preparation.h"

namespace feedline::pipeline {

// Returns the conversion that a device applies to rows of bytes, even if it is the identity (for uint8).
std::shared_ptr<const transform::DeviceElements> elements_on_device(const transform::Chain& chain, Layout layout);

// An image cached on a device: draws the operations after the cache and writes the drawn values into the row for the
// device.
class DeviceCachePath final : public FieldPath {
 public:
  // rest: the operations after the cache. row_bytes: the sum of device_row_bytes() and rectangles_bytes(). needs_size:
  // as in PixelsPath.
  DeviceCachePath(std::string name, std::shared_ptr<const transform::Preparation> preparation,
                  std::shared_ptr<const transform::Chain> rest, Layout layout, std::size_t row_bytes, bool needs_size);

  std::shared_ptr<const transform::DeviceElements> device_elements(std::size_t /*entry*/) const override {
    return device_elements_;
  }
  void add_scratch(FieldScratch& scratch) const override;
  // Requires: the stored field is an image in the device's memory.
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;

 private:
  const std::shared_ptr<const transform::Preparation> preparation_;
  const std::shared_ptr<const transform::Chain> rest_;
  const std::shared_ptr<const transform::DeviceElements> device_elements_;
  const bool needs_size_;
};

}  // namespace feedline::pipeline
