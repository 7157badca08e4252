// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/tables_format.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/columnar/cell_reader.h"
#include "format/columnar/column_gather.h"
#include "format/columnar/fetched_reader.h"
#include "format/columnar/image_columns.h"
#include "format/columnar/tables_inspection.h"
#include "format/index/opening_reader.h"
#include "format/index/shard_parts.h"
#include "format/shards/each_shard.h"
#include "format/shards/record_keys.h"
#include "storage/version.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// The number of rows that a thread gathers at a time. Each page of each column is looked up once for all of these rows;
// a lookup takes as long as copying a few values.
constexpr std::uint64_t kGatheredRows = 512;

// The columns of a part of RowCopy. Threads fill different parts at the same time, and the pages of one part's columns
// are in use together.
constexpr std::size_t kColumnsOfPart = 8;

std::string stem_of(const std::string& shard) {
  std::string stem = shard.substr(shard.rfind('/') + 1);
  stem.resize(std::min(stem.find('?'), stem.size()));  // the query of a signed URL
  for (const std::string_view end : {".parquet", ".arrow", ".arrows", ".feather", ".ipc"})
    if (stem.size() > end.size() && stem.ends_with(end)) stem.resize(stem.size() - end.size());
  return stem;
}

std::unexpected<Error> of_field(const PickedColumn& choice, Error error) {
  if (error.code == ErrorCode::kData)
    error.what = "field '" + choice.description.name + "': the column '" + choice.column.name + "': " + error.what;
  return std::unexpected(std::move(error));
}

}  // namespace

std::vector<std::string> table_stems(const std::vector<std::string>& shards) {
  std::vector<std::string> names;
  for (const std::string& shard : shards) names.push_back(stem_of(shard));
  return key_stems(std::move(names));
}

Result<std::unique_ptr<ColumnTable>> open_table(const TableKind& kind, std::shared_ptr<const storage::Storage> storage,
                                                const std::string& name) {
  const auto open = [&]() -> Result<std::unique_ptr<ColumnTable>> {
    FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(name, storage::Access::kRead));
    FEEDLINE_TRY(const auto version, reader->version());
    return kind.open(ShardFile{name, name, storage, version}, *reader);
  };
  auto table = open();
  if (!table && table.error().where.shard.empty()) table.error().where.shard = name;
  return table;
}

namespace {

// A table, with its reader until the columns are chosen.
struct Opened {
  std::unique_ptr<ColumnTable> table;
  std::unique_ptr<const OpeningReader> opening;
};

// The options with which all tables of a dataset are opened.
struct Opening {
  const TableKind& kind;
  const std::shared_ptr<const storage::Storage>& storage;
  const ShardPartsStore& store;
  bool checks_version = true;  // whether to query each file's version even if the storage pins reads to a version
};

Result<Opened> open_so(const Opening& how, const std::string& name, bool checks_version) {
  FEEDLINE_TRY(auto opening, OpeningReader::open(how.storage, name, how.store, checks_version));
  FEEDLINE_TRY(const storage::Version version, opening->version());
  FEEDLINE_TRY(auto table, how.kind.open(ShardFile{name, name, how.storage, version}, *opening));
  opening->let_go();
  return Opened{std::move(table), std::move(opening)};
}

Result<Opened> open_one(const Opening& how, const std::string& name) {
  auto opened = open_so(how, name, how.checks_version);
  if (!opened && !how.checks_version && storage::is_of_change(opened.error())) {
    how.store.forget(*how.storage, name);
    opened = open_so(how, name, true);
  }
  if (!opened && opened.error().where.shard.empty()) opened.error().where.shard = name;
  return opened;
}

Result<void> choose_columns_of(const Opened& opened, const std::vector<std::size_t>& columns,
                               const ShardPartsStore& store) {
  FEEDLINE_CHECK_OK(opened.table->choose(*opened.opening, columns));
  return opened.opening->keep(store);
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> TablesFormat::open(TableKind kind, const std::string& source,
                                                               const std::vector<std::string>& names,
                                                               const OpenOptions& options) {
  const auto located = [&source](Error error) {
    error.where.dataset = source;
    return std::unexpected(std::move(error));
  };
  const std::size_t side_by_side = shards_side_by_side(options.storage->is_remote());
  const ShardPartsStore store(options.index_directory, options.notes);
  const Opening how{kind, options.storage, store, options.listing_age.count() == 0};
  auto tables = each_shard<Opened>(
      names.size(), [&](std::size_t i) { return open_one(how, names[i]); }, side_by_side);
  if (!tables) return located(std::move(tables).error());
  std::vector<ColumnType> types = tables->front().table->columns();
  for (const Opened& opened : *tables) complete_columns(types, opened.table->columns());
  const auto with_rows = std::ranges::find_if(*tables, [](const Opened& one) { return one.table->rows() > 0; });
  if (with_rows != tables->end()) {
    const ShardFile& file = with_rows->table->file();
    if (auto done = recognise_images(kind, file, *with_rows->opening, options.fields, types); !done) {
      if (storage::is_of_change(done.error())) store.forget(*options.storage, file.path);
      if (done.error().where.shard.empty()) done.error().where.shard = file.name;
      return located(std::move(done).error());
    }
  }
  auto choices = pick_columns(options.fields, types);
  if (!choices) return located(std::move(choices).error());
  const auto choose_in = [&](std::size_t i) -> Result<bool> {
    Opened& opened = (*tables)[i];
    const auto found = find_columns(*choices, opened.table->columns());
    auto done = found ? choose_columns_of(opened, *found, store) : std::unexpected(found.error());
    if (done) return opened.opening.reset(), true;
    if (opened.opening && storage::is_of_change(done.error())) store.forget(*options.storage, names[i]);
    if (done.error().where.shard.empty()) done.error().where.shard = opened.table->name();
    return std::unexpected(std::move(done).error());
  };
  if (auto done = each_shard<bool>(names.size(), choose_in, side_by_side); !done)
    return located(std::move(done).error());
  Tables chosen;
  for (Opened& opened : *tables) chosen.push_back(std::move(opened.table));
  std::shared_ptr<TablesFormat> format(
      new TablesFormat(std::move(kind), source, options, std::move(chosen), std::move(*choices)));
  if (auto taken = format->take_samples(); !taken) return located(std::move(taken).error());
  if (format->size() > 0) return format;
  return located(config_error(format->left_out_ > 0 ? "missing=\"skip\" omits all samples: each lacks one of the fields"
                                                    : "the " + std::string(format->kind_.what) + "s have no rows")
                     .error());
}

TablesFormat::TablesFormat(TableKind kind, std::string source, OpenOptions options, Tables tables,
                           std::vector<PickedColumn> choices)
    : ShardedRecordFormat(std::move(source), std::move(options)),
      kind_(std::move(kind)),
      tables_(std::move(tables)),
      choices_(std::move(choices)) {
  std::vector<std::string> names;
  for (const auto& table : tables_) names.push_back(table->name());
  stems_ = table_stems(names);
  expect(tables_);
  for (const PickedColumn& choice : choices_)
    if (choice.description.name == "label") classes_ = choice.column.classes;
}

// Returns the rows of a table that have all fields. Includes rows that cannot be read, because read() reports the
// error.
Result<std::vector<std::uint64_t>> TablesFormat::whole_rows(const ColumnTable& table,
                                                            std::vector<bool>& lacking) const {
  FEEDLINE_TRY(const auto opened, table.reader());
  std::vector<std::uint64_t> rows;
  for (std::uint64_t row = 0; row < table.rows(); ++row) {
    bool lacks = false;
    for (std::size_t slot = 0; slot < choices_.size(); ++slot) {
      if (choices_[slot].null != NullValue::kError || !table.may_have_nulls(slot)) continue;
      const auto location = table.location(row, slot);
      bool is_null = location && location->in == CellLocation::In::kNull;
      if (location && location->in == CellLocation::In::kPacked) {
        std::shared_ptr<const void> pin;
        const auto cell = table.unpack(*opened.reader, row, slot, pin);
        if (!cell && cell.error().code != ErrorCode::kData) return std::unexpected(cell.error());
        is_null = cell && cell->is_null;
      }
      if (is_null) lacks = lacking[slot] = true;
    }
    if (!lacks) rows.push_back(row);
  }
  table.close();
  return rows;
}

// Selects the rows that are samples, according to options_.missing.
Result<void> TablesFormat::take_samples() {
  const bool skips = options_.missing == Missing::kSkip;
  if (options_.missing != Missing::kError) {
    struct Whole {
      std::vector<std::uint64_t> rows;
      std::vector<bool> lacking;
    };
    FEEDLINE_TRY(auto found, each_shard<Whole>(
                                 tables_.size(),
                                 [&](std::size_t i) -> Result<Whole> {
                                   Whole whole{{}, std::vector<bool>(choices_.size())};
                                   FEEDLINE_TRY(whole.rows, whole_rows(*tables_[i], whole.lacking));
                                   return whole;
                                 },
                                 shards_side_by_side(options_.storage->is_remote())));
    for (Whole& whole : found) {
      whole_.push_back(std::move(whole.rows));
      for (std::size_t slot = 0; slot < choices_.size(); slot += choices_[slot].members)
        for (std::size_t i = slot; i < slot + choices_[slot].members; ++i)
          if (whole.lacking[i] && !skips) choices_[slot].description.may_be_absent = true;
    }
  }
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const std::uint64_t rows = tables_[i]->rows(), taken = skips ? whole_[i].size() : rows;
    left_out_ += rows - taken;
    // a file with one part is a shard like those of other formats, even if it has no rows
    auto parts = tables_[i]->parts();
    if (parts.size() < 2 || kind_.parts.empty()) parts.assign(1, rows);
    for (const std::uint64_t part : parts)
      part_ends_.push_back(end + (skips ? std::ranges::lower_bound(whole_[i], part) - whole_[i].begin() : part));
    ends_.push_back(end += taken);
  }
  if (left_out_ == 0) whole_.clear();
  for (const PickedColumn& choice : choices_)
    if (choice.members > 0) fields_.push_back(choice.description);
  fingerprint_ = compute_fingerprint();
  // Values of remote tables are prefetched, which needs one row at a time.
  if (can_gather(choices_) && !options_.storage->is_remote()) grain_ = kGatheredRows;
  return {};
}

std::vector<UnopenedColumn> TablesFormat::unopened() const {
  return unopened_of_all(choices_, options_.fields.empty(), tables_);
}

ShuffleBlocks TablesFormat::shuffle_blocks() const {
  if (part_ends_ == ends_) return {.ends = ends_};
  return {kind_.parts, part_ends_};
}

BlockCosts TablesFormat::block_costs() const {
  if (!kind_.cache || copy_.load(std::memory_order_acquire) != nullptr) return {};
  BlockCosts costs = block_costs_of(*kind_.cache, tables_, choices_.size());
  // rows that are gathered together share blocks
  costs.bytes_of_sample =
      std::min(costs.bytes_of_sample, static_cast<double>(costs.bytes) / static_cast<double>(grain_));
  return costs;
}

BlockCounts TablesFormat::block_counts() const {
  if (!kind_.cache) return {};
  return {kind_.cache->made(), kind_.cache->plain_bytes(), delivered_.load(std::memory_order_relaxed)};
}

std::string TablesFormat::summary() const {
  std::string text;
  const auto add = [&](const std::string& line) { text += (text.empty() || line.empty() ? "" : "\n") + line; };
  if (kind_.cache) add(kind_.cache->summary());
  if (const BlockCounts counts = block_counts(); counts.delivered > 0 && counts.bytes > 0) {
    constexpr std::uint64_t kTenths = 10;
    const std::uint64_t tenths = (counts.bytes * kTenths + counts.delivered / 2) / counts.delivered;
    add(std::to_string(tenths / kTenths) + "." + std::to_string(tenths % kTenths) +
        " bytes were decompressed per byte delivered");
  }
  if (const std::uint64_t rows = gathered_.load(std::memory_order_relaxed); rows > 0)
    add(std::to_string(rows) + " rows were copied column by column");
  if (const RowCopy* const copy = copy_.load(std::memory_order_acquire))
    add("numbers are stored row by row in memory (" + std::to_string(copy->filled_bytes() >> 20) + " MiB)");
  add(ShardedRecordFormat::summary());
  return text;
}

BlockCosts block_costs_of(const BlockCache& cache, std::span<const std::unique_ptr<ColumnTable>> tables,
                          std::size_t slots) {
  BlockCosts costs;
  std::uint64_t rows = 0;
  for (const auto& table : tables) {
    if (!table) continue;
    rows += table->rows();
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const ColumnTable::Blocks blocks = table->blocks(slot);
      costs.bytes += blocks.bytes;
      costs.bytes_of_sample += blocks.bytes_of_row * static_cast<double>(table->rows());
    }
  }
  const auto all = static_cast<double>(std::max<std::uint64_t>(rows, 1));
  costs.value_bytes = static_cast<double>(costs.bytes) / all;
  costs.bytes_of_sample /= all;
  const BlockCache::Room room = cache.room();
  costs.memory = room.memory;
  costs.disk = room.disk;
  return costs;
}

// The fingerprint does not depend on the names of shards, so that copies of the dataset have the same fingerprint.
std::uint64_t TablesFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const PickedColumn& choice : choices_) {
    fingerprint.add(choice.description.name);
    fingerprint.add(static_cast<std::uint64_t>(choice.description.kind));
    fingerprint.add(choice.column.name);
    fingerprint.add(static_cast<std::uint64_t>(choice.column.dtype));
    if (choice.made) {
      fingerprint.add(static_cast<std::uint64_t>(*choice.made));
      fingerprint.add(static_cast<std::uint64_t>(choice.null));
      fingerprint.add(std::uint64_t{choice.members});
    }
  }
  if (options_.missing != Missing::kError)
    fingerprint.add(options_.missing == Missing::kSkip ? std::string_view("skip") : std::string_view("none"));
  for (const auto& table : tables_) fingerprint.add(table->identity());
  for (const auto& rows : whole_) fingerprint.add(rows);
  return fingerprint.value();
}

TablesFormat::Location TablesFormat::find_sample(std::uint64_t index) const {
  const auto [shard, sample] = position_of(index);
  return {tables_[shard].get(), shard, whole_.empty() ? sample : whole_[shard][sample]};
}

std::string TablesFormat::key_of(const Location& location) const {
  return record_key(stems_[location.number], location.row);
}

Where TablesFormat::where(std::uint64_t index) const {
  const Location location = find_sample(index);
  Where where;
  where.dataset = source_;
  where.shard = location.table->name();
  where.key = key_of(location);
  where.record = index;
  where.offset = location.table->offset_of(location.row);
  return where;
}

void TablesFormat::forget(std::size_t shard) const {
  ShardPartsStore(options_.index_directory).forget(*options_.storage, tables_[shard]->file().path);
}

std::unexpected<Error> TablesFormat::at(std::uint64_t index, Error error) const {
  if (error.where.stage.empty()) error.where.stage = "format";
  return ShardedRecordFormat::at(index, std::move(error));
}

Result<void> TablesFormat::read_row(const Location& location, memory::Record& record) const {
  FEEDLINE_TRY(const auto reader, open_shards_.reader(*location.table));
  const auto cell_of = [&](std::size_t slot, memory::ByteBuffer& room) -> Result<TableCell> {
    auto cell = read_cell(*location.table, reader, location.row, slot, record, room);
    if (!cell) return of_field(choices_[slot], std::move(cell).error());
    return cell;
  };
  return make_fields(choices_, std::ref(cell_of), record.most_bytes, record.more, record.fields);
}

// Returns the slot of the field's column, or nullopt if the field has several columns.
std::optional<std::size_t> TablesFormat::only_slot(std::size_t field) const {
  std::size_t slot = 0;
  for (; field > 0; --field) slot += choices_[slot].members;
  return choices_[slot].members == 1 ? std::optional(slot) : std::nullopt;
}

// Returns values that were read when the table was opened, which are single numbers.
bool TablesFormat::find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                              std::string& /*room*/) const {
  const auto slot = only_slot(field);
  if (!slot || choices_[*slot].made) return false;
  const Location location = find_sample(index);
  const auto cell = location.table->location(location.row, *slot);
  if (!cell) return false;  // read_field() returns the error
  value = {};
  value.absent = cell->in == CellLocation::In::kNull && choices_[*slot].description.may_be_absent;
  if (value.absent) return true;
  if (cell->in != CellLocation::In::kMemory || !choices_[*slot].column.order.empty()) return false;
  memory::ByteBuffer unused;  // only tensors with reordered dimensions are copied
  return make_field(choices_[*slot], {false, cell->held, cell->shape}, cell->held.size(), unused, value).has_value();
}

// Reads the values of one column.
Result<bool> TablesFormat::read_field(std::uint64_t index, std::size_t field, memory::Record& record) const {
  const auto slot = only_slot(field);
  if (!slot) return false;
  record.pin.reset();
  record.fields.assign(1, {});
  record.more.resize(std::max(record.more.size(), choices_.size()));
  record.bytes_read = 0;
  const Location location = find_sample(index);
  const auto read_one = [&]() -> Result<void> {
    FEEDLINE_TRY(const auto reader, open_shards_.reader(*location.table));
    memory::ByteBuffer& room = record.more[*slot];
    const auto cell = read_cell(*location.table, reader, location.row, *slot, record, room);
    if (!cell) return of_field(choices_[*slot], cell.error());
    return make_field(choices_[*slot], *cell, record.most_bytes, room, record.fields.front());
  };
  if (auto done = read_one(); !done) return at(index, std::move(done).error());
  return true;
}

Result<void> TablesFormat::read(std::uint64_t index, memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.more.resize(std::max(record.more.size(), choices_.size()));
  record.bytes_read = 0;
  auto done = read_row(find_sample(index), record);
  delivered_.fetch_add(record.bytes_read, std::memory_order_relaxed);
  if (!done) return at(index, std::move(done).error());
  return done;
}

std::uint64_t TablesFormat::block_bytes() const {
  const auto has_blocks = [&](const auto& table) {
    for (std::size_t slot = 0; slot < choices_.size(); ++slot)
      if (table->claimed_bytes() > 0 || table->blocks(slot).bytes > 0) return true;
    return false;
  };
  return kind_.cache && std::ranges::any_of(tables_, has_blocks) ? kind_.cache->most() : 0;
}

void TablesFormat::limit_blocks(std::uint64_t bytes) const {
  if (!kind_.cache || kind_.cache->limit(bytes)) return;
  std::uint64_t returned = 0;
  for (const auto& table : tables_) {
    table->stop_keeping_numbers();
    returned += table->claimed_bytes();
  }
  if (copy_.load(std::memory_order_acquire) == nullptr && !has_returned_claims_.exchange(true))
    kind_.cache->claim(0, returned);
}

void TablesFormat::notice_changes() const {
  ShardedRecordFormat::notice_changes();
  if (copy_.load(std::memory_order_acquire) == nullptr) return;
  for (const auto& table : tables_)
    if (!open_shards_.reader(*table)) is_changed_.store(true, std::memory_order_relaxed);
}

// Returns nullptr if the numbers do not fit into memory, or if a file was changed: reading it then returns the error.
RowCopy* TablesFormat::row_copy(std::span<const ArrayView> first_rows) const {
  if (is_changed_.load(std::memory_order_relaxed)) return nullptr;
  if (has_tried_copy_.load(std::memory_order_acquire)) return copy_.load(std::memory_order_acquire);
  const std::lock_guard lock(copy_mutex_);
  if (has_tried_copy_.load(std::memory_order_relaxed)) return copy_owner_.get();
  copy_owner_ = make_row_copy(first_rows);
  copy_.store(copy_owner_.get(), std::memory_order_release);
  has_tried_copy_.store(true, std::memory_order_release);
  return copy_owner_.get();
}

std::unique_ptr<RowCopy> TablesFormat::make_row_copy(std::span<const ArrayView> first_rows) const {
  std::vector<ArraySpec> specs;
  for (const ArrayView& row : first_rows) specs.push_back(row.spec);
  const std::uint64_t bytes = RowCopy::bytes_of(size(), specs);
  std::uint64_t returned = 0;
  if (!has_returned_claims_.load())
    for (const auto& table : tables_) returned += table->claimed_bytes();
  if (!kind_.cache || !kind_.cache->claim(bytes, returned)) return nullptr;
  auto copy = RowCopy::make(size(), std::move(specs), (choices_.size() + kColumnsOfPart - 1) / kColumnsOfPart);
  if (copy)
    for (const auto& table : tables_) table->stop_keeping_numbers();
  else
    kind_.cache->claim(returned, bytes);
  return copy;
}

Result<void> TablesFormat::fill_rows(std::size_t part, std::uint64_t first, std::uint64_t end,
                                     std::span<const FieldRows> fields) const {
  const SlotRange slots{part * kColumnsOfPart, std::min((part + 1) * kColumnsOfPart, choices_.size())};
  std::vector<GatheredRow> rows;
  for (std::uint64_t sample = first; sample < end;) {
    const auto [shard, begin] = position_of(sample);
    const std::uint64_t count = std::min(end, ends_[shard]) - sample;
    rows.clear();
    for (std::uint64_t i = 0; i < count; ++i)
      rows.push_back({whole_.empty() ? begin + i : whole_[shard][begin + i], sample - first + i});
    FEEDLINE_TRY(const auto reader, open_shards_.reader(*tables_[shard]));
    FEEDLINE_CHECK_OK(gather_columns(*tables_[shard], reader, choices_, slots, rows, fields));
    sample += count;
  }
  return {};
}

Result<std::uint64_t> TablesFormat::gather(std::span<const SampleRow> samples,
                                           std::span<const ArrayView> first_rows) const {
  std::vector<SampleRow> others;
  std::uint64_t bytes = 0;
  RowCopy* const copy = row_copy(first_rows);
  if (copy != nullptr) {
    const auto fill = [this](std::size_t part, std::uint64_t first, std::uint64_t end,
                             std::span<const FieldRows> fields) { return fill_rows(part, first, end, fields); };
    bytes = copy->copy(samples, first_rows, fill, others);
    if (copy->is_complete() && !has_dropped_blocks_.exchange(true, std::memory_order_relaxed))
      for (const auto& table : tables_) table->drop_blocks();
  }
  const auto by_column = copy == nullptr ? samples : std::span<const SampleRow>(others);
  if (!by_column.empty()) {
    FEEDLINE_TRY(const std::uint64_t read, gather_by_column(by_column, first_rows));
    bytes += read;
  }
  gathered_.fetch_add(samples.size(), std::memory_order_relaxed);
  delivered_.fetch_add(bytes, std::memory_order_relaxed);
  return bytes;
}

Result<std::uint64_t> TablesFormat::gather_by_column(std::span<const SampleRow> samples,
                                                     std::span<const ArrayView> first_rows) const {
  struct Found {
    std::size_t shard;
    GatheredRow row;
  };
  std::vector<Found> found;
  found.reserve(samples.size());
  for (const SampleRow& one : samples) {
    const Location location = find_sample(one.sample);
    found.push_back({location.number, {location.row, one.row}});
  }
  // In order, each page is looked up once.
  std::ranges::sort(found, {}, [](const Found& one) { return std::pair(one.shard, one.row.row); });
  std::vector<FieldRows> fields;
  for (const ArrayView& row : first_rows) fields.push_back({row.data, row.spec, row.spec.bytes()});
  std::vector<GatheredRow> rows;
  std::uint64_t bytes = 0;
  for (auto begin = found.begin(); begin != found.end();) {
    const std::size_t shard = begin->shard;
    rows.clear();
    for (; begin != found.end() && begin->shard == shard; ++begin) rows.push_back(begin->row);
    FEEDLINE_TRY(const auto reader, open_shards_.reader(*tables_[shard]));
    FEEDLINE_TRY(const std::uint64_t read,
                 gather_columns(*tables_[shard], reader, choices_, {0, choices_.size()}, rows, fields));
    bytes += read;
  }
  return bytes;
}

std::optional<TablesFormat::Ranges> TablesFormat::ranges_of(const Location& location) const {
  Ranges ranges;
  for (std::size_t slot = 0; slot < choices_.size(); ++slot) {
    const auto cell = location.table->location(location.row, slot);
    if (!cell) return {};
    if (cell->in == CellLocation::In::kFile && cell->bytes > 0) ranges.stored.push_back({cell->offset, cell->bytes});
    if (cell->in == CellLocation::In::kPacked) location.table->find_blocks(location.row, slot, ranges.blocks);
  }
  return ranges;
}

// Blocks are prefetched only from remote files. Local blocks are read once, on demand; prefetching would read them
// again for every row.
Result<void> TablesFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const Location location = find_sample(index);
  FEEDLINE_TRY(auto reader, open_shards_.owned_reader(*location.table));
  if (const auto view = reader->view(location.table->offset_of(location.row), 0); view && *view) return {};
  const auto ranges = ranges_of(location);
  if (!ranges || (!ranges->blocks.empty() && !options_.storage->is_remote())) return {};
  const auto add = [&](const std::vector<FileRange>& all, bool are_shared) {
    for (const FileRange& range : all) pieces.push_back({reader, {}, range.offset, range.bytes, {}, are_shared});
  };
  add(ranges->stored, false);
  add(ranges->blocks, true);
  return {};
}

Result<void> TablesFormat::accept(std::uint64_t index, std::span<const Bytes> pieces, memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.more.resize(
      std::max(record.more.size(), pieces.size() + choices_.size()));  // the pieces are in the first ones
  record.bytes_read = 0;
  FEEDLINE_CHECK(record.piece_offsets.size() == pieces.size());
  const Location location = find_sample(index);
  const auto accept_all = [&]() -> Result<void> {
    FEEDLINE_TRY(auto reader, open_shards_.reader(*location.table));
    std::vector<FileRange> ranges;
    for (std::size_t i = 0; i < pieces.size(); ++i) ranges.push_back({record.piece_offsets[i], pieces[i].size()});
    const FetchedReader fetched(*reader, ranges, pieces);
    const std::shared_ptr<const storage::Reader> shared(std::shared_ptr<const void>(), &fetched);
    const auto cell_of = [&](std::size_t slot, memory::ByteBuffer& room) -> Result<TableCell> {
      FEEDLINE_TRY(const CellLocation found, location.table->location(location.row, slot));
      const auto is_found = [&](const FileRange& range) {
        return range.offset == found.offset && range.bytes == found.bytes;
      };
      const auto stored = std::ranges::find_if(ranges, is_found);
      if (found.in == CellLocation::In::kFile && stored != ranges.end()) {
        record.bytes_read += found.bytes;
        return TableCell{false, pieces[static_cast<std::size_t>(stored - ranges.begin())], found.shape};
      }
      auto cell = read_cell(*location.table, shared, location.row, slot, record, room);
      if (!cell) return of_field(choices_[slot], std::move(cell).error());
      return cell;
    };
    return make_fields(choices_, std::ref(cell_of), record.most_bytes, std::span(record.more).subspan(pieces.size()),
                       record.fields);
  };
  auto done = accept_all();
  delivered_.fetch_add(record.bytes_read, std::memory_order_relaxed);
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<SampleFiles> TablesFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  auto files = files_of(choices_, record.fields);
  if (!files) return at(index, std::move(files).error());
  return SampleFiles{key_of(find_sample(index)), std::nullopt, std::move(*files)};
}

}  // namespace feedline::format
