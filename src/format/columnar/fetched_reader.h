// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <string>

#include "format/columnar/column_table.h"
#include "storage/reader.h"

namespace feedline::format {

// Reads from a file of which some parts have already been read. Copies bytes from these parts, and reads all other
// bytes from the file. Requires: the parts and the file outlive this object. Thread-safe.
class FetchedReader final : public storage::Reader {
 public:
  FetchedReader(const storage::Reader& file, std::span<const FileRange> ranges,
                std::span<const std::span<const std::byte>> parts)
      : file_(file), ranges_(ranges), parts_(parts) {}

  Result<storage::ObjectStat> stat() const override { return file_.stat(); }
  Result<storage::ObjectStat> version() const override { return file_.version(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const FileRange& range = ranges_[i];
      if (offset < range.offset || offset - range.offset > parts_[i].size()) continue;
      const auto part = parts_[i].subspan(offset - range.offset);
      if (part.size() < out.size()) continue;
      if (!out.empty()) std::memcpy(out.data(), part.data(), out.size());
      return out.size();
    }
    return file_.read_at(offset, out);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const override {
    return file_.view(offset, bytes);
  }
  std::size_t worthwhile_bytes() const override { return file_.worthwhile_bytes(); }
  const std::string& name() const override { return file_.name(); }

 private:
  const storage::Reader& file_;
  const std::span<const FileRange> ranges_;
  const std::span<const std::span<const std::byte>> parts_;
};

}  // namespace feedline::format
