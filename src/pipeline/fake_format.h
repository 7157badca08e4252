// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: a format with generated samples. Sample i is an 8 x 6 PNG whose pixels are i % 256, with label i. Samples
// may be damaged and reads may block, so a test controls which sample is slow.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "decode/png/png_fixture.h"
#include "format/format.h"

namespace feedline::pipeline {

inline std::vector<std::byte> plain_png(std::uint8_t value, std::uint32_t width = 8, std::uint32_t height = 6) {
  const std::vector<std::uint8_t> pixels(std::size_t{3} * width * height, value);
  return decode::made_png(width, height, SPNG_COLOR_TYPE_TRUECOLOR, pixels);
}

class FakeFormat final : public format::RecordFormat {
 public:
  explicit FakeFormat(std::uint64_t size, std::set<std::uint64_t> damaged = {})
      : size_(size), damaged_(std::move(damaged)) {
    for (int value = 0; value < 256; ++value) images_.push_back(plain_png(static_cast<std::uint8_t>(value)));
  }
  std::function<void(std::uint64_t)> before_read = [](std::uint64_t) {};

  std::string_view name() const override { return "fake"; }
  std::uint64_t size() const override { return size_; }
  const std::vector<format::FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    before_read(index);
    const auto& png = images_[index % 256];
    record.fields.resize(2);
    record.fields[0].bytes = std::span(png).first(damaged_.contains(index) ? png.size() / 2 : png.size());
    record.fields[1].value = static_cast<std::int64_t>(index);
    record.bytes_read = record.fields[0].bytes.size();
    return {};
  }
  Where where(std::uint64_t index) const override {
    Where where;
    where.shard = "fake-shard";
    where.key = "key-" + std::to_string(index);
    where.offset = index * 100;
    return where;
  }
  std::uint64_t fingerprint() const override { return size_; }
  Result<Inspection> inspect() const override { return Inspection{}; }

 private:
  std::uint64_t size_;
  std::set<std::uint64_t> damaged_;
  std::vector<std::vector<std::byte>> images_;
  std::vector<format::FieldDescription> fields_{{"image", format::FieldKind::kImage},
                                                {"label", format::FieldKind::kInteger}};
  std::vector<std::string> classes_;
};

}  // namespace feedline::pipeline
