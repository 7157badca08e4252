// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Base class of record formats that are opened from a source. A derived class sets the protected members when it is
// opened.
class OpenedFormat : public RecordFormat {
 public:
  const std::vector<FieldDescription>& fields() const final { return fields_; }
  const std::vector<std::string>& classes() const final { return classes_; }
  std::shared_ptr<const storage::Storage> storage() const final { return options_.storage; }
  std::uint64_t fingerprint() const final { return fingerprint_; }
  Result<Inspection> inspect() const final { return format::inspect(source_, options_); }

 protected:
  OpenedFormat(std::string source, OpenOptions options) : source_(std::move(source)), options_(std::move(options)) {}

  const std::string source_;
  const OpenOptions options_;
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;  // empty if labels have no names
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
