// SPDX-License-Identifier: Apache-2.0
#include "format/arrays/array_files.h"

#include <algorithm>
#include <utility>

#include "format/arrays/named_arrays.h"

namespace feedline::format {
namespace {

// Returns the memory of an array from its first byte to its last; supports negative strides.
std::span<const std::byte> memory_of(const NamedArray& array) {
  if (array.rows == 0 || array.row.bytes() == 0) return {};
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(array.rows - 1) * array.stride;
  const std::byte* const begin = array.data + std::min<std::ptrdiff_t>(last, 0);
  const std::byte* const end = array.data + std::max<std::ptrdiff_t>(last, 0) + array.row.bytes();
  return {begin, end};
}

}  // namespace

ArrayFiles::ArrayFiles(std::span<const NamedArray> arrays) {
  for (const NamedArray& array : arrays) {
    const auto file = files_.emplace_back(storage::BackingFile::of(memory_of(array))).get();
    if (file == nullptr) continue;
    const auto same = std::ranges::find(checked_, file->path(), &storage::BackingFile::path);
    if (same == checked_.end())
      checked_.push_back(file);
    else if (file->needed_bytes() > (*same)->needed_bytes())
      *same = file;
  }
}

Result<void> ArrayFiles::check() const {
  for (const storage::BackingFile* const file : checked_) FEEDLINE_CHECK_OK(file->check());
  return {};
}

Result<memory::OwnRow> ArrayFiles::own_row(const NamedArray& array, std::size_t number, std::uint64_t index,
                                           memory::RowUse use) const {
  const storage::BackingFile* const file = of(number);
  if (use == memory::RowUse::kView) {
    if (file != nullptr) FEEDLINE_CHECK_OK(file->check());
    const StoredRow row = row_of(array, index);
    auto* const data = const_cast<std::byte*>(row.bytes.data());  // NOLINT: it is read alone
    return memory::OwnRow{std::shared_ptr<std::byte>(array.owner, data), {array.row.dtype, row.shape}};
  }
  if (file == nullptr || (use == memory::RowUse::kKept && file->is_writable())) return memory::OwnRow{};
  const StoredRow row = row_of(array, index);
  if (row.bytes.size() < kMappedRowBytes) return memory::OwnRow{};
  FEEDLINE_TRY(auto pages, file->own_pages(row.bytes));
  return memory::OwnRow{std::move(pages), {array.row.dtype, row.shape}};
}

}  // namespace feedline::format
