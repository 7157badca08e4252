// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/parquet_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "format/columnar/fetched_reader.h"

namespace feedline::format {
namespace {

using Buffer = std::vector<std::byte>;

// The header and the packed bytes of a page.
struct Stored {
  PageHeader header;
  std::shared_ptr<const Buffer> packed;
};

Result<Stored> read_page(const storage::Reader& reader, const PageLocation& location) {
  Buffer bytes(location.bytes);
  FEEDLINE_TRY(const std::size_t got, reader.read_at(location.offset, bytes));
  if (got < bytes.size())
    return storage_error("the file ends at byte " + std::to_string(location.offset + got) + ": the file became shorter",
                         0);
  const auto header = parse_page_header(bytes);
  if (!header || header->packed_bytes > bytes.size() - header->bytes)
    return data_error("a page is missing: the file is damaged", "format");
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header->bytes));
  bytes.resize(header->packed_bytes);
  return Stored{*header, std::make_shared<const Buffer>(std::move(bytes))};
}

// The largest chunk that is fetched as a whole. The pages of larger chunks are found when the file is opened.
constexpr std::uint64_t kMostLateBytes = std::uint64_t{64} << 20;

std::unexpected<Error> at_page(const PageLocation& location, Error error) {
  if (!error.where.offset) error.where.offset = location.offset;
  return std::unexpected(std::move(error));
}

}  // namespace

Result<std::unique_ptr<ColumnTable>> ParquetTable::open(const ShardFile& file, const storage::Reader& reader,
                                                        std::shared_ptr<BlockCache> cache) {
  FEEDLINE_TRY(auto metadata, read_parquet_metadata(reader, file.version.bytes));
  FEEDLINE_TRY(auto columns, read_parquet_schema(metadata));
  return std::unique_ptr<ColumnTable>(
      new ParquetTable(file, is_checked_by(reader), std::move(metadata), std::move(columns), std::move(cache)));
}

ParquetTable::ParquetTable(ShardFile file, bool is_checked, ParquetMetadata metadata,
                           std::vector<ParquetColumn> columns, std::shared_ptr<BlockCache> cache)
    : ColumnTable(std::move(file), is_checked),
      metadata_(std::move(metadata)),
      columns_(std::move(columns)),
      cache_(std::move(cache)) {
  for (const ParquetColumn& column : columns_) types_.push_back(column.type);
  std::uint64_t end = 0;
  for (const ParquetRowGroup& group : metadata_.groups) ends_.push_back(end += static_cast<std::uint64_t>(group.rows));
}

// Returns the positions of the page indexes for these columns in all row groups that have page indexes.
std::vector<ByteRange> ParquetTable::page_indexes(const std::vector<std::size_t>& columns) const {
  std::vector<ByteRange> ranges;
  const auto add = [&](const ParquetColumn& column) {
    for (const ParquetRowGroup& group : metadata_.groups) {
      const ParquetColumnChunk& chunk = group.columns[column.leaf];
      if (chunk.index_offset > 0 && chunk.index_bytes > 0)
        ranges.push_back(
            {static_cast<std::uint64_t>(chunk.index_offset), static_cast<std::uint64_t>(chunk.index_bytes)});
    }
  };
  for (const std::size_t chosen : columns) {
    if (!columns_[chosen].nested) add(columns_[chosen]);
    if (columns_[chosen].nested) std::ranges::for_each(columns_[chosen].nested->leaves, add);
  }
  return ranges;
}

Result<void> ParquetTable::choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) {
  bring_together(reader, [&] { return page_indexes(columns); });
  for (const std::size_t chosen : columns)  // the pages of leaves of nested columns need the levels of their entries
    if (columns_[chosen].nested)
      for (const ParquetColumn& leaf : columns_[chosen].nested->leaves)
        for (ParquetColumn& column : columns_) column.is_member |= !column.nested && column.leaf == leaf.leaf;
  for (const std::size_t chosen : columns) {
    FEEDLINE_TRY(Slot slot, make_slot(reader, columns_[chosen]));
    slots_.push_back(std::move(slot));
  }
  metadata_ = {};
  return {};
}

Result<ParquetTable::Slot> ParquetTable::make_slot(const storage::Reader& reader, const ParquetColumn& column) {
  Slot slot{.column = column, .groups = {}};
  if (column.nested) {
    slot.may_have_nulls = true;
    for (const ParquetColumn& leaf : column.nested->leaves) {
      FEEDLINE_TRY(Slot member, make_slot(reader, leaf));
      slot.members.push_back(std::move(member));
    }
    return slot;
  }
  for (const ParquetRowGroup& group : metadata_.groups) {
    const ParquetColumnChunk& chunk = group.columns[slot.column.leaf];
    const bool may_lack = slot.column.most_definition > 0;
    slot.may_have_nulls |= may_lack && (chunk.nulls != 0 || slot.column.most_repetition > 0);
    FEEDLINE_CHECK_OK(add_group(reader, group, slot));
  }
  expect_plain_values(slot);
  expect_numbers(slot);
  return slot;
}

Result<void> ParquetTable::add_group(const storage::Reader& reader, const ParquetRowGroup& group, Slot& slot) const {
  const ParquetColumnChunk& chunk = group.columns[slot.column.leaf];
  const auto rows = static_cast<std::uint64_t>(group.rows);
  PageIndex& index = slot.groups.emplace_back();
  auto& late = slot.late.emplace_back();
  if (file().storage->is_remote() && (chunk.index_offset <= 0 || chunk.index_bytes <= 0)) {
    FEEDLINE_TRY(const PageLocation location, find_chunk(file().version.bytes, slot.column, chunk, rows));
    if (location.bytes <= kMostLateBytes) {
      late = std::make_unique<LateChunk>(chunk, location, rows);
      return {};
    }
  }
  FEEDLINE_TRY(index, read_page_index(reader, file().version.bytes, slot.column, chunk, rows));
  return {};
}

// Returns the chunk of a group if its pages are not known yet.
const ParquetTable::LateChunk* ParquetTable::unknown_chunk(const Slot& slot, std::size_t group) const {
  const LateChunk* const late = slot.late[group].get();
  return late == nullptr || late->is_known.load(std::memory_order_acquire) ? nullptr : late;
}

// Fetches a chunk, finds its pages, and caches them: otherwise each of them would be fetched again.
Result<void> ParquetTable::find_pages(const storage::Reader& reader, const Slot& slot, std::size_t group) const {
  if (unknown_chunk(slot, group) == nullptr) return {};
  LateChunk& late = *slot.late[group];
  const std::lock_guard lock(late.mutex);
  if (late.is_known.load(std::memory_order_relaxed)) return {};
  Buffer bytes(late.location.bytes);
  FEEDLINE_TRY(const std::size_t got, reader.read_at(late.location.offset, bytes));
  const FileRange range{late.location.offset, got};
  const auto part = std::span<const std::byte>(bytes).first(got);
  const FetchedReader fetched(reader, {&range, 1}, {&part, 1});
  FEEDLINE_TRY(slot.groups[group], read_page_index(fetched, file().version.bytes, slot.column, late.chunk, late.rows));
  for (std::size_t page = 0; page < slot.groups[group].pages.size(); ++page)
    static_cast<void>(page_of(fetched, slot, group, page, 0));  // reading a value of a damaged page reports the error
  late.is_known.store(true, std::memory_order_release);
  return {};
}

void ParquetTable::expect_plain_values(Slot& slot) const {
  bool may_be = !file().storage->is_remote();
  std::size_t pages = 0;
  for (const PageIndex& group : slot.groups) {
    may_be = may_be && may_lie_plain(slot.column, group.codec);
    slot.first_pages.push_back(pages);
    pages += group.pages.size();
  }
  if (may_be) slot.locations = std::make_unique<ValueLocations>(pages);
}

// Requires: expect_plain_values() was called.
void ParquetTable::expect_numbers(Slot& slot) {
  if (slot.column.type.holds != Holds::kNumbers || slot.column.most_repetition > 0 || slot.groups.empty()) return;
  if (std::ranges::any_of(slot.late, [](const auto& late) { return late != nullptr; })) return;
  const std::uint64_t row_bytes =
      size_of(slot.column.type.dtype) + (slot.may_have_nulls ? sizeof(PageRows::value_of[0]) : 0);
  slot.resident = std::make_unique<ResidentBlocks>(slot.first_pages.back() + slot.groups.back().pages.size());
  slot.is_resident = !file().storage->is_remote() && cache_->claim(rows() * row_bytes);
  if (slot.is_resident) claimed_ += rows() * row_bytes;
}

const ValueLocations::Page* ParquetTable::known_locations(const Slot& slot, const Location& at) const {
  return slot.locations ? slot.locations->of(slot.first_pages[at.group] + at.page) : nullptr;
}

bool ParquetTable::may_have_nulls(std::size_t slot) const { return slots_[slot].may_have_nulls; }

std::size_t ParquetTable::group_of(std::uint64_t row) const {
  FEEDLINE_CHECK(row < rows());
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, row) - ends_.begin());
}

// Requires: the pages of the row's group are known.
ParquetTable::Location ParquetTable::find_sample(std::uint64_t row, const Slot& slot) const {
  const std::size_t group = group_of(row);
  row -= group == 0 ? 0 : ends_[group - 1];
  const auto& ends = slot.groups[group].ends;
  const auto page = static_cast<std::size_t>(std::ranges::upper_bound(ends, row) - ends.begin());
  return {group, page, row - (page == 0 ? 0 : ends[page - 1])};
}

Result<CellLocation> ParquetTable::location(std::uint64_t row, std::size_t number) const {
  const Slot& slot = slots_[number];
  if (!slot.locations) return CellLocation{.in = CellLocation::In::kPacked};
  const Location at = find_sample(row, slot);
  const ValueLocations::Page* const known = known_locations(slot, at);
  if (known == nullptr) return CellLocation{.in = CellLocation::In::kPacked};
  const ValueLocations::Value value = (*known)[at.row];
  if (value.bytes == ValueLocations::kNull) return CellLocation{};
  return CellLocation{.in = CellLocation::In::kFile,
                      .offset = slot.groups[at.group].pages[at.page].offset + value.offset,
                      .bytes = value.bytes};
}

Result<std::shared_ptr<const PageValues>> ParquetTable::dictionary_of(const storage::Reader& reader, const Slot& slot,
                                                                      std::size_t group) const {
  const auto& location = slot.groups[group].dictionary;
  if (!location) return std::shared_ptr<const PageValues>();
  const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
    FEEDLINE_TRY(const Stored stored, read_page(reader, *location));
    FEEDLINE_TRY(PageValues values,
                 decode_dictionary(slot.column, slot.groups[group].codec, stored.header, *stored.packed));
    const std::uint64_t pages = slot.groups[group].pages.size();  // each page requests the dictionary once
    BlockCache::Block block{.values = pages, .plain_bytes = stored.header.plain_bytes};
    block.is_stored = store != nullptr && move_to(*store, values);
    block.bytes = values.bytes() + (values.owner && !block.is_stored ? stored.header.plain_bytes : 0);
    block.content = std::make_shared<const PageValues>(std::move(values));
    return block;
  };
  auto found = cache_->get({this, location->offset}, make, 1, file().storage->is_remote());
  if (!found) return at_page(*location, std::move(found).error());
  return std::static_pointer_cast<const PageValues>(std::move(*found));
}

Result<PageRows> ParquetTable::read_rows(const storage::Reader& reader, const Slot& slot, std::size_t group,
                                         std::size_t page, std::uint64_t& plain_bytes) const {
  const PageIndex& index = slot.groups[group];
  FEEDLINE_TRY(const Stored stored, read_page(reader, index.pages[page]));
  const std::uint64_t rows_here = index.ends[page] - (page == 0 ? 0 : index.ends[page - 1]);
  const bool is_flat = slot.column.most_repetition == 0;
  if (is_flat ? stored.header.values != rows_here : stored.header.values > index.values)
    return data_error("a page has " + std::to_string(stored.header.values) +
                          " values, but its index has a different number: the file is damaged",
                      "format");
  const auto encoding = static_cast<ParquetEncoding>(stored.header.encoding);
  std::shared_ptr<const PageValues> dictionary;
  if (encoding == ParquetEncoding::kDictionary || encoding == ParquetEncoding::kPlainDictionary) {
    FEEDLINE_TRY(dictionary, dictionary_of(reader, slot, group));
  }
  FEEDLINE_TRY(PageRows rows, decode_page(slot.column, index.codec, stored.header, stored.packed, dictionary));
  if (rows.rows != rows_here)
    return data_error(
        "a page has " + std::to_string(rows.rows) + " rows, but its index has a different number: the file is damaged",
        "format");
  if (slot.locations && lie_plain(stored.header, rows_here))
    slot.locations->note(slot.first_pages[group] + page, locations_of(rows, stored.header, *stored.packed));
  plain_bytes = stored.header.plain_bytes;
  return rows;
}

Result<std::shared_ptr<const PageRows>> ParquetTable::page_of(const storage::Reader& reader, const Slot& slot,
                                                              std::size_t group, std::size_t page,
                                                              std::uint64_t requests) const {
  const PageLocation& location = slot.groups[group].pages[page];
  const std::size_t number = slot.first_pages[group] + page;
  if (const void* const resident = slot.resident ? slot.resident->of(number) : nullptr)
    return std::shared_ptr<const PageRows>(std::shared_ptr<const void>(), static_cast<const PageRows*>(resident));
  const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
    std::uint64_t plain_bytes = 0;
    const auto& dictionary = slot.groups[group].dictionary;
    if (store != nullptr && dictionary) cache_->store_next({this, dictionary->offset});  // it stays in use
    FEEDLINE_TRY(PageRows rows, read_rows(reader, slot, group, page, plain_bytes));
    BlockCache::Block block{.values = rows.rows, .plain_bytes = plain_bytes};
    block.is_stored =
        store != nullptr && known_locations(slot, {group, page, 0}) == nullptr && move_to(*store, rows.values);
    block.bytes = rows.bytes() + (rows.values.owner && !block.is_stored ? plain_bytes : 0);
    block.content = std::make_shared<const PageRows>(std::move(rows));
    return block;
  };
  auto found = cache_->get({this, location.offset}, make, requests, file().storage->is_remote());
  if (!found) return at_page(location, std::move(found).error());
  if (known_locations(slot, {group, page, 0}) != nullptr) cache_->drop({this, location.offset});
  auto rows = std::static_pointer_cast<const PageRows>(std::move(*found));
  const bool is_kept = slot.is_resident && keeps_numbers_.load(std::memory_order_relaxed);
  if (slot.resident && (is_kept || !rows->values.stored.empty())) {
    slot.resident->keep(number, rows);
    if (is_kept) cache_->drop({this, location.offset});
  }
  return rows;
}

// Reads the list in a row; it may continue in the pages after the page where it begins.
Result<TableCell> ParquetTable::list_at(const storage::Reader& reader, const Slot& slot, const Location& at,
                                        std::shared_ptr<const PageRows> page, std::shared_ptr<const void>& pin) const {
  bool has_null = page->has_null[at.row] != 0;
  const std::uint64_t width = page->values.width, begin = page->begins[at.row], end = page->begins[at.row + 1];
  auto bytes = page->values.numbers().subspan(begin * width, (end - begin) * width);
  std::uint64_t count = end - begin;
  const PageIndex& index = slot.groups[at.group];
  std::shared_ptr<Buffer> joined;
  const bool is_nested = slot.column.most_repetition > 1;
  std::vector<PageRows::Entry> entries;
  const auto add_entries = [&](const PageRows& from, std::size_t first, std::size_t last) {
    const auto at_entry = [&](std::size_t i) { return from.entries.begin() + static_cast<std::ptrdiff_t>(i); };
    entries.insert(entries.end(), at_entry(first), at_entry(last));
  };
  if (is_nested) add_entries(*page, page->entry_begins[at.row], page->entry_begins[at.row + 1]);
  for (std::size_t next = at.page + 1; at.row + 1 == page->rows && !index.begin_with_rows && next < index.pages.size();
       ++next) {
    FEEDLINE_TRY(const auto more, page_of(reader, slot, at.group, next));
    has_null = has_null || more->begins_with_null;
    const std::uint64_t here = more->begins.front();
    if (here > 0 && !joined) joined = std::make_shared<Buffer>(bytes.begin(), bytes.end());
    if (here > 0) {
      const auto first = more->values.numbers().begin();
      joined->insert(joined->end(), first, first + static_cast<std::ptrdiff_t>(here * more->values.width));
    }
    count += here;
    if (is_nested) add_entries(*more, 0, more->entry_begins.front());
    if (more->rows > 0) break;
  }
  if (const Shape& lists = slot.column.type.lists; has_null && std::find(lists.begin(), lists.end(), 0) != lists.end())
    return at_page(
        index.pages[at.page],
        data_error("the column's type is a fixed_size_list with 0 elements, which pyarrow writes to Parquet files with "
                   "wrong levels and cannot read itself: write a list instead, or omit the column",
                   "format")
            .error());
  if (has_null)
    return at_page(
        index.pages[at.page],
        not_an_array(slot.column.type, "a list contains a null value, which arrays cannot represent").error());
  if (joined) bytes = *joined;
  if (joined) pin = std::move(joined);
  if (!is_nested) return TableCell{false, bytes, {static_cast<std::int64_t>(count)}};
  const auto shape = shape_of(entries, slot.column.most_repetition);
  if (!shape || std::cmp_not_equal(shape->elements(), count))
    return at_page(
        index.pages[at.page],
        not_an_array(slot.column.type, "the inner lists differ in length, so they are not an array").error());
  return TableCell{false, bytes, *shape};
}

Result<TableCell> ParquetTable::unpack(const storage::Reader& reader, std::uint64_t row, std::size_t number,
                                       std::shared_ptr<const void>& pin) const {
  const Slot& slot = slots_[number];
  if (slot.column.nested) return assemble(reader, slot, row, pin);
  FEEDLINE_CHECK_OK(find_pages(reader, slot, group_of(row)));
  const Location at = find_sample(row, slot);
  FEEDLINE_TRY(const auto page, page_of(reader, slot, at.group, at.page));
  pin = page;
  if (slot.column.most_repetition > 0) {
    if (page->is_null[at.row] != 0) return TableCell{.is_null = true};
    return list_at(reader, slot, at, page, pin);
  }
  const std::uint64_t value = page->value_of.empty() ? at.row : page->value_of[at.row];
  if (value == PageRows::kNull) return TableCell{.is_null = true};
  return TableCell{false, page->values.at(value), {}};
}

// Reads the values of a leaf in a row, which may continue in the pages after the page where it begins.
Result<NestedLeaf> ParquetTable::leaf_at(const storage::Reader& reader, const Slot& slot, std::uint64_t row) const {
  FEEDLINE_CHECK_OK(find_pages(reader, slot, group_of(row)));
  const Location at = find_sample(row, slot);
  const PageIndex& index = slot.groups[at.group];
  NestedLeaf leaf{.column = &slot.column};
  const auto add = [&](const std::shared_ptr<const PageRows>& page, std::size_t first_entry, std::size_t end_entry,
                       std::size_t first, std::size_t end) {
    leaf.entries.insert(leaf.entries.end(), page->entries.begin() + static_cast<std::ptrdiff_t>(first_entry),
                        page->entries.begin() + static_cast<std::ptrdiff_t>(end_entry));
    for (std::size_t value = first; value < end; ++value) leaf.values.push_back(page->values.at(value));
    leaf.pins.push_back(page);
  };
  FEEDLINE_TRY(const auto page, page_of(reader, slot, at.group, at.page));
  add(page, page->entry_begins[at.row], page->entry_begins[at.row + 1], page->begins[at.row], page->begins[at.row + 1]);
  if (at.row + 1 < page->rows || index.begin_with_rows) return leaf;
  for (std::size_t next = at.page + 1; next < index.pages.size(); ++next) {
    FEEDLINE_TRY(const auto more, page_of(reader, slot, at.group, next));
    add(more, 0, more->entry_begins.front(), 0, more->begins.front());
    if (more->rows > 0) break;
  }
  return leaf;
}

Result<TableCell> ParquetTable::assemble(const storage::Reader& reader, const Slot& slot, std::uint64_t row,
                                         std::shared_ptr<const void>& pin) const {
  std::vector<NestedLeaf> leaves;
  for (const Slot& member : slot.members) {
    FEEDLINE_TRY(leaves.emplace_back(), leaf_at(reader, member, row));
  }
  NestedWriter writer(slot.column.type.has_bytes);
  const auto is_present = write_nested(slot.column.nested->node, leaves, writer);
  if (!is_present) {
    const Location at = find_sample(row, slot.members.front());
    return at_page(slot.members.front().groups[at.group].pages[at.page], is_present.error());
  }
  auto value = std::make_shared<const std::string>(writer.take());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*value));
  pin = std::move(value);
  return *is_present ? TableCell{false, bytes, {}} : TableCell{.is_null = true};
}

Result<std::optional<NumberRun>> ParquetTable::numbers(const storage::Reader& reader, std::span<const GatheredRow> rows,
                                                       std::size_t number, std::shared_ptr<const void>& pin) const {
  const Slot& slot = slots_[number];
  if (slot.column.type.holds != Holds::kNumbers || slot.column.most_repetition > 1) return std::nullopt;
  const std::uint64_t row = rows.front().row;
  FEEDLINE_CHECK_OK(find_pages(reader, slot, group_of(row)));
  const Location at = find_sample(row, slot);
  const PageIndex& index = slot.groups[at.group];
  NumberRun run{.begin = row - at.row};
  run.end = run.begin + index.ends[at.page] - (at.page == 0 ? 0 : index.ends[at.page - 1]);
  const auto end = std::ranges::lower_bound(rows, run.end, {}, &GatheredRow::row);
  FEEDLINE_TRY(const auto page,
               page_of(reader, slot, at.group, at.page, static_cast<std::uint64_t>(end - rows.begin())));
  pin = page;
  run.values = page->values.numbers();
  if (slot.column.most_repetition == 0) {
    run.value_of = page->value_of;
    return run;
  }
  if (page->has_nulls_in_lists) return std::nullopt;
  if (!index.begin_with_rows && at.page + 1 < index.pages.size()) --run.end;  // the last list may continue there
  if (row >= run.end) return std::nullopt;
  run.list_begins = page->begins;
  return run;
}

// Uncompressed values are located when their page is first read, and are then read individually.
ParquetTable::Blocks ParquetTable::blocks(std::size_t number) const {
  return number < slots_.size() ? blocks_of(slots_[number]) : Blocks();
}

ParquetTable::Blocks ParquetTable::blocks_of(const Slot& slot) const {
  Blocks blocks;
  for (const Slot& member : slot.members) {
    const Blocks more = blocks_of(member);
    blocks.bytes += more.bytes;
    blocks.bytes_of_row += more.bytes_of_row;
  }
  if (slot.column.nested || slot.locations) return blocks;
  if (slot.is_resident && keeps_numbers_.load(std::memory_order_relaxed)) return blocks;
  double of_rows = 0;  // bytes_of_row, summed over all rows
  for (std::size_t number = 0; number < ends_.size(); ++number) {
    if (const LateChunk* const chunk = unknown_chunk(slot, number)) {  // as if it were one block
      blocks.bytes += plain_bytes_of(chunk->chunk);
      of_rows += static_cast<double>(plain_bytes_of(chunk->chunk)) * static_cast<double>(chunk->rows);
      continue;
    }
    const PageIndex& group = slot.groups[number];
    if (group.pages.empty()) continue;
    blocks.bytes += group.plain_bytes;
    double packed = 0;
    for (const PageLocation& page : group.pages) packed += static_cast<double>(page.bytes);
    const double dictionary = group.dictionary ? static_cast<double>(group.dictionary->bytes) : 0;
    const double growth = static_cast<double>(group.plain_bytes) / std::max(packed + dictionary, 1.0);
    of_rows += growth * (dictionary + packed / static_cast<double>(group.pages.size())) *
               static_cast<double>(group.ends.back());
  }
  blocks.bytes_of_row = of_rows / static_cast<double>(std::max<std::uint64_t>(rows(), 1));
  return blocks;
}

void ParquetTable::find_blocks(std::uint64_t row, std::size_t number, std::vector<FileRange>& blocks) const {
  find_blocks_of(row, slots_[number], blocks);
}

void ParquetTable::find_blocks_of(std::uint64_t row, const Slot& slot, std::vector<FileRange>& blocks) const {
  for (const Slot& member : slot.members) find_blocks_of(row, member, blocks);
  if (slot.column.nested) return;
  if (const LateChunk* const chunk = unknown_chunk(slot, group_of(row))) {
    blocks.push_back({chunk->location.offset, chunk->location.bytes});
    return;
  }
  const Location at = find_sample(row, slot);
  const PageIndex& index = slot.groups[at.group];
  const PageLocation& page = index.pages[at.page];
  if (slot.resident && slot.resident->of(slot.first_pages[at.group] + at.page) != nullptr) return;
  if (cache_->is_expected({this, page.offset}) && known_locations(slot, at) == nullptr) return;
  if (index.dictionary && !cache_->is_expected({this, index.dictionary->offset}))
    blocks.push_back({index.dictionary->offset, index.dictionary->bytes});
  blocks.push_back({page.offset, page.bytes});
}

std::uint64_t ParquetTable::offset_of(std::uint64_t row) const {
  if (slots_.empty()) return 0;
  const Slot& slot = slots_.front().column.nested ? slots_.front().members.front() : slots_.front();
  if (const LateChunk* const chunk = unknown_chunk(slot, group_of(row))) return chunk->location.offset;
  const Location at = find_sample(row, slot);
  return slot.groups[at.group].pages[at.page].offset;
}

}  // namespace feedline::format
