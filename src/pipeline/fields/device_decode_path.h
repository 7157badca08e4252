// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/image_decoder.h"
#include "pipeline/fields/field_path.h"
#include "transform/chain.h"

namespace feedline::pipeline {

// An image that a device decodes: the host reads its header, draws the geometry, and writes the device's instructions
// into the row. If the device cannot decode an image, the host makes the finished row.
class DeviceDecodePath final : public FieldPath {
 public:
  // rest: the operations after decode. on_host: the same operations in NHWC, for rows that the host makes. row_bytes:
  // the sum of device_row_bytes() and rectangles_bytes(). needs_size: as in PixelsPath.
  DeviceDecodePath(std::string name, std::shared_ptr<device::ImageDecoder> decoder,
                   std::shared_ptr<const transform::Chain> rest, std::shared_ptr<const transform::Chain> on_host,
                   Layout layout, std::size_t row_bytes, bool applies_exif, bool needs_size);

  std::shared_ptr<const transform::DeviceElements> device_elements(std::size_t /*entry*/) const override {
    return device_elements_;
  }
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;

 private:
  bool is_for_decoder(const memory::Record::Field& stored) const;
  Result<bool> fill_on_device(const memory::Record::Field& stored, Size image, FieldWork& work,
                              std::span<std::byte> row) const;
  Result<void> fill_on_host(const memory::Record::Field& stored, FieldWork& work, std::span<std::byte> row) const;

  const std::shared_ptr<device::ImageDecoder> decoder_;
  const std::shared_ptr<const transform::Chain> rest_, on_host_;
  const std::shared_ptr<const transform::DeviceElements> device_elements_;
  const bool applies_exif_;
  const bool needs_size_;
};

}  // namespace feedline::pipeline
