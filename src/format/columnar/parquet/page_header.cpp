// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/page_header.h"

#include "format/columnar/parquet/compact_reader.h"

namespace feedline::format {
namespace {

bool is_number(CompactType type) { return type == CompactType::kInt32 || type == CompactType::kInt64; }

// Field ids are defined in parquet.thrift. Headers with negative numbers are invalid.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> bytes) : in_(bytes), size_(bytes.size()) {}

  std::optional<PageHeader> read() {
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 4 && is_number(type)) return made_.crc = static_cast<std::uint32_t>(in_.integer()), true;
      if (type == CompactType::kStruct && (id == 5 || id == 7)) return data(), true;
      if (type == CompactType::kStruct && id == 8) return data_of_v2(), true;
      if (!is_number(type) || id > 3) return false;
      const std::uint64_t value = number();
      if (id == 1) made_.kind = value <= 3 ? static_cast<PageHeader::Kind>(value) : PageHeader::Kind::kOther;
      if (id == 2) made_.plain_bytes = value;
      if (id == 3) made_.packed_bytes = value;
      return true;
    });
    if (in_.is_damaged() || is_negative_) return {};
    made_.bytes = size_ - in_.rest().size();
    return made_;
  }

 private:
  std::uint64_t number() {
    const std::int64_t value = in_.integer();
    is_negative_ = is_negative_ || value < 0;
    return static_cast<std::uint64_t>(value);
  }

  // Also reads the header of a dictionary page, which begins with the same two numbers.
  void data() {
    in_.fields([&](std::int64_t id, CompactType type) {
      if (!is_number(type) || id > 4) return false;
      const std::int64_t value = in_.integer();
      is_negative_ = is_negative_ || value < 0;
      if (id == 1) made_.values = static_cast<std::uint64_t>(value);
      if (id == 2) made_.encoding = value;
      if (id == 3) made_.definition_encoding = value;
      if (id == 4) made_.repetition_encoding = value;
      return true;
    });
  }

  void data_of_v2() {
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 7) return made_.is_compressed = type == CompactType::kTrue, false;
      if (!is_number(type) || id > 6) return false;
      const std::uint64_t value = number();
      if (id == 1) made_.values = value;
      if (id == 2) made_.nulls = value;
      if (id == 3) made_.rows = value;
      if (id == 4) made_.encoding = static_cast<std::int64_t>(value);
      if (id == 5) made_.definition_bytes = value;
      if (id == 6) made_.repetition_bytes = value;
      return true;
    });
  }

  CompactReader in_;
  const std::uint64_t size_;
  PageHeader made_;
  bool is_negative_ = false;
};

}  // namespace

std::optional<PageHeader> parse_page_header(std::span<const std::byte> bytes) { return HeaderReader(bytes).read(); }

}  // namespace feedline::format
