// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"
#include "format/tables/column_choice.h"
#include "format/tables/column_table.h"

namespace feedline::format {

// A kind of file whose rows are samples.
struct TableKind {
  std::string_view name;  // "arrow", of the format
  std::string_view what;  // "Arrow file", in messages
  // kData: damaged. Reads what describes the file, and no values.
  std::function<Result<std::unique_ptr<ColumnTable>>(const ShardFile& file, const storage::Reader& reader)> open;
  std::function<std::string()> summary = {};  // more lines for explain()
};

// Opens the shard at `name`, whose error says where it is.
Result<std::unique_ptr<ColumnTable>> open_table(const TableKind& kind, std::shared_ptr<const storage::Storage> storage,
                                                const std::string& name);

// Samples that are rows of tables: one or a list of them, numbered through the shards.
class TablesFormat final : public RecordFormat {
 public:
  // Requires: options.storage, and at least one shard.
  static Result<std::shared_ptr<const RecordFormat>> open(TableKind kind, const std::string& source,
                                                          const std::vector<std::string>& shards,
                                                          const OpenOptions& options);

  std::string_view name() const override { return kind_.name; }
  std::uint64_t size() const override { return ends_.back(); }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return 2 * choices_.size(); }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return options_.storage; }
  std::vector<std::uint64_t> shard_ends() const override { return ends_; }
  std::vector<StoredShard> stored_shards() const override;
  std::vector<UnopenedColumn> unopened() const override;
  std::vector<FieldRemark> remarks() const override { return remarks_of(choices_); }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  void notice_changes() const override;
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  using Tables = std::vector<std::unique_ptr<ColumnTable>>;
  struct Place {
    const ColumnTable* table;
    std::size_t number;  // of the shard
    std::uint64_t row;   // in the shard
  };

  TablesFormat(TableKind kind, std::string source, OpenOptions options, Tables tables,
               std::vector<PickedColumn> choices);
  Result<void> take_samples();
  Result<std::vector<std::uint64_t>> whole_rows(const ColumnTable& table, std::vector<bool>& lacking) const;
  std::uint64_t compute_fingerprint() const;
  Place place_of(std::uint64_t index) const;
  std::string key_of(const Place& place) const;
  Result<void> read_row(const Place& place, memory::Record& record) const;
  // What is read of a row's slots: parts of the file as they are, and blocks of them; nullopt: read() says what is
  // wrong.
  struct Ranges {
    std::vector<FileRange> stored, blocks;
    bool are_blocks_at_hand = true;
  };
  std::optional<Ranges> ranges_of(const Place& place) const;
  // Where an error says that the object behind a network is another one by now: what was kept of it is not to be
  // trusted again.
  void doubt(const ColumnTable& table, const Error& error) const;
  // `error` with the sample's place, as far as it does not name one itself.
  std::unexpected<Error> at(std::uint64_t index, Error error) const;

  TableKind kind_;
  std::string source_;
  OpenOptions options_;
  Tables tables_;
  std::vector<std::string> stems_;  // of keys, one for each shard
  mutable OpenShards open_shards_;
  std::vector<PickedColumn> choices_;
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;
  std::vector<std::uint64_t> ends_;                // samples of the shards up to and with this one
  std::vector<std::vector<std::uint64_t>> whole_;  // per shard: the rows that lack nothing; none: all are taken
  std::uint64_t left_out_ = 0;
  std::uint64_t fingerprint_ = 0;
};

// What keys begin with: the shards' names without folders and ends; with their number where two are the same.
std::vector<std::string> table_stems(const std::vector<std::string>& shards);

}  // namespace feedline::format
