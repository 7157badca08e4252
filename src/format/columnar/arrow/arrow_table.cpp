// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/arrow_table.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/check.h"
#include "format/columnar/arrow/nested_value.h"

namespace feedline::format {
namespace {

// A decompressed buffer, in memory or in the block store.
struct PlainBuffer {
  std::vector<std::byte> own;
  std::span<const std::byte> stored;
  std::shared_ptr<const BlockStore> store;

  std::span<const std::byte> bytes() const { return store ? stored : std::span(own); }
};

}  // namespace

Result<std::unique_ptr<ColumnTable>> ArrowTable::open_part(const ShardFile& file, ByteRange part,
                                                           const storage::Reader& reader,
                                                           std::shared_ptr<BlockCache> cache) {
  FEEDLINE_TRY(auto messages, read_arrow_messages(reader, part));
  return std::unique_ptr<ColumnTable>(
      new ArrowTable(file, is_checked_by(reader), std::move(messages), std::move(cache)));
}

ArrowTable::ArrowTable(ShardFile file, bool is_checked, ArrowMessages messages, std::shared_ptr<BlockCache> cache)
    : ColumnTable(std::move(file), is_checked), messages_(std::move(messages)), cache_(std::move(cache)) {
  for (const ArrowColumn& column : messages_.schema.columns) types_.push_back(column.type);
  std::uint64_t end = 0;
  for (const ArrowBatch& batch : messages_.batches) ends_.push_back(end += batch.rows);
}

Result<std::shared_ptr<const ArrowMessage>> ArrowTable::dictionary_of(const ArrowColumn& column,
                                                                      const ArrowField& field,
                                                                      const ArrowBatch& batch) {
  if (batch.dictionaries)
    if (const auto found = batch.dictionaries->find(*field.dictionary); found != batch.dictionaries->end())
      return found->second;
  return data_error("the column '" + column.type.name + "' is dictionary-encoded, but its dictionary is missing",
                    "format");
}

Result<std::shared_ptr<const ArrowChunk>> ArrowTable::values_of(const storage::Reader& reader, std::size_t column,
                                                                const ArrowBatch& batch, Values& values) const {
  ArrowField field = messages_.schema.field_of(messages_.schema.columns[column]);
  if (!field.dictionary) return std::shared_ptr<const ArrowChunk>();
  FEEDLINE_TRY(const auto message, dictionary_of(messages_.schema.columns[column], field, batch));
  auto& loaded = values[{message.get(), column}];
  if (loaded) return loaded;
  field.dictionary.reset();
  FEEDLINE_TRY(const ArrowBody body, read_arrow_body(*message, std::span(&field, 1)));
  FEEDLINE_TRY(ArrowChunk chunk, ArrowChunk::load(reader, types_[column], body.arrays.front(), {}, body.codec,
                                                  ArrowChunk::Held::kAllValues, nullptr));
  loaded = std::make_shared<const ArrowChunk>(std::move(chunk));
  return loaded;
}

Result<NestedDictionaries> ArrowTable::dictionaries_of(const ArrowColumn& column, const ArrowBatch& batch) const {
  NestedDictionaries made;
  std::vector<const ArrowField*> left{&messages_.schema.field_of(column)};
  while (!left.empty()) {
    const ArrowField& field = *left.back();
    left.pop_back();
    for (const ArrowField& child : field.children) left.push_back(&child);
    if (!field.dictionary || made.contains(*field.dictionary)) continue;
    FEEDLINE_TRY(const auto message, dictionary_of(column, field, batch));
    auto dictionary = std::make_shared<NestedDictionary>(NestedDictionary{field, {}});
    dictionary->field.dictionary.reset();
    FEEDLINE_TRY(dictionary->body, read_arrow_body(*message, std::span(&dictionary->field, 1)));
    made.emplace(*field.dictionary, std::move(dictionary));
  }
  return made;
}

Result<void> ArrowTable::load(const storage::Reader& reader, const std::vector<std::size_t>& columns,
                              const ArrowBatch& batch, Values& values) {
  FEEDLINE_TRY(const ArrowBody body, read_arrow_body(*batch.message, messages_.schema.fields));
  for (std::size_t slot = 0; slot < columns.size(); ++slot) {
    const ArrowColumn& column = messages_.schema.columns[columns[slot]];
    const ArrowArray& array = body.arrays[column.path.front()];
    if (array.length != batch.rows) {
      auto error = data_error("the column '" + column.type.name + "' has " + std::to_string(array.length) +
                                  " values in a batch of " + std::to_string(batch.rows) + " rows",
                              "format");
      error.error().where.offset = batch.message->offset;
      return error;
    }
    if (types_[columns[slot]].is_nested) {
      FEEDLINE_TRY(auto dictionaries, dictionaries_of(column, batch));
      nested_[slot].push_back({array, body.codec, types_[columns[slot]].has_bytes, std::move(dictionaries)});
      slots_[slot].emplace_back();
      continue;
    }
    FEEDLINE_TRY(auto encoded, values_of(reader, columns[slot], batch, values));
    FEEDLINE_TRY(slots_[slot].emplace_back(),
                 ArrowChunk::load(reader, types_[columns[slot]], array, std::span(column.path).subspan(1), body.codec,
                                  held_, std::move(encoded)));
  }
  return {};
}

// Returns the byte ranges that load() reads for all batches. Ignores errors, since load() reports them.
std::vector<ByteRange> ArrowTable::ranges_of(const std::vector<std::size_t>& columns) const {
  std::vector<ByteRange> ranges;
  for (const ArrowBatch& batch : messages_.batches) {
    const auto body = read_arrow_body(*batch.message, messages_.schema.fields);
    for (std::size_t slot = 0; body && slot < columns.size(); ++slot) {
      const ArrowColumn& column = messages_.schema.columns[columns[slot]];
      if (!column.type.is_nested)
        ArrowChunk::add_ranges(body->arrays[column.path.front()], std::span(column.path).subspan(1), held_, ranges);
    }
  }
  return ranges;
}

std::uint64_t ArrowTable::bytes_of_numbers(const std::vector<std::size_t>& columns) const {
  std::uint64_t bytes = 0;
  for (const std::size_t column : columns)
    if (types_[column].holds == Holds::kNumbers && types_[column].lists.dims() == 0)
      bytes += rows() * size_of(types_[column].dtype);
  return bytes;
}

Result<void> ArrowTable::choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) {
  if (!cache_->claim_index(bytes_of_numbers(columns))) held_ = ArrowChunk::Held::kNoValues;
  bring_together(reader, [&] { return ranges_of(columns); });
  slots_.resize(columns.size());
  nested_.resize(columns.size());
  for (const std::size_t column : columns) paths_.push_back(messages_.schema.columns[column].path);
  Values values;
  for (const ArrowBatch& batch : messages_.batches) FEEDLINE_CHECK_OK(load(reader, columns, batch, values));
  messages_.batches.clear();
  join_numbers();
  std::uint64_t bytes = 0;
  for (const auto& chunks : slots_)
    for (const ArrowChunk& chunk : chunks)
      if (chunk.has_lists() && chunk.codec() == ArrowCodec::kNone) bytes += chunk.data().bytes;
  if (bytes == 0 || file().storage->is_remote() || !cache_->claim(bytes)) return {};
  claimed_ = bytes;
  lists_ = std::make_unique<ResidentBlocks>(slots_.size() * slots_.front().size());
  return {};
}

void ArrowTable::join_numbers() {
  numbers_.resize(slots_.size());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    std::vector<ArrowChunk>& chunks = slots_[slot];
    if (!nested_[slot].empty() || chunks.size() < 2 || !std::ranges::all_of(chunks, &ArrowChunk::are_only_numbers))
      continue;
    std::vector<std::byte>& joined = numbers_[slot];
    joined.reserve(rows() * chunks.front().width());
    for (ArrowChunk& chunk : chunks) {
      const std::vector<std::byte> own = chunk.take_numbers();
      const std::size_t bytes = chunk.rows() * chunk.width();
      joined.insert(joined.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(bytes));
    }
    std::span<const std::byte> left = joined;
    for (ArrowChunk& chunk : chunks) {
      const std::size_t bytes = chunk.rows() * chunk.width();
      chunk.set_numbers(left.first(bytes));
      left = left.subspan(bytes);
    }
  }
}

bool ArrowTable::may_have_nulls(std::size_t slot) const {
  return !nested_[slot].empty() ||
         std::ranges::any_of(slots_[slot], [](const ArrowChunk& chunk) { return chunk.has_nulls(); });
}

ArrowTable::Location ArrowTable::find_sample(std::uint64_t row) const {
  FEEDLINE_CHECK(row < rows());
  const auto batch = static_cast<std::size_t>(std::ranges::upper_bound(ends_, row) - ends_.begin());
  return {batch, row - (batch == 0 ? 0 : ends_[batch - 1])};
}

Result<CellLocation> ArrowTable::location(std::uint64_t row, std::size_t slot) const {
  if (!nested_[slot].empty()) return CellLocation{.in = CellLocation::In::kPacked};
  const Location location = find_sample(row);
  return slots_[slot][location.batch].location(location.row);
}

Result<TableCell> ArrowTable::unpack(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                                     std::shared_ptr<const void>& pin) const {
  if (!nested_[slot].empty()) return unpack_nested(reader, row, slot, pin);
  const Location at = find_sample(row);
  const ArrowChunk& chunk = slots_[slot][at.batch];
  FEEDLINE_TRY(const CellLocation location, chunk.location(at.row));
  const ArrowBuffer& data = chunk.buffer_of(at.row);
  FEEDLINE_TRY(const auto bytes, contents(reader, data, chunk.codec(), chunk.rows(), 1, pin));
  if (location.offset > bytes.size() || location.bytes > bytes.size() - location.offset) {
    auto error = data_error("the offsets point past the end of the bytes: the file is damaged", "format");
    error.error().where.offset = data.offset;
    return error;
  }
  return TableCell{false, bytes.subspan(location.offset, location.bytes), location.shape};
}

Result<TableCell> ArrowTable::unpack_nested(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                                            std::shared_ptr<const void>& pin) const {
  const Location at = find_sample(row);
  const NestedBatch& batch = nested_[slot][at.batch];
  std::vector<std::shared_ptr<const void>> pins;
  std::vector<std::pair<std::uint64_t, std::span<const std::byte>>> known;  // each buffer is looked up once
  const auto find = [&](const ArrowBuffer& buffer, ArrowCodec codec) -> Result<std::span<const std::byte>> {
    for (const auto& [offset, bytes] : known)
      if (offset == buffer.offset) return bytes;
    std::span<const std::byte> bytes;
    if (codec == ArrowCodec::kNone) {
      FEEDLINE_TRY(const auto view, reader.view(buffer.offset, buffer.bytes));
      if (view) return known.emplace_back(buffer.offset, *view).second;
    }
    const std::uint64_t rows = ends_[at.batch] - (at.batch == 0 ? 0 : ends_[at.batch - 1]);
    FEEDLINE_TRY(bytes, contents(reader, buffer, codec, rows, 1, pins.emplace_back()));
    return known.emplace_back(buffer.offset, bytes).second;
  };
  NestedWriter writer(batch.has_bytes);
  FEEDLINE_TRY(const bool is_present, write_nested({batch.array, batch.codec, batch.dictionaries},
                                                   std::span(paths_[slot]).subspan(1), at.row, find, writer));
  auto value = std::make_shared<const std::string>(writer.take());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*value));
  pin = std::move(value);
  return is_present ? TableCell{false, bytes, {}} : TableCell{.is_null = true};
}

Result<std::optional<std::span<const std::byte>>> ArrowTable::lists(const storage::Reader& reader, std::size_t slot,
                                                                    std::size_t batch, std::uint64_t requests,
                                                                    std::shared_ptr<const void>& pin) const {
  const ArrowChunk& chunk = slots_[slot][batch];
  if (chunk.codec() != ArrowCodec::kNone || !keeps_lists_.load(std::memory_order_relaxed))
    return contents(reader, chunk.data(), chunk.codec(), chunk.rows(), requests, pin);
  if (!lists_) return std::nullopt;
  const std::size_t number = slot * slots_.front().size() + batch;
  using Bytes = std::vector<std::byte>;
  if (const void* const resident = lists_->of(number)) return std::span(*static_cast<const Bytes*>(resident));
  FEEDLINE_TRY(auto read, read_arrow_buffer(reader, chunk.data(), ArrowCodec::kNone));
  lists_->keep(number, std::make_shared<const Bytes>(std::move(read)));
  return std::span(*static_cast<const Bytes*>(lists_->of(number)));
}

Result<std::span<const std::byte>> ArrowTable::contents(const storage::Reader& reader, const ArrowBuffer& data,
                                                        ArrowCodec codec, std::uint64_t rows, std::uint64_t requests,
                                                        std::shared_ptr<const void>& pin) const {
  const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
    FEEDLINE_TRY(auto plain, read_arrow_buffer(reader, data, codec));
    BlockCache::Block block{.bytes = plain.size(), .values = rows, .plain_bytes = plain.size()};
    const std::span<const std::byte> part(plain);
    if (const auto stored = store != nullptr ? store->add({&part, 1}) : std::nullopt) {
      block.bytes = 0;
      block.is_stored = true;
      block.content = std::make_shared<const PlainBuffer>(std::vector<std::byte>(), *stored, store->shared_from_this());
      return block;
    }
    block.content = std::make_shared<const PlainBuffer>(std::move(plain), std::span<const std::byte>(), nullptr);
    return block;
  };
  FEEDLINE_TRY(pin, cache_->get({this, data.offset}, make, requests, file().storage->is_remote()));
  return static_cast<const PlainBuffer*>(pin.get())->bytes();
}

Result<std::optional<NumberRun>> ArrowTable::numbers(const storage::Reader& reader, std::span<const GatheredRow> rows,
                                                     std::size_t slot, std::shared_ptr<const void>& pin) const {
  if (!numbers_[slot].empty()) return NumberRun{.begin = 0, .end = this->rows(), .values = numbers_[slot]};
  const Location at = find_sample(rows.front().row);
  const ArrowChunk& chunk = slots_[slot][at.batch];
  const std::uint64_t first = rows.front().row - at.row;
  std::optional<std::span<const std::byte>> data = std::span<const std::byte>();
  if (chunk.needs_data()) {
    const auto end = std::ranges::lower_bound(rows, first + chunk.rows(), {}, &GatheredRow::row);
    const auto requests = static_cast<std::uint64_t>(end - rows.begin());
    if (chunk.has_lists()) {
      FEEDLINE_TRY(data, lists(reader, slot, at.batch, requests, pin));
    } else {
      FEEDLINE_TRY(data, contents(reader, chunk.data(), chunk.codec(), chunk.rows(), requests, pin));
    }
    if (!data) return std::nullopt;
  }
  auto run = chunk.numbers(*data);
  if (!run) return std::nullopt;
  run->begin += first;
  run->end += first;
  return run;
}

ArrowTable::Blocks ArrowTable::blocks(std::size_t slot) const {
  Blocks blocks;
  if (slot >= slots_.size()) return blocks;
  double of_rows = 0;  // bytes_of_row, summed over all rows
  for (std::size_t batch = 0; batch < nested_[slot].size(); ++batch) {
    if (nested_[slot][batch].codec == ArrowCodec::kNone) continue;
    std::uint64_t bytes = 0;
    for_each_buffer(nested_[slot][batch].array, [&](const ArrowBuffer& buffer) { bytes += buffer.bytes; });
    blocks.bytes += bytes;
    of_rows += static_cast<double>(bytes) * static_cast<double>(ends_[batch] - (batch == 0 ? 0 : ends_[batch - 1]));
  }
  for (const ArrowChunk& chunk : slots_[slot]) {
    const ArrowChunk::PlainBytes plain = chunk.plain_bytes();
    blocks.bytes += plain.all;
    of_rows += static_cast<double>(plain.of_buffer) * static_cast<double>(chunk.rows());
  }
  blocks.bytes_of_row = of_rows / static_cast<double>(std::max<std::uint64_t>(rows(), 1));
  return blocks;
}

void ArrowTable::find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const {
  const Location at = find_sample(row);
  if (!nested_[slot].empty()) {
    const NestedBatch& batch = nested_[slot][at.batch];
    if (batch.codec == ArrowCodec::kNone && !file().storage->is_remote()) return;
    for_each_buffer(batch.array, [&](const ArrowBuffer& buffer) {
      if (!cache_->is_expected({this, buffer.offset})) blocks.push_back({buffer.offset, buffer.bytes});
    });
    return;
  }
  const ArrowBuffer& data = slots_[slot][at.batch].buffer_of(at.row);
  if (!cache_->is_expected({this, data.offset})) blocks.push_back({data.offset, data.bytes});
}

std::uint64_t ArrowTable::offset_of(std::uint64_t row) const {
  const Location at = find_sample(row);
  if (slots_.empty() || slots_.front().size() <= at.batch || !nested_.front().empty()) return 0;
  const ArrowChunk& chunk = slots_.front()[at.batch];
  const auto location = chunk.location(at.row);
  return location && location->in == CellLocation::In::kFile ? location->offset : chunk.data().offset;
}

}  // namespace feedline::format
