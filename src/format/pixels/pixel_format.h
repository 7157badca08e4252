// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/format.h"
#include "format/pixels/pixel_store.h"

namespace feedline::format {

// A finished pixel file as a dataset. This dataset has the samples, fields, labels, keys and classes of the original
// one, with decoded images.
class PixelFormat final : public RecordFormat {
 public:
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

  std::string_view name() const override { return "pixels"; }
  std::uint64_t size() const override { return store_->contents().samples; }
  const std::vector<FieldDescription>& fields() const override { return store_->contents().fields; }
  const std::vector<std::string>& classes() const override { return store_->contents().classes; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override;
  Result<Inspection> inspect() const override;

 private:
  explicit PixelFormat(std::unique_ptr<PixelStore> store) : store_(std::move(store)) {}

  const std::unique_ptr<PixelStore> store_;
};

}  // namespace feedline::format
