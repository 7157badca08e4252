// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface to a stored dataset: its size and fields, and the stored bytes or rows of each sample.

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
  kArray,    // an array of numbers: a row, or a record's stored .npy file
  kMask,     // stored bytes of an image whose pixels are labels
  kBytes,    // stored bytes, unchanged
  kText,     // stored bytes of text
  kJson,     // stored bytes of JSON
  // Stored bytes of a .npy file or of JSON lists. Geometric operations on the sample's images apply to them too.
  kBoxes,      // (N, 4)
  kKeypoints,  // (N, 2) or (N, K, 2)
};
// The kind's name in specs, "image" to "keypoints"; "value" is an integer.
std::string_view name_of(FieldKind kind);
std::optional<FieldKind> field_kind_of(std::string_view name);

struct FieldDescription {
  std::string name;  // "image", "label", or the extension that the user requested
  FieldKind kind = FieldKind::kImage;
  ArraySpec array = {};        // for a RowFormat or arrays in memory; the first extent may be kAnyLength
  bool may_be_absent = false;  // with Missing::kNone: some samples lack the field
  Element pad{};               // for a RecordFormat's ragged array: pads shorter rows
};

struct OpenOptions {
  std::string format;  // a name in the registry, such as "tar"; if empty, detected from `source`
  // One spec per field; if empty, the format's default fields. Tars use extensions with alternatives separated by ';'
  // ("jpg;png"), folders use patterns ("masks/{key}.png"). ":KIND" at the end overrides the kind implied by the
  // extension.
  std::vector<std::string> fields;
  std::string index_directory;  // where to store indexes; if empty, next to the shard, else in the cache folder
  std::shared_ptr<const storage::Storage> storage;  // nullptr: local files
  std::shared_ptr<cache::Notes> notes = {};         // receives notes about cached files; may be nullptr
  Missing missing = Missing::kError;                // treatment of samples that lack a field
  // The maximum age of a cached listing of folders without modification times. 0: always list them again.
  std::chrono::seconds listing_age{kListingAge};
  AnnotationOptions annotations = {};
};

// The interface common to all formats. Immutable once opened; every method is thread-safe. Errors carry their location
// (shard, key, record, offset, stage).
class Format {
 public:
  virtual ~Format() = default;

  virtual std::string_view name() const = 0;  // "folder", "tar"
  virtual std::uint64_t size() const = 0;     // number of samples
  virtual const std::vector<FieldDescription>& fields() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // names by label; empty if unknown
  // The number of rows of a batch to give to a thread at a time, large enough to be worth the overhead.
  virtual std::uint64_t grain() const { return 1; }
  // Columns of the source that no field reads, in the source's order, as far as they are known after opening.
  virtual std::vector<UnopenedColumn> unopened() const { return {}; }
  virtual std::vector<FieldRemark> remarks() const { return {}; }
  // Findings of opening that matter to users, as lines for explain(); empty if there are none.
  virtual std::string summary() const { return {}; }
  // The number of samples up to the end of each shard, if reading within a shard is faster than random access; empty if
  // the format has no such parts.
  virtual std::vector<std::uint64_t> shard_ends() const { return {}; }
  // The shard, key and byte offset of a sample, for messages and logs. where_field() locates one of its fields, if
  // stored elsewhere.
  virtual Where where(std::uint64_t index) const = 0;
  virtual Where where_field(std::uint64_t index, std::size_t /*field*/) const { return where(index); }
  // A row of an array without a copy: any row for kView, otherwise a large row of a mapped file, whose pages are copied
  // on write. Without memory in the result, the caller must copy the row. kStorage: the file has been truncated.
  // Requires: index < size().
  virtual Result<memory::OwnRow> own_row(std::uint64_t /*index*/, std::size_t /*field*/, memory::RowUse /*use*/) const {
    return memory::OwnRow{};
  }
  // Changes when the samples, their order or their fields change, but not when bytes within them do.
  virtual std::uint64_t fingerprint() const = 0;
  // Inspects the source again, like the function inspect() below.
  virtual Result<Inspection> inspect() const = 0;
};

// An object that contains a shard's samples.
struct StoredShard {
  std::string path;  // empty if the object is not in the format's storage
  storage::Version version;
};

// An object that was opened from its cached index without checking that the object is unchanged. Reading a changed
// object is always an error; but a plan based on the stale index differs from the plans of ranks that did check, and
// might not read the object at all. Requires: its format outlives it.
class UncheckedObject {
 public:
  virtual ~UncheckedObject() = default;
  // One byte of the stored object, whose read fails if the version has changed. Does not block.
  virtual Result<storage::Piece> piece() const = 0;
  // Handles the result of that read. Adds the location to an error; if the object has changed or is gone, discards its
  // cached index, so that the next opening rebuilds it.
  virtual Result<void> note(Result<void> came) const = 0;
};

// A format whose samples are stored bytes or pixels, one value per field; the pipeline decodes them.
class RecordFormat : public Format {
 public:
  // Reads sample `index` into `record`, whose buffers are reused. Requires: index < size().
  virtual Result<void> read(std::uint64_t index, memory::Record& record) const = 0;
  // Sets a field of a sample's record without reading storage, for a field whose values are in memory; false if they
  // are not. The bytes stay valid as long as the format and `room`. Requires: index < size().
  virtual bool find_value(std::uint64_t /*index*/, std::size_t /*field*/, memory::Record::Field& /*value*/,
                          std::string& /*room*/) const {
    return false;
  }
  // All files of a sample, including those of fields that were not requested. kConfig: the format does not store files.
  virtual Result<SampleFiles> files(std::uint64_t index) const;
  virtual Result<SampleFileSizes> file_sizes(std::uint64_t index) const;
  // Reading in two steps, for prefetching. find_pieces() locates the bytes of sample `index`, in at most most_pieces()
  // objects; if it returns no pieces, only read() can read the sample. accept() does what read() does once it has the
  // bytes, the first piece in record.storage and the others in record.more. storage() is the storage to fetch pieces
  // from; nullptr if there are none. Requires: index < size(), `pieces` is empty, and accept() receives all bytes of
  // the pieces.
  virtual std::size_t most_pieces() const { return 1; }
  virtual Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const;
  virtual Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                              memory::Record& record) const;
  virtual std::shared_ptr<const storage::Storage> storage() const { return nullptr; }
  // All storage backends that samples are read from: several if datasets are mixed.
  virtual std::vector<std::shared_ptr<const storage::Storage>> storages() const;
  // One object for each of shard_ends(), for prefetching whole shards; empty if the format does not support it.
  virtual std::vector<StoredShard> stored_shards() const { return {}; }
  // True if the samples are in memory or mapped, so that caching them would store a second copy, and they may change.
  virtual bool is_in_memory() const { return false; }
  // Called between two epochs: checks whether the objects that stay open have changed since they were indexed. Reading
  // a sample from a changed object is a kStorage error from then on.
  virtual void notice_changes() const {}
  // All objects that were opened without a check and have not been checked since.
  virtual std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const { return {}; }
};

// A format whose samples are rows of arrays, written by the format itself, many at a time. All fields are kArray.
class RowFormat : public Format {
 public:
  // Writes `samples` to consecutive rows; first_rows[i] is the first row of field i. Shorter samples are padded to the
  // end of the row with the field's padding value. Returns the number of bytes read. On an error the contents of the
  // rows are unspecified. A field whose first row has no data is skipped. Requires: no sample is longer than its row.
  virtual Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                                     std::span<const ArrayView> first_rows) const = 0;
  // The first extent of a sample in a field, and of the longest sample; they differ if the field's extent is
  // kAnyLength. Neither reads from storage.
  virtual std::uint64_t length(std::uint64_t index, std::size_t field) const;
  virtual std::uint64_t longest(std::size_t field) const;
};

// The first few columns, as "caption (text), meta (map: of a type that this version does not read)".
std::string names_of(const std::vector<UnopenedColumn>& columns);

// Casts the format to the given kind; nullptr if it is of the other kind.
std::shared_ptr<const RecordFormat> records_of(std::shared_ptr<const Format> format);
std::shared_ptr<const RowFormat> rows_of(std::shared_ptr<const Format> format);

// True for a row format with a field whose samples differ in length, with lengths known without a read.
bool is_ragged(const Format& format);

// kConfig: unknown format, field or source. kStorage: the source cannot be listed or opened. kData: a shard is damaged.
Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options);

// Reports damage, samples that a reader would drop or merge, sizes and extensions. Also inspects sources that open()
// rejects, and continues after errors as far as possible. Reads neither pixel data nor indexes. Returns an error only
// if there is nothing to inspect: unknown source, format or field.
Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

}  // namespace feedline::format
