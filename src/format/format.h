// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dataset as stored: how many samples, which fields, and the stored bytes or the rows of any one of them.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/notes.h"
#include "feedline/array.h"
#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/inspection.h"
#include "feedline/sample_files.h"
#include "memory/record.h"
#include "memory/row.h"
#include "storage/storage.h"

namespace feedline::format {

enum class FieldKind : std::uint8_t {
  kImage,    // stored bytes of an image file
  kInteger,  // a number
  kArray,    // an array of numbers: a row as it is, or a record's stored .npy file
  kMask,     // stored bytes of an image of labels
  kBytes,    // stored bytes as they are
  kText,     // stored bytes of text
  kJson,     // stored bytes of JSON
  // Stored bytes of a .npy file, or of lists in JSON. What moves the sample's images moves them too.
  kBoxes,      // (N, 4)
  kKeypoints,  // (N, 2) or (N, K, 2)
};
// The words of specs, "image" to "keypoints"; "value" is an integer.
std::string_view name_of(FieldKind kind);
std::optional<FieldKind> field_kind_of(std::string_view name);

struct FieldDescription {
  std::string name;  // "image", "label", or the extension that the user asked for
  FieldKind kind = FieldKind::kImage;
  ArraySpec array = {};        // of a RowFormat's, or of arrays in memory; its first extent may be kAnyLength
  bool may_be_absent = false;  // with Missing::kNone: some samples lack it
  Element pad{};               // of a RecordFormat's ragged array: what stands behind a shorter row
};

struct OpenOptions {
  std::string format;  // a name in the registry: "folder", "tar"; empty: by what `source` is
  // One spec per field; empty: the format's own. Tars: extensions, alternatives split by ';' ("jpg;png"); folders:
  // patterns ("masks/{key}.png"). ":KIND" at the end says what it is where the extension does not.
  std::vector<std::string> fields;
  std::string index_directory;  // where to keep an index; empty: beside the shard, else the cache folder
  std::shared_ptr<const storage::Storage> storage;  // nullptr: local files
  std::shared_ptr<cache::Notes> notes = {};         // nullptr: nobody wants to know what became of kept files
  Missing missing = Missing::kError;                // what a sample is that lacks a field
  // The oldest listing to be trusted, of folders that have no times. 0: nothing is that was not asked for.
  std::chrono::seconds listing_age{kListingAge};
};

// What every format says of its samples. Immutable once opened; every method is thread-safe. Errors carry where (shard,
// key, record, offset, stage).
class Format {
 public:
  virtual ~Format() = default;

  virtual std::string_view name() const = 0;  // "folder", "tar"
  virtual std::uint64_t size() const = 0;     // samples
  virtual const std::vector<FieldDescription>& fields() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // label -> name; empty where unknown
  // How many samples are worth a thread's while: it is given so many rows of a batch at a time.
  virtual std::uint64_t grain() const { return 1; }
  // Columns of the source that no field reads, in its order, as far as they are known after opening.
  virtual std::vector<UnopenedColumn> unopened() const { return {}; }
  virtual std::vector<FieldRemark> remarks() const { return {}; }
  // What opening found that a user wants to know, in lines for explain(); empty: nothing.
  virtual std::string summary() const { return {}; }
  // Samples up to and with each shard, where reading within one is quicker than here and there; empty: no such parts.
  virtual std::vector<std::uint64_t> shard_ends() const { return {}; }
  // shard, key and byte offset of a sample, for messages and logs; of one of its fields, where that lies elsewhere.
  virtual Where where(std::uint64_t index) const = 0;
  virtual Where where_field(std::uint64_t index, std::size_t /*field*/) const { return where(index); }
  // A row of an array without a copy: for kView any, else a large one of a mapped file, whose pages are copied when
  // they are written. No memory: the row has to be copied as a whole. kStorage: the file is shorter by now. Requires:
  // index < size().
  virtual Result<memory::OwnRow> own_row(std::uint64_t /*index*/, std::size_t /*field*/, memory::RowUse /*use*/) const {
    return memory::OwnRow{};
  }
  // Changes when the samples, their order or their fields do; not when bytes inside them do.
  virtual std::uint64_t fingerprint() const = 0;
  // The source looked at anew, as the function below does.
  virtual Result<Inspection> inspect() const = 0;
};

// An object that a shard's samples are read from.
struct StoredShard {
  std::string path;  // empty: it is not in the format's storage
  storage::Version version;
};

// An object that was opened by what is kept of it, without asking whether it is still that. Reading one that is another
// one by now is an error in any case; but a plan that was made of it is not that of others who have asked, and may read
// nothing of it. Requires: its format outlives it.
class UncheckedObject {
 public:
  virtual ~UncheckedObject() = default;
  // A byte of where it is stored, whose read is held to the version; waits for nobody.
  virtual Result<storage::Piece> piece() const = 0;
  // What came of that read. The error with its place; where the object is another one, or gone, what is kept of it is
  // forgotten, so that it is made anew with the next opening.
  virtual Result<void> note(Result<void> came) const = 0;
};

// Samples that are stored bytes, or pixels, field by field: the pipeline decodes them.
class RecordFormat : public Format {
 public:
  // Reads sample `index` into `record`, whose buffers are reused. Requires: index < size().
  virtual Result<void> read(std::uint64_t index, memory::Record& record) const = 0;
  // All files of a sample, of fields that were not asked for too. kConfig: a format that keeps no files.
  virtual Result<SampleFiles> files(std::uint64_t index) const;
  virtual Result<SampleFileSizes> file_sizes(std::uint64_t index) const;
  // Reading in two steps, for whoever fetches samples before they are asked for. find_pieces(): where the bytes of
  // sample `index` lie, in at most most_pieces() objects; none: only read() can get at them. accept(): what read() does
  // once it has them, the first in record.storage and the others in record.more. storage(): where pieces are fetched
  // from; nullptr: there are none. Requires: index < size(), `pieces` is empty, and of accept() all bytes of them.
  virtual std::size_t most_pieces() const { return 1; }
  virtual Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const;
  virtual Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                              memory::Record& record) const;
  virtual std::shared_ptr<const storage::Storage> storage() const { return nullptr; }
  // All that samples are read from: several, where datasets are mixed.
  virtual std::vector<std::shared_ptr<const storage::Storage>> storages() const;
  // One for each of shard_ends(), for whoever gets whole shards before a sample of them is asked for; empty: this
  // format does not say.
  virtual std::vector<StoredShard> stored_shards() const { return {}; }
  // Are its samples in memory, or mapped, so that whoever keeps them has a second copy, of what may change?
  virtual bool is_in_memory() const { return false; }
  // Between two epochs: looks whether the objects that stay open are still those that were indexed. Reading a sample of
  // one that is not is a kStorage error from then on.
  virtual void notice_changes() const {}
  // All that were opened without asking, and were not asked about since.
  virtual std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const { return {}; }
};

// Samples that are rows of arrays as they are: the format writes them, many at a time. All fields are kArray.
class RowFormat : public Format {
 public:
  // Writes `samples` to rows that follow each other; first_rows[i] is the first one of field i. A row is written to its
  // end: behind a shorter sample stands what the field pads with. Gives the bytes read. On an error the rows' contents
  // are unspecified. A field whose first row has no data is left out. Requires: no sample is longer than its row.
  virtual Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                                     std::span<const ArrayView> first_rows) const = 0;
  // First extent of a sample in a field, and of the longest sample: they differ where the field's extent is kAnyLength.
  // Reads nothing.
  virtual std::uint64_t length(std::uint64_t index, std::size_t field) const;
  virtual std::uint64_t longest(std::size_t field) const;
};

// The first few, as "caption (text), meta (map: of a type that this version does not read)".
std::string names_of(const std::vector<UnopenedColumn>& columns);

// The format as the kind that it is; nullptr: it is of the other one.
std::shared_ptr<const RecordFormat> records_of(std::shared_ptr<const Format> format);
std::shared_ptr<const RowFormat> rows_of(std::shared_ptr<const Format> format);

// Is it of rows, with a field whose samples have different lengths, known without a read?
bool is_ragged(const Format& format);

// kConfig: no such format, field or source. kStorage: cannot be listed or opened. kData: a shard is damaged.
Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options);

// What a reader would drop or merge, what is damaged, sizes, extensions; of sources too that open() refuses, and going
// on behind what is wrong as far as that can be. Reads no pixel data and no index. An error only where there is
// nothing to look at: no such source, format or field.
Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

}  // namespace feedline::format
