// SPDX-License-Identifier: Apache-2.0

// Any bytes as columns in memory: offsets and views of Arrow text, UTF-32 text, integers, lists of paths, ragged
// numbers and tags. No crash and no read out of bounds. Accepted columns have the same number of rows, a location for
// each row, and text inside its buffer. A missing file is an error with its row.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/rows/rows_format.h"
#include "format/rows/text_cells.h"
#include "fuzz_input.h"

using namespace feedline;

namespace {

std::size_t below(FuzzInput& input, std::size_t end) { return input.number(1) % end; }

constexpr std::size_t kMostRows = 32;  // limits the time per input
constexpr std::size_t kMostText = 64;  // bytes

// An allocation of exactly this size, so that the address sanitizer reports reads outside.
std::shared_ptr<std::vector<std::byte>> taken(FuzzInput& input, std::size_t bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  const std::string_view given = input.take(bytes);
  if (!given.empty()) std::memcpy(owner->data(), given.data(), given.size());
  return owner;
}

std::string_view text_in(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using Owners = std::vector<std::shared_ptr<const void>>;

std::shared_ptr<const TextCells> cells_of(FuzzInput& input) {
  const auto owners = std::make_shared<Owners>();
  const auto keep = [&](std::size_t bytes) -> const std::vector<std::byte>& {
    const auto owner = taken(input, bytes);
    owners->push_back(owner);
    return *owner;
  };
  TextCells cells{.owner = owners};
  const std::size_t rows = below(input, kMostRows);
  switch (below(input, 4)) {
    case 0: {
      std::vector<TextCells::Chunk> chunks;
      const std::size_t count = 1 + below(input, 3);
      for (std::size_t chunk = 0; chunk < count; ++chunk) {
        const bool are_wide = below(input, 2) == 1;
        const auto& offsets = keep((rows + 1) * (are_wide ? 8 : 4));
        cells.rows += rows;
        chunks.push_back({cells.rows, offsets.data(), are_wide, text_in(keep(below(input, kMostText)))});
      }
      cells.form = std::move(chunks);
      break;
    }
    case 1: {
      TextCells::ViewChunk chunk{rows, keep(rows * 16).data(), {}};
      const std::size_t buffers = below(input, 3);
      for (std::size_t buffer = 0; buffer < buffers; ++buffer)
        chunk.buffers.push_back(text_in(keep(below(input, kMostText))));
      cells.rows = rows;
      cells.form = std::vector{chunk};
      break;
    }
    case 2: {
      const std::size_t characters = below(input, 8);
      cells.rows = rows;
      cells.form = TextCells::FixedWidth{keep(rows * characters * 4).data(),
                                         static_cast<std::ptrdiff_t>(characters * 4), characters};
      break;
    }
    default:
      cells.rows = rows;
      cells.form = TextCells::Integers{keep(rows * 8).data(), 8, DType::kInt64};
  }
  return std::make_shared<const TextCells>(std::move(cells));
}

std::vector<std::int64_t> offsets_of(FuzzInput& input) {
  std::vector<std::int64_t> offsets(below(input, kMostRows));
  std::int64_t end = 0;
  for (std::int64_t& offset : offsets) {  // mostly ascending, as other lists are rejected immediately
    offset = end;
    end += static_cast<std::int64_t>(below(input, 3));
    if (below(input, 64) == 0) offset = static_cast<std::int64_t>(input.number(8));
  }
  return offsets;
}

NamedArray array_of(FuzzInput& input, std::string name, DType dtype) {
  const std::size_t rows = below(input, kMostRows);
  const auto owner = taken(input, rows * size_of(dtype));
  NamedArray array{.name = std::move(name),
                   .data = owner->data(),
                   .rows = rows,
                   .stride = static_cast<std::ptrdiff_t>(size_of(dtype)),
                   .row = {dtype, {}},
                   .owner = owner,
                   .kind = below(input, 2) == 0 ? "value" : "array"};
  if (below(input, 2) == 0) array.offsets = offsets_of(input);
  return array;
}

RowColumn column_of(FuzzInput& input, const std::string& name) {
  switch (below(input, 4)) {
    case 0: {
      FileColumn column{name, "image", "/nowhere", {"a"}, {}};
      const std::size_t count = below(input, 3);
      for (std::size_t i = 0; i < count; ++i) {
        column.cells.push_back(cells_of(input));
        column.literals.emplace_back(".jpg");
      }
      if (below(input, 2) == 0) {
        column.offsets = std::make_shared<const std::vector<std::int64_t>>(offsets_of(input));
        column.position = below(input, 3);
      }
      return column;
    }
    case 1:
      return TextColumn{name, cells_of(input)};
    case 2:
      return NumberColumn{array_of(input, name, DType::kInt64)};
    default:
      return MultiHotColumn{array_of(input, name, DType::kInt32), below(input, 5)};
  }
}

void read_all(const format::RecordFormat& rows) {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  memory::Record::Field value;
  std::string room;
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    const auto read = rows.read(row, record);
    if (read) FEEDLINE_CHECK(record.fields.size() == rows.fields().size());
    if (!read) FEEDLINE_CHECK(read.error().what.starts_with("row " + std::to_string(row)));
    for (std::size_t field = 0; field < rows.fields().size(); ++field) {
      FEEDLINE_CHECK(rows.where_field(row, field).record == row);
      if (!rows.find_value(row, field, value, room)) continue;
      std::size_t sum = 0;
      for (const std::byte byte : value.bytes) sum += std::to_integer<std::size_t>(byte);  // reads every byte
      FEEDLINE_CHECK(sum <= 255 * value.bytes.size());
      if (read) FEEDLINE_CHECK(std::ranges::equal(record.fields[field].bytes, value.bytes));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  FuzzInput input(data, bytes);
  RowOptions options{.source = "rows"};
  const std::size_t columns = 1 + below(input, 3);
  for (std::size_t i = 0; i < columns; ++i) options.columns.push_back(column_of(input, std::to_string(i)));
  if (below(input, 2) == 0) options.row_names = cells_of(input);
  const auto opened = format::RowsFormat::open(std::move(options), [](std::shared_ptr<const storage::Storage> storage) {
    return Result<std::shared_ptr<const storage::Storage>>(std::move(storage));
  });
  if (opened) read_all(**opened);
  return 0;
}
