// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/flat_table.h"

namespace feedline::format {

FlatTable::FlatTable(FlatBuffer& buffer, std::uint64_t at) : buffer_(&buffer), at_(at) {
  const auto back = buffer.load<std::int32_t>(at);
  const auto vtable = static_cast<std::int64_t>(at) - back;
  if (vtable < 0 || !buffer.has(static_cast<std::uint64_t>(vtable), 4)) {
    (void)buffer.has(buffer.size() + 1, 0);  // damaged
    return;
  }
  vtable_ = static_cast<std::uint64_t>(vtable);
  vtable_bytes_ = buffer.load<std::uint16_t>(vtable_);
  if (!buffer.has(vtable_, vtable_bytes_)) vtable_bytes_ = 0;
}

std::uint64_t FlatTable::location(std::size_t field) const {
  const std::uint64_t entry = 4 + 2 * field;
  if (buffer_ == nullptr || entry + 2 > vtable_bytes_) return 0;
  const auto inside = buffer_->load<std::uint16_t>(vtable_ + entry);
  return inside == 0 ? 0 : at_ + inside;
}

std::uint64_t FlatTable::target(std::size_t field) const {
  const std::uint64_t at = location(field);
  if (at == 0) return 0;
  const auto offset = buffer_->load<std::uint32_t>(at);
  return offset == 0 || !buffer_->has(at, 4) ? 0 : at + offset;
}

FlatTable FlatTable::table(std::size_t field) const {
  const std::uint64_t at = target(field);
  return at == 0 ? FlatTable() : FlatTable(*buffer_, at);
}

std::string_view FlatTable::text(std::size_t field) const {
  const std::uint64_t at = target(field);
  if (at == 0) return {};
  const auto bytes = buffer_->bytes(at + 4, buffer_->load<std::uint32_t>(at));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FlatVector FlatTable::vector(std::size_t field, std::uint64_t stride) const {
  const std::uint64_t at = target(field);
  if (at == 0) return {};
  const auto size = buffer_->load<std::uint32_t>(at);
  if (!buffer_->has(at + 4, size * stride)) return {};
  return {buffer_, at + 4, size, stride};
}

FlatTable FlatTable::in(const FlatVector& vector, std::uint64_t i) {
  const std::uint64_t at = vector.begin + i * vector.stride;
  return FlatTable(*vector.buffer, at + vector.buffer->load<std::uint32_t>(at));
}

}  // namespace feedline::format
