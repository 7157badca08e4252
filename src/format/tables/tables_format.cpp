// SPDX-License-Identifier: Apache-2.0
#include "format/tables/tables_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/each_shard.h"
#include "format/opening_reader.h"
#include "format/record_keys.h"
#include "format/shard_parts.h"
#include "format/tables/cell_reader.h"
#include "format/tables/fetched_reader.h"
#include "format/tables/image_columns.h"
#include "format/tables/tables_inspection.h"
#include "storage/version.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

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

// A table, and its reader until the columns are chosen.
struct Opened {
  std::unique_ptr<ColumnTable> table;
  std::unique_ptr<const OpeningReader> opening;
};

// The options with which all tables of a dataset are opened.
struct Opening {
  const TableKind& kind;
  const std::shared_ptr<const storage::Storage>& storage;
  const ShardPartsStore& store;
  bool asks = true;  // whether to query each file's version even if the storage pins reads to a version
};

Result<Opened> open_so(const Opening& how, const std::string& name, bool asks) {
  FEEDLINE_TRY(auto opening, OpeningReader::open(how.storage, name, how.store, asks));
  FEEDLINE_TRY(const storage::Version version, opening->version());
  FEEDLINE_TRY(auto table, how.kind.open(ShardFile{name, name, how.storage, version}, *opening));
  opening->let_go();
  return Opened{std::move(table), std::move(opening)};
}

Result<Opened> open_one(const Opening& how, const std::string& name) {
  auto opened = open_so(how, name, how.asks);
  if (!opened && !how.asks && storage::is_of_change(opened.error())) {
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
  return located(config_error(format->left_out_ > 0 ? "missing=\"skip\" leaves no sample: each lacks one of the fields"
                                                    : "the " + std::string(format->kind_.what) + "s hold no rows")
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

// Returns the rows of a table that lack no field. Includes rows that cannot be read; reading them reports the error.
Result<std::vector<std::uint64_t>> TablesFormat::whole_rows(const ColumnTable& table,
                                                            std::vector<bool>& lacking) const {
  FEEDLINE_TRY(const auto opened, table.reader());
  std::vector<std::uint64_t> rows;
  for (std::uint64_t row = 0; row < table.rows(); ++row) {
    bool lacks = false;
    for (std::size_t slot = 0; slot < choices_.size(); ++slot) {
      if (!table.may_have_nulls(slot)) continue;
      const auto place = table.place(row, slot);
      bool is_null = place && place->in == CellPlace::In::kNull;
      if (place && place->in == CellPlace::In::kPacked) {
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

// Selects the samples according to the handling of samples that lack a field.
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
      for (std::size_t slot = 0; slot < choices_.size(); ++slot)
        if (whole.lacking[slot] && !skips) choices_[slot].description.may_be_absent = true;
    }
  }
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const std::uint64_t rows = tables_[i]->rows(), taken = skips ? whole_[i].size() : rows;
    left_out_ += rows - taken;
    ends_.push_back(end += taken);
  }
  if (left_out_ == 0) whole_.clear();
  for (const PickedColumn& choice : choices_) fields_.push_back(choice.description);
  fingerprint_ = compute_fingerprint();
  return {};
}

std::vector<UnopenedColumn> TablesFormat::unopened() const {
  return unopened_of_all(choices_, options_.fields.empty(), tables_);
}

std::string TablesFormat::summary() const {
  std::string text = kind_.summary ? kind_.summary() : std::string();
  const std::string left_out = ShardedRecordFormat::summary();
  return text + (text.empty() || left_out.empty() ? "" : "\n") + left_out;
}

// The shards' names are not included, so a copy of the dataset elsewhere has the same fingerprint.
std::uint64_t TablesFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const PickedColumn& choice : choices_) {
    fingerprint.add(choice.description.name);
    fingerprint.add(static_cast<std::uint64_t>(choice.description.kind));
    fingerprint.add(choice.column.name);
    fingerprint.add(static_cast<std::uint64_t>(choice.column.dtype));
  }
  if (options_.missing != Missing::kError)
    fingerprint.add(options_.missing == Missing::kSkip ? std::string_view("skip") : std::string_view("none"));
  for (const auto& table : tables_) fingerprint.add(table->parts());
  for (const auto& rows : whole_) fingerprint.add(rows);
  return fingerprint.value();
}

TablesFormat::Place TablesFormat::place_of(std::uint64_t index) const {
  const auto [shard, sample] = position_of(index);
  return {tables_[shard].get(), shard, whole_.empty() ? sample : whole_[shard][sample]};
}

std::string TablesFormat::key_of(const Place& place) const { return record_key(stems_[place.number], place.row); }

Where TablesFormat::where(std::uint64_t index) const {
  const Place place = place_of(index);
  Where where;
  where.dataset = source_;
  where.shard = place.table->name();
  where.key = key_of(place);
  where.record = index;
  where.offset = place.table->offset_of(place.row);
  return where;
}

void TablesFormat::forget(std::size_t shard) const {
  ShardPartsStore(options_.index_directory).forget(*options_.storage, tables_[shard]->file().path);
}

std::unexpected<Error> TablesFormat::at(std::uint64_t index, Error error) const {
  if (error.where.stage.empty()) error.where.stage = "format";
  return ShardedRecordFormat::at(index, std::move(error));
}

Result<void> TablesFormat::read_row(const Place& place, memory::Record& record) const {
  FEEDLINE_TRY(const auto reader, open_shards_.reader(*place.table));
  for (std::size_t slot = 0; slot < choices_.size(); ++slot) {
    const auto cell = read_cell(*place.table, reader, place.row, slot, record, record.more[slot]);
    if (!cell) return of_field(choices_[slot], cell.error());
    FEEDLINE_CHECK_OK(make_field(choices_[slot], *cell, record.most_bytes, record.more[slot], record.fields[slot]));
  }
  return {};
}

Result<void> TablesFormat::read(std::uint64_t index, memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(choices_.size(), {});
  record.more.resize(std::max(record.more.size(), choices_.size()));
  record.bytes_read = 0;
  auto done = read_row(place_of(index), record);
  if (!done) return at(index, std::move(done).error());
  return done;
}

std::optional<TablesFormat::Ranges> TablesFormat::ranges_of(const Place& place) const {
  Ranges ranges;
  for (std::size_t slot = 0; slot < choices_.size(); ++slot) {
    const auto cell = place.table->place(place.row, slot);
    if (!cell) return {};
    if (cell->in == CellPlace::In::kFile && cell->bytes > 0) ranges.stored.push_back({cell->offset, cell->bytes});
    if (cell->in == CellPlace::In::kPacked && !place.table->find_blocks(place.row, slot, ranges.blocks))
      ranges.are_blocks_at_hand = false;
  }
  return ranges;
}

// Prefetch blocks only of remote files. For local files, threads read missing blocks on demand, each once, whereas all
// rows of a block would prefetch it.
Result<void> TablesFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const Place place = place_of(index);
  FEEDLINE_TRY(auto reader, open_shards_.owned_reader(*place.table));
  if (const auto view = reader->view(place.table->offset_of(place.row), 0); view && *view) return {};
  const auto ranges = ranges_of(place);
  if (!ranges || (!ranges->are_blocks_at_hand && !options_.storage->is_remote())) return {};
  const auto add = [&](const std::vector<FileRange>& all) {
    for (const FileRange& range : all) pieces.push_back({reader, {}, range.offset, range.bytes});
  };
  add(ranges->stored);
  if (!ranges->are_blocks_at_hand) add(ranges->blocks);  // all or none, so that accept() can identify them
  return {};
}

Result<void> TablesFormat::accept(std::uint64_t index, std::span<const Bytes> pieces, memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(choices_.size(), {});
  record.more.resize(
      std::max(record.more.size(), pieces.size() + choices_.size()));  // the pieces are in the first ones
  record.bytes_read = 0;
  const Place place = place_of(index);
  const auto accept_all = [&]() -> Result<void> {
    FEEDLINE_TRY(auto reader, open_shards_.reader(*place.table));
    const auto ranges = ranges_of(place);
    const std::size_t blocks = ranges ? pieces.size() - ranges->stored.size() : 0;
    FEEDLINE_CHECK(blocks == 0 || blocks == ranges->blocks.size());
    const FetchedReader fetched(*reader, blocks == 0 ? std::span<const FileRange>() : ranges->blocks,
                                pieces.last(blocks));
    const std::shared_ptr<const storage::Reader> shared(std::shared_ptr<const void>(), &fetched);
    std::size_t piece = 0;
    for (std::size_t slot = 0; slot < choices_.size(); ++slot) {
      FEEDLINE_TRY(const CellPlace found, place.table->place(place.row, slot));
      TableCell cell;
      if (found.in == CellPlace::In::kFile && found.bytes > 0) {
        FEEDLINE_CHECK(piece < pieces.size() && pieces[piece].size() == found.bytes);
        record.bytes_read += found.bytes;
        cell = {false, pieces[piece++], found.shape};
      } else {
        auto read = read_cell(*place.table, shared, place.row, slot, record, record.more[pieces.size() + slot]);
        if (!read) return of_field(choices_[slot], std::move(read).error());
        cell = *read;
      }
      FEEDLINE_CHECK_OK(
          make_field(choices_[slot], cell, record.most_bytes, record.more[pieces.size() + slot], record.fields[slot]));
    }
    return {};
  };
  auto done = accept_all();
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<SampleFiles> TablesFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  auto files = files_of(choices_, record.fields);
  if (!files) return at(index, std::move(files).error());
  return SampleFiles{key_of(place_of(index)), std::nullopt, std::move(*files)};
}

}  // namespace feedline::format
